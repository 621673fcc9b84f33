"""Deadlines, by the database's clock: whoever notices stops the run; the first stop reason decides."""

import threading
from datetime import timedelta

import pytest
from langgraph.config import get_config

from runtime_persist import RetryPolicy
from runtime_persist.errors import InvalidInput, RunFailed
from tests.fixtures.raw import wait_until
from tests.support.graphs import asks, chain, fails, resume, says
from tests.support.way import SYNC


@pytest.fixture
def way():
    """The sync way alone: what is asked for in either way is the same row, and that is what workers see."""
    return SYNC


def pass_deadlines(raw):
    """Let every deadline pass now, without waiting for it."""
    raw.rows("UPDATE rp_runs SET deadline_us = 1 WHERE deadline_us IS NOT NULL")


@pytest.fixture
def ends_timed_out(way):
    async def ends(run):
        with pytest.raises(RunFailed, match="timed_out"):
            await way(run, "result", timeout=0)
        record = await way(run, "record")
        assert (record.status, record.stop_reason, record.phase) == ("timed_out", "deadline", "released")
        return record

    return ends


async def test_a_queued_run_past_its_deadline_ends_without_being_executed(way, works, start, raw, ends_timed_out):
    graphs = {"g": chain({"node": says("x")})}
    run = await start(graphs, "g", thread_id="t", deadline=3_600)
    pass_deadlines(raw)
    works(graphs)
    await ends_timed_out(run)
    assert "attempt.start_requested" not in [row["type"] for row in raw.rows("SELECT type FROM rp_events")]


async def test_a_run_of_a_graph_nobody_has_ends_too(way, works, start, raw, ends_timed_out):
    run = await start({"other": chain({"node": says("x")})}, "other", thread_id="t", deadline=3_600)
    pass_deadlines(raw)
    works({"g": chain({"node": says("x")})})
    assert (await ends_timed_out(run)).attempt_no == 0


@pytest.mark.parametrize(
    ("node", "waits"), [(asks("why?"), "waiting_approval"), (fails(ValueError("no luck")), "retry_wait")]
)
async def test_a_run_that_waits_ends_at_its_deadline(way, works, start, raw, ends_timed_out, node, waits):
    graphs = {"g": chain({"node": node})}
    run = await start(graphs, "g", thread_id="t", deadline=3_600, retry=RetryPolicy(backoff=1_800, backoff_max=1_800))
    works(graphs)
    assert (await way(run, "record")).status == waits
    pass_deadlines(raw)
    works(graphs)
    await ends_timed_out(run)


async def test_a_result_that_comes_after_the_deadline_is_kept_but_the_run_timed_out(
    way, works, start, raw, ends_timed_out
):
    def late(_):
        pass_deadlines(raw)
        return {"log": ["late"]}

    graphs = {"g": chain({"node": late})}
    run = await start(graphs, "g", thread_id="t", deadline=3_600)
    works(graphs)
    await ends_timed_out(run)
    row = raw.one("SELECT observed_state, result FROM rp_runs")
    assert row["observed_state"] == "succeeded"
    assert row["result"]


async def test_a_cancel_that_came_first_decides(runtime, way, works, start, raw):
    def cancels(_):
        runtime.runs.cancel(runtime.runs.list()[0].run_id)
        pass_deadlines(raw)
        return {"log": ["x"]}

    graphs = {"g": chain({"node": cancels})}
    run = await start(graphs, "g", thread_id="t", deadline=3_600)
    works(graphs)
    record = await way(run, "record")
    assert (record.status, record.stop_reason) == ("cancelled", "cancel")


async def test_a_deadline_that_is_not_reached_changes_nothing(way, works, start, raw):
    graphs = {"g": chain({"node": says("x")})}
    run = await start(graphs, "g", thread_id="t", deadline=timedelta(hours=1))
    works(graphs)
    assert (await way(run, "result", timeout=0))["log"] == ["x"]
    record = await way(run, "record")
    assert record.deadline_us == record.created_us + 3_600_000_000


async def test_a_node_that_never_returns_is_cancelled_at_the_deadline_and_the_thread_is_free(
    way, works, start, raw, ends_timed_out
):
    """The lease lasts 30 s and is renewed all the time: it is the deadline that ends the run, not the lease."""
    hangs = threading.Event()
    graphs = {"stuck": chain({"node": lambda _: hangs.wait()}), "g": chain({"node": says("x")})}
    run = await start(graphs, "stuck", thread_id="t", deadline=0.3)
    behind = await start(graphs, "g", thread_id="t")

    def releases():
        wait_until(lambda: run.record().status == "timed_out", "the run has ended while its node hangs")
        hangs.set()

    releasing = threading.Thread(target=releases)
    releasing.start()
    works(graphs, stop_grace_seconds=0.0)
    releasing.join()
    await ends_timed_out(run)
    assert (await way(behind, "result", timeout=0))["log"] == ["x"]


async def test_the_graph_stops_at_its_next_step_when_the_deadline_passes(way, works, start, ends_timed_out):
    entered = []

    def waits(_):
        control = get_config()["configurable"]["__pregel_runtime"].control
        wait_until(lambda: control.drain_requested, "it is asked to stop")
        return {"log": ["a"]}

    graphs = {"g": chain({"a": waits, "b": lambda _: entered.append(1)})}
    run = await start(graphs, "g", thread_id="t", deadline=0.3)
    works(graphs, stop_grace_seconds=20.0)
    await ends_timed_out(run)
    assert entered == []


@pytest.mark.parametrize("deadline", [0, -1, float("nan"), float("inf"), "5", True, timedelta(0)])
async def test_a_deadline_that_cannot_be_meant_is_refused(runtime, start, raw, deadline):
    graphs = {"g": chain({"node": says("x")})}
    with pytest.raises(InvalidInput, match="deadline"):
        await start(graphs, "g", deadline=deadline)
    assert raw.value("SELECT count(*) FROM rp_runs") == 0


async def test_an_answer_within_the_deadline_goes_on(runtime, way, works, start):
    graphs = {"g": chain({"ask": asks("why?")})}
    run = await start(graphs, "g", thread_id="t", deadline=3_600)
    works(graphs)
    await way(runtime.runs, "answer", run.run_id, resume("because"))
    works(graphs)
    assert (await way(run, "result", timeout=0))["log"] == ["because"]
