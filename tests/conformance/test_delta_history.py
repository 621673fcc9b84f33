"""The ninth capability, which the published kit does not have: history of DeltaChannels, detected and passed."""

import asyncio
import itertools
import json
import subprocess
import sys

import pytest
from click.testing import CliRunner
from langgraph.checkpoint.conformance import checkpointer_test
from langgraph.checkpoint.memory import InMemorySaver

from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from runtime_persist.testing.delta_history import CHECKS, delta_history_test, main
from tests.conformance import savers
from tests.conformance.test_conformance import Empty
from tests.support.through_sync import ThroughSyncMethods

NAMES = [check.__name__ for check in CHECKS]
PASSED = dict.fromkeys(NAMES, "passed")
# It pages through ancestors by id, and loses those whose id is greater than their child's; it stores None as nothing.
STOCK_POSTGRES = PASSED | {"parents_are_followed_whatever_their_ids": "failed", "a_stored_none_is_a_seed": "failed"}


def judged(registered):
    return asyncio.run(delta_history_test(registered))


@pytest.mark.parametrize("kind", [WorkflowCheckpointAdapter, ThroughSyncMethods], ids=["async", "sync"])
def test_the_capability_is_detected_and_passes_on_every_database(engine_url, kind):
    spaces = itertools.count()

    @checkpointer_test(name="runtime_persist")
    async def ours():
        async with kind.from_conn_string(engine_url, space=f"space {next(spaces)}") as saver:
            yield saver

    report = judged(ours)
    assert report.detected
    assert report.passed, report.failures
    assert report.verdicts() == PASSED


def test_the_stock_savers_pass_but_for_two_known_faults(monkeypatch, tmp_path, postgres_dsn):
    for registered, url, verdicts in (
        (savers.memory, "memory", PASSED),
        (savers.sqlite, f"sqlite:///{tmp_path / 'stock.db'}", PASSED),
        (savers.postgres, postgres_dsn, STOCK_POSTGRES),
    ):
        monkeypatch.setenv("RP_TWO_WRITERS", url)
        report = judged(registered)
        assert report.verdicts() == verdicts, report.failures


@pytest.mark.parametrize("kind", [Empty, type("Inherits", (Empty, InMemorySaver), {})])
def test_a_saver_without_a_method_of_its_own_is_told_by_the_kits_rule(kind):
    """The second one has it from a class above, which counts; the first one from LangGraph's base, which does not."""

    @checkpointer_test(name="judged")
    async def registered():
        yield kind()

    report = judged(registered)
    assert (report.detected, report.passed) == ((False, False) if kind is Empty else (True, True))


def test_the_command_line_prints_the_report_and_its_exit_code_says_whether_it_passed(monkeypatch, tmp_path):
    monkeypatch.setenv("RP_TWO_WRITERS", f"sqlite:///{tmp_path / 'a.db'}")
    target = "tests.conformance.savers:ours"
    command = [sys.executable, "-m", "runtime_persist.testing.delta_history", target]
    text = subprocess.run(command, capture_output=True, text=True, check=False)
    assert text.returncode == 0, text.stderr
    assert text.stdout.splitlines()[:2] == ["delta channel history: runtime_persist", f"  passed  {NAMES[0]}"]
    found = CliRunner().invoke(main, [target, "--json"])
    result = json.loads(found.stdout)["results"]["delta_channel_history"]
    assert (result["tests_passed"], result["tests_failed"], result["tests_skipped"]) == (len(NAMES), 0, 0)
