"""The published conformance kit, over the async and over the sync methods: each base capability detected and passed.

Asserted one by one: the kit's own summary also calls a saver conforming that implements nothing at all.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.conformance import checkpointer_test, validate

from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter

TESTS = {"put": 17, "put_writes": 10, "get_tuple": 10, "list": 16, "delete_thread": 5}


class ThroughSyncMethods(WorkflowCheckpointAdapter):
    """The kit calls only async methods: here each is the sync one."""

    async def aget_tuple(self, config: Any) -> CheckpointTuple | None:
        return self.get_tuple(config)

    async def alist(self, config: Any, **options: Any) -> AsyncIterator[CheckpointTuple]:
        for found in self.list(config, **options):
            yield found

    async def aput(self, *args: Any) -> Any:
        return self.put(*args)

    async def aput_writes(self, *args: Any, **options: Any) -> None:
        self.put_writes(*args, **options)

    async def adelete_thread(self, thread_id: str) -> None:
        self.delete_thread(thread_id)


@pytest.mark.parametrize("kind", [WorkflowCheckpointAdapter, ThroughSyncMethods], ids=["async", "sync"])
@pytest.mark.parametrize("capability", TESTS)
def test_the_kit_detects_and_passes(engine_url, capability, kind):
    spaces = itertools.count()

    @checkpointer_test(name="runtime_persist")
    async def fresh():
        async with kind.from_conn_string(engine_url, space=f"space {next(spaces)}") as saver:
            yield saver

    report = asyncio.run(validate(fresh, capabilities={capability}))
    result = report.results[capability]
    assert result.detected
    assert result.passed, result.failures
    assert (result.tests_passed, result.tests_failed) == (TESTS[capability], 0)
