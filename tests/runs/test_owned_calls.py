"""L1: which run a call belongs to, and how it ends (architecture §1)."""

import asyncio

import pytest

from runtime_persist.errors import LeaseExpired, RunStopping, ThreadOwned
from tests.fixtures.raw import wait_until
from tests.support.graphs import asks, chain, config, fails, resume, says
from tests.support.leases import run_out

HELLO = {"log": []}


def bound(runtime, **nodes):
    return runtime.bind(chain(nodes or {"node": says("x")}), name="g")


async def runs(runtime, way):
    return [(run.status, run.stop_reason or run.error_code, run.attempt_no) for run in await way(runtime.runs, "list")]


async def test_each_call_is_a_run_that_succeeds_and_releases_the_thread(runtime, way, raw):
    graph = bound(runtime)
    for n in (1, 2):
        assert (await way(graph, "invoke", HELLO, config()))["log"] == ["x"] * n
    assert await runs(runtime, way) == [("succeeded", None, 1)] * 2
    assert raw.rows("SELECT phase, epoch FROM rp_runs") == [{"phase": "released", "epoch": 1}] * 2
    kinds = [row["type"] for row in raw.rows("SELECT type FROM rp_events ORDER BY created_us, seq")]
    assert (kinds[0], kinds[-1]) == ("run.created", "run.succeeded")


async def test_streams_are_runs_too(runtime, way):
    graph = bound(runtime, a=says("a"), b=says("b"))
    chunks = await way.all(graph, "stream", HELLO, config(), stream_mode="updates")
    assert chunks == [{"a": {"log": ["a"]}}, {"b": {"log": ["b"]}}]
    (run,) = await way(runtime.runs, "list")
    assert (run.status, (await way(runtime.runs, "result", run.run_id))["log"]) == ("succeeded", ["a", "b"])


async def test_an_exception_leaves_the_run_failed_and_none_retries_in_a_new_run(runtime, way):
    with pytest.raises(ValueError, match="no"):
        await way(bound(runtime, a=says("a"), b=fails(ValueError("no"))), "invoke", HELLO, config())
    output = await way(bound(runtime, a=says("a"), b=says("b")), "invoke", None, config())
    assert output["log"] == ["a", "b"]
    second, first = await way(runtime.runs, "list")
    assert (first.status, first.error_code) == ("failed", "ValueError")
    assert (second.status, second.retry_of_run_id) == ("succeeded", first.run_id)


async def test_an_interrupt_returns_it_and_leaves_the_run_waiting(runtime, way, raw):
    graph = bound(runtime, ask=asks("why?"))
    output = await way(graph, "invoke", HELLO, config())
    assert [one.value for one in output["__interrupt__"]] == ["why?"]
    (run,) = await way(runtime.runs, "list")
    assert (run.status, run.phase, run.shown) == ("waiting_approval", "released", "waiting_approval")
    question = await way(runtime.runs, "question", run.run_id)
    assert (question["kind"], question["next"], question["interrupts"][0]["value"]) == ("interrupt", ["ask"], "why?")
    assert (await way(graph, "invoke", resume("because"), config()))["log"] == ["because"]
    assert await runs(runtime, way) == [("succeeded", None, 2)]
    assert [row["cause"] for row in raw.rows("SELECT cause FROM rp_attempts ORDER BY attempt_no")] == [
        "initial",
        "resume",
    ]
    assert await way(runtime.runs, "question", run.run_id) is None


async def test_new_input_on_a_waiting_thread_supersedes_its_run(runtime, way):
    graph = bound(runtime, ask=asks("why?"))
    await way(graph, "invoke", HELLO, config())
    await way(graph, "invoke", {"log": ["new"]}, config())
    assert await runs(runtime, way) == [("waiting_approval", None, 1), ("cancelled", "superseded", 1)]
    assert (await way(graph, "invoke", resume("because"), config()))["log"] == ["new", "because"]


async def test_a_person_may_edit_the_state_while_the_run_waits(runtime, way):
    graph = bound(runtime, ask=asks("why?"), then=says("then"))
    await way(graph, "invoke", HELLO, config())
    await way(graph, "update_state", config(), {"log": ["edited"]}, as_node="ask")
    assert (await way(graph, "invoke", None, config()))["log"] == ["edited", "then"]


async def test_a_person_may_edit_the_state_and_then_answer(runtime, way):
    graph = bound(runtime, ask=asks("why?"), then=says("then"))
    await way(graph, "invoke", HELLO, config())
    await way(graph, "update_state", config(), {"log": ["edited"]}, as_node="__start__")
    assert (await way(graph, "invoke", resume("because"), config()))["log"] == ["edited", "because", "then"]


async def test_a_breakpoint_waits_too(runtime, way):
    graph = bound(runtime, a=says("a"), b=says("b"))
    await way(graph, "invoke", HELLO, config(), interrupt_before=["b"])
    (run,) = await way(runtime.runs, "list")
    assert (await way(runtime.runs, "question", run.run_id))["kind"] == "breakpoint"
    assert (await way(graph, "invoke", None, config()))["log"] == ["a", "b"]


async def test_a_live_run_has_the_thread(runtime, open_runtime, way):
    other, refused = bound(open_runtime()), []

    def node(_):
        for given in (HELLO, None, resume("x")):
            with pytest.raises(ThreadOwned) as caught:
                other.invoke(given, config())
            refused.append(caught.value.details["run_id"])
        other.invoke(HELLO, config("another thread"))
        return {"log": ["x"]}

    await way(bound(runtime, node=node), "invoke", HELLO, config())
    (run,) = await way(runtime.runs, "list", thread_id="t")
    assert (run.status, refused) == ("succeeded", [run.run_id] * 3)


async def test_a_queued_run_has_the_thread_for_new_input(runtime, way):
    graph = bound(runtime)
    run = await way(runtime.runs, "start", "g", {"log": ["queued"]}, thread_id="t")
    with pytest.raises(ThreadOwned, match="queued"):
        await way(graph, "invoke", HELLO, config())
    assert (await way(graph, "invoke", None, config()))["log"] == ["queued", "x"]
    assert (await way(run, "record")).status == "succeeded"


async def test_none_continues_a_run_that_was_left_behind(runtime, way, raw):
    def leaves(_):
        run_out(raw)
        return {"log": ["late"]}

    with pytest.raises(LeaseExpired):
        await way(bound(runtime, a=says("a"), b=leaves), "invoke", HELLO, config(), durability="sync")
    assert (await way(bound(runtime, a=says("a"), b=says("b")), "invoke", None, config()))["log"] == ["a", "b"]
    assert await runs(runtime, way) == [("succeeded", None, 2)]
    assert [row["cause"] for row in raw.rows("SELECT cause FROM rp_attempts ORDER BY attempt_no")] == [
        "initial",
        "takeover",
    ]


async def test_new_input_ends_a_run_that_was_left_behind(runtime, way, raw):
    with pytest.raises(LeaseExpired):
        await way(bound(runtime, a=lambda _: run_out(raw), b=says("b")), "invoke", HELLO, config(), durability="sync")
    await way(bound(runtime), "invoke", {"log": ["new"]}, config())
    assert await runs(runtime, way) == [("succeeded", None, 1), ("cancelled", "superseded", 1)]


async def test_a_stream_that_is_closed_early_leaves_the_run_cancelled(runtime, way, raw):
    graph = bound(runtime, a=says("a"), b=says("b"))
    await way.first(graph, "stream", HELLO, config(), stream_mode="updates")
    assert await runs(runtime, way) == [("cancelled", None, 1)]
    assert raw.value("SELECT termination_reason FROM rp_attempts") == "caller_left"
    assert (await way(graph, "invoke", {"log": ["again"]}, config()))["log"][-2:] == ["a", "b"]


async def test_a_cancelled_task_leaves_the_run_cancelled_once_its_loop_ended(runtime):
    started, ended = asyncio.Event(), []

    async def waits(_):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(1)

    call = asyncio.ensure_future(bound(runtime, waits=waits).ainvoke(HELLO, config()))
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    (run,) = await runtime.runs.alist()
    assert (run.status, run.phase, ended) == ("cancelled", "released", [1])


async def test_a_running_run_that_is_cancelled_stops_at_its_next_step(frequent_heartbeats, open_runtime, way):
    """It hears of it with its next heartbeat, without writing anything."""
    runtime, ran = open_runtime(), []

    def stops(_):
        (run,) = runtime.runs.list()
        assert runtime.runs.cancel(run.run_id) == "running"
        assert runtime.runs.get(run.run_id).shown == "cancelling"
        owned = next(iter(runtime.engine.heartbeats._runs))
        wait_until(lambda: owned.stop_reason, "a heartbeat brought the news")
        return {"log": ["stopped"]}

    graph = bound(runtime, stops=stops, then=lambda _: ran.append(1))
    with pytest.raises(RunStopping, match="cancel"):
        await way(graph, "invoke", HELLO, config())
    assert ran == []
    assert await runs(runtime, way) == [("cancelled", "cancel", 1)]
    assert (await way(graph, "get_state", config())).values["log"] == ["stopped"]


async def test_heartbeats_keep_the_lease_of_a_node_that_blocks(frequent_heartbeats, open_runtime, raw_of, way):
    runtime = open_runtime()
    raw = raw_of(runtime)

    def blocks(_):
        for _ in range(3):  # twice as long as the lease lasts passes, as it were
            (row,) = raw.rows("UPDATE rp_runs SET expires_us = expires_us - 20000000 RETURNING expires_us")
            ends = row["expires_us"]
            wait_until(lambda: raw.value("SELECT expires_us FROM rp_runs") > ends + 1_000_000, "a heartbeat")  # noqa: B023
        (run,) = runtime.runs.list()
        assert run.shown == "running"
        return {"log": ["x"]}

    assert (await way(bound(runtime, blocks=blocks), "invoke", HELLO, config()))["log"] == ["x"]


async def test_a_bound_graph_inside_a_node_is_a_run_of_its_own(runtime, way):
    inner = bound(runtime)

    def node(_):
        return {"log": inner.invoke(HELLO, config("inner thread"))["log"]}

    outer = runtime.bind(chain({"node": node}), name="outer")
    assert (await way(outer, "invoke", HELLO, config()))["log"] == ["x"]
    assert sorted((run.graph, run.thread_id, run.status) for run in await way(runtime.runs, "list")) == [
        ("g", "inner thread", "succeeded"),
        ("outer", "t", "succeeded"),
    ]
