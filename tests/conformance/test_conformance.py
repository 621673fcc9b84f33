"""The published conformance kit, over the async and over the sync methods: each capability detected and passed.

Asserted one by one: the kit's own summary also calls a saver conforming that implements nothing at all.
"""

import asyncio
import itertools
from typing import Any, Self

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.report import CapabilityReport

from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from tests.support.through_sync import ThroughSyncMethods

TESTS = {
    "put": 17,
    "put_writes": 10,
    "get_tuple": 10,
    "list": 16,
    "delete_thread": 5,
    "delete_for_runs": 7,
    "copy_thread": 8,
    "prune": 8,
}


def judged(saver_of, capability: str) -> CapabilityReport:
    """The kit's report about one capability; ``saver_of``: makes a context manager of a fresh saver."""

    @checkpointer_test(name="judged")
    async def fresh():
        async with saver_of() as saver:
            yield saver

    return asyncio.run(validate(fresh, capabilities={capability}))


def assert_conforms(report: CapabilityReport, capability: str) -> None:
    result = report.results[capability]
    assert result.detected
    assert result.passed, result.failures
    assert (result.tests_passed, result.tests_failed) == (TESTS[capability], 0)


@pytest.mark.parametrize("kind", [WorkflowCheckpointAdapter, ThroughSyncMethods], ids=["async", "sync"])
@pytest.mark.parametrize("capability", TESTS)
def test_the_kit_detects_and_passes(engine_url, capability, kind):
    spaces = itertools.count()

    def saver():
        return kind.from_conn_string(engine_url, space=f"space {next(spaces)}")

    assert_conforms(judged(saver, capability), capability)


class Empty(BaseCheckpointSaver):
    """Implements nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


class Proxy(Empty):
    """Implements everything, but not as methods of its class: LangGraph and the kit look there."""

    def __init__(self, saver: WorkflowCheckpointAdapter) -> None:
        self.saver = saver
        super().__init__()

    def __getattribute__(self, name: str) -> Any:
        if name in {"saver", "__class__"}:
            return object.__getattribute__(self, name)
        return getattr(object.__getattribute__(self, "saver"), name)


@pytest.mark.parametrize("capability", TESTS)
def test_a_saver_that_implements_nothing_passes_the_kits_summary_but_not_ours(capability, opened):
    saver = opened(WorkflowCheckpointAdapter.from_conn_string("sqlite:///:memory:"))
    for broken in (Empty, lambda: Proxy(saver)):
        report = judged(broken, capability)
        assert report.passed_all()
        with pytest.raises(AssertionError):
            assert_conforms(report, capability)
