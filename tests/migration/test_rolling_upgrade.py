"""Open runs of an earlier schema go on under the code of the day, whoever wrote their rows before or after the upgrade.

While a deployment rolls, code of the version before goes on writing its columns into the tables of the new one.
"""

from __future__ import annotations

import json

import pytest
from langgraph.types import Command

from runtime_persist import Runtime
from runtime_persist.schema import metadata, migrate
from runtime_persist.testing.faults import check_invariants, read_rows
from runtime_persist.testing.live_invariants import look
from runtime_persist.worker import Worker
from tests.support.plugin import fork, open_runtime, opened, raw_of
from tests.user_pains import earlier_stories as stories

__all__ = ["fork", "open_runtime", "opened", "raw_of"]
EARLIER = [version for version in stories.versions() if version != migrate.VERSION]
EXPECTED = {
    "open queued": [("initial", "succeeded")],
    "open dispatching": [("initial", "succeeded")],
    "open running": [("initial", "lost"), ("takeover", "succeeded")],
    "open stopping": [("initial", "lost")],
    "open lost": [("initial", "lost"), ("takeover", "succeeded")],
    "open waiting": [("initial", "yielded"), ("resume", "succeeded")],
    "open retry": [("initial", "failed"), ("retry", "succeeded")],
}


@pytest.fixture(params=EARLIER)
def version(request):
    return request.param


@pytest.fixture(params=["before the upgrade", "after it"])
def runtime(request, version, empty_url, opened):
    """A runtime on the tables of the day, with rows that code of an earlier version wrote before or after they came."""
    written = version if request.param == "before the upgrade" else migrate.VERSION
    stories.database(empty_url, written, version)
    stories.CHARGED.clear()
    return opened(Runtime.open(empty_url))


def test_there_is_an_earlier_version_with_a_run_of_every_open_status_and_rows_in_every_table_of_it():
    assert EARLIER
    for version in EARLIER:
        rows = json.loads(stories.rows_of(version))
        statuses = {row["thread_id"]: row["status"] for row in rows["rp_runs"] if row["thread_id"] in EXPECTED}
        assert statuses == stories.LEFT_OPEN
        assert all(rows.values())
        assert set(rows) < {table.name for table in metadata.sorted_tables}


def test_open_runs_of_every_status_of_an_earlier_version_go_on(runtime, raw_of):
    raw = raw_of(runtime)
    found = {run.thread_id: run.status for run in runtime.runs.list() if run.thread_id in EXPECTED}
    assert found == stories.LEFT_OPEN
    raw.rows("UPDATE rp_runs SET next_attempt_us = 1 WHERE status = 'retry_wait'")
    raw.rows("UPDATE rp_runs SET expires_us = 1 WHERE phase <> 'released'")
    assert check_invariants(read_rows(runtime.engine)) == []
    assert look(runtime.engine) == []

    graphs = {"working": stories.working(), "paying": stories.paying()}
    Worker(runtime, graphs, poll_seconds=0.01).run(until_idle=True)
    handles = {run.thread_id: runtime.runs.handle(run.run_id) for run in runtime.runs.list()}
    waiting = handles["open waiting"]
    assert waiting.record().status == "waiting_approval"
    runtime.runs.answer(waiting.run_id, Command(resume="yes"))
    Worker(runtime, graphs, poll_seconds=0.01).run(until_idle=True)

    assert waiting.result(timeout=0)["log"] == ["charged order 7", "yes", "after"]
    assert stories.CHARGED == []  # it was charged by the version before
    for thread_id, attempts in EXPECTED.items():
        rows = raw.rows(
            "SELECT cause, status FROM rp_attempts WHERE run_id = ? ORDER BY attempt_no", handles[thread_id].run_id
        )
        assert [(row["cause"], row["status"]) for row in rows] == attempts, thread_id
        if thread_id == "open stopping":
            assert handles[thread_id].record().status == "cancelled"
        elif thread_id != "open waiting":
            assert handles[thread_id].result(timeout=0)["log"] == ["first", "second"]
    assert check_invariants(read_rows(runtime.engine)) == []
    assert look(runtime.engine) == []


def test_what_older_code_appends_after_the_upgrade_has_a_place_that_never_goes_back(runtime, raw_of):
    """Older code counts its events in event_seq, and names neither their places nor the run's."""
    raw = raw_of(runtime)
    (run,) = runtime.runs.list(thread_id="open queued")
    older = "SELECT max(position) FROM rp_events WHERE run_id = ?"
    for _ in range(2):
        before = raw.value(older, run.run_id)
        raw.rows("UPDATE rp_runs SET event_seq = event_seq + 1 WHERE run_id = ?", run.run_id)
        raw.rows(
            "INSERT INTO rp_events (space, run_id, seq, type, actor, created_us) "
            "SELECT space, run_id, event_seq, 'run.queued', 'older', 1 FROM rp_runs WHERE run_id = ?",
            run.run_id,
        )
        assert before < raw.value("SELECT event_position FROM rp_runs WHERE run_id = ?", run.run_id)
        assert before < raw.value(older, run.run_id)
    runtime.runs.now(run.run_id)
    places = raw.rows("SELECT position FROM rp_events WHERE run_id = ? ORDER BY seq", run.run_id)
    assert [row["position"] for row in places] == sorted(row["position"] for row in places)
    assert raw.value("SELECT event_position FROM rp_runs WHERE run_id = ?", run.run_id) == places[-1]["position"]
