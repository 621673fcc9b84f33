"""A worker in this process: it finishes what is queued, in order, and nothing that is not its own."""

import asyncio
import threading

import pytest

from runtime_persist import Runtime
from runtime_persist.errors import ResultPending, RunCancelled, RunFailed
from runtime_persist.worker import Worker
from tests.support.graphs import asks, chain, config, fails, resume, says
from tests.support.leases import run_out


async def test_it_finishes_queued_runs_with_their_inputs(runtime, way, works, start):
    graphs = {"g": chain({"node": says("x")})}
    runs = [await start(graphs, "g", {"log": [n]}, thread_id=f"t{n}") for n in range(3)]
    reports = works(graphs, slots=2)
    assert [(await way(run, "result", timeout=0))["log"] for run in runs] == [[n, "x"] for n in range(3)]
    assert sorted(what for what, _ in reports) == ["claimed"] * 3 + ["finished"] * 3
    assert {facts["run_id"] for _, facts in reports} == {run.run_id for run in runs}


async def test_runs_of_one_thread_come_one_behind_the_other(runtime, way, works, start):
    inside, together = [], []

    def node(state):
        inside.append(1)
        together.append(len(inside))
        inside.pop()
        return {"log": [len(state["log"])]}

    graphs = {"g": chain({"node": node})}
    runs = [await start(graphs, "g", {"log": [f"run {n}"]}, thread_id="t") for n in range(4)]
    works(graphs, slots=4)
    logs = [(await way(run, "result", timeout=0))["log"] for run in runs]
    assert logs[-1] == ["run 0", 1, "run 1", 3, "run 2", 5, "run 3", 7]
    assert together == [1, 1, 1, 1]


async def test_a_run_of_a_graph_it_does_not_have_is_left_alone(runtime, way, works, start):
    run = await start({"other": chain({"node": says("x")})}, "other", thread_id="t")
    assert works({"g": chain({"node": says("x")})}) == []
    record = await way(run, "record")
    assert (record.status, record.attempt_no) == ("queued", 0)


async def test_a_failed_run_says_why_and_the_next_one_goes_on(runtime, way, works, start):
    graphs = {"bad": chain({"node": fails(ValueError("no luck"))}), "good": chain({"node": says("x")})}
    bad = await start(graphs, "bad", thread_id="t")
    good = await start(graphs, "good", thread_id="t")
    reports = works(graphs)
    with pytest.raises(RunFailed, match="no luck"):
        await way(bad, "result", timeout=0)
    assert (await way(good, "result", timeout=0))["log"] == ["x"]
    assert ("stopped", "ValueError") in [(what, facts.get("code")) for what, facts in reports]


class NotAnError(BaseException):
    """What some frameworks raise through everything that catches errors."""


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), KeyboardInterrupt(), NotAnError("x"), Mute(), asyncio.CancelledError()],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync node", "async node"])
async def test_whatever_a_node_raises_is_its_failure_and_the_worker_goes_on(
    runtime, way, works, start, error, asynchronous
):
    async def araises(_):
        raise error

    graphs = {"bad": chain({"node": araises if asynchronous else fails(error)}), "good": chain({"node": says("x")})}
    bad = await start(graphs, "bad", thread_id="t")
    good = await start(graphs, "good", thread_id="t")
    reports = works(graphs)
    record = await way(bad, "record")
    code = "NodeCancelledError" if isinstance(error, asyncio.CancelledError) else type(error).__name__
    assert (record.status, record.error_code) == ("failed", code)
    assert (await way(good, "result", timeout=0))["log"] == ["x"]
    assert [what for what, _ in reports] == ["claimed", "stopped", "claimed", "finished"]


async def test_a_question_waits_and_its_answer_is_worked_on(runtime, way, works, start):
    graphs = {"g": chain({"ask": asks("why?")})}
    run = await start(graphs, "g", thread_id="t")
    works(graphs)
    with pytest.raises(ResultPending, match="waiting_approval"):
        await way(run, "result", timeout=0)
    assert await way(runtime.runs, "answer", run.run_id, resume("because")) == "queued"
    works(graphs)
    assert (await way(run, "result", timeout=0))["log"] == ["because"]


async def test_a_running_run_that_is_cancelled_ends_cancelled(runtime, way, works, start):
    def cancels(_):
        runtime.runs.cancel(runtime.runs.list()[0].run_id)
        return {"log": ["x"]}

    graphs = {"g": chain({"node": cancels})}
    run = await start(graphs, "g", thread_id="t")
    works(graphs)
    with pytest.raises(RunCancelled):
        await way(run, "result", timeout=0)


async def test_an_owned_call_that_was_left_behind_is_finished_by_a_worker(runtime, way, works, raw):
    def leaves(_):
        run_out(raw)
        return {"log": ["late"]}

    graph = runtime.bind(chain({"a": says("a"), "b": leaves}), name="g")
    with pytest.raises(RuntimeError):
        await way(graph, "invoke", {"log": []}, config(), durability="sync")
    works({"g": chain({"a": says("a"), "b": says("b")})})
    (run,) = await way(runtime.runs, "list")
    assert (run.status, run.attempt_no, run.epoch) == ("succeeded", 2, 2)
    assert (await way(runtime.runs, "result", run.run_id))["log"] == ["a", "b"]


async def test_its_own_live_run_is_not_adopted(runtime, way, works):
    """User pain B7: recovery in the process that is running the workflow ran the body twice."""
    entered = []

    def node(_):
        entered.append(1)
        works({"g": chain({"node": says("adopted")})})
        return {"log": ["x"]}

    graph = runtime.bind(chain({"node": node}), name="g")
    assert (await way(graph, "invoke", {"log": []}, config()))["log"] == ["x"]
    assert entered == [1]


async def test_a_run_that_shall_come_now_is_the_next_one_and_exceeds_no_slot(way, works, start, raw):
    inside, order = [], []

    def node(state):
        inside.append(1)
        order.append((state["log"][0], len(inside)))
        inside.pop()

    graphs = {"g": chain({"node": node})}
    runs = [await start(graphs, "g", {"log": [n]}, thread_id=f"t{n}") for n in range(3)]
    assert await way(runs[2], "now") == "queued"
    works(graphs)
    assert order == [(2, 1), (0, 1), (1, 1)]


async def test_a_worker_that_stops_claims_nothing_more(runtime, way, start):
    graphs = {"g": chain({"node": says("x")})}
    run = await start(graphs, "g", thread_id="t")
    worker = Worker(runtime, graphs)
    worker.stop()
    thread = threading.Thread(target=worker.run)
    thread.start()
    thread.join()
    assert (await way(run, "record")).status == "queued"


async def test_what_was_claimed_when_the_worker_was_told_to_end_runs_no_node_and_keeps_its_place(
    runtime, way, works, start, raw
):
    ran = []
    graphs = {"g": chain({"node": lambda _: ran.append(1) or {"log": ["x"]}})}
    runs = [await start(graphs, "g", {"log": [n]}, thread_id=f"t{n}") for n in range(2)]
    _claims_and_ends(runtime, graphs)
    assert ran == []
    assert raw.rows("SELECT status, termination_reason FROM rp_attempts") == [
        {"status": "yielded", "termination_reason": "drain"}
    ]
    assert (await way(runs[0], "record")).status == "queued"
    claimed = [facts["run_id"] for what, facts in works(graphs) if what == "claimed"]
    assert claimed == [run.run_id for run in runs]
    assert [(await way(run, "result", timeout=0))["log"] for run in runs] == [[0, "x"], [1, "x"]]


def _claims_and_ends(runtime, graphs):
    """A worker that is told to end between a claim and its execution."""
    worker = Worker(runtime, graphs, report=lambda what, _: worker.stop() if what == "claimed" else None)
    working = threading.Thread(target=worker.run)
    working.start()
    working.join()


async def test_a_takeover_that_was_claimed_when_the_worker_was_told_to_end_counts_for_nothing(
    runtime, way, works, start, raw
):
    graphs = {"g": chain({"node": says("x")})}
    run = await start(graphs, "g", {"log": [0]}, thread_id="t")
    _claims_and_ends(runtime, graphs)
    raw.rows("UPDATE rp_attempts SET status = 'running', ended_us = NULL, termination_reason = NULL")
    raw.rows("UPDATE rp_runs SET status = 'running', phase = 'active', expires_us = 1")  # as if it had not ended it
    _claims_and_ends(runtime, graphs)
    assert raw.rows("SELECT status, phase, takeovers, attempt_no, epoch FROM rp_runs") == [
        {"status": "lost", "phase": "released", "takeovers": 0, "attempt_no": 1, "epoch": 2}
    ]
    works(graphs)
    assert (await way(run, "result", timeout=0))["log"] == [0, "x"]
    assert raw.value("SELECT takeovers FROM rp_runs") == 1


async def test_an_error_of_who_listens_to_reports_stops_no_run_and_no_worker(runtime, way, works, start):
    def raises(_what, _facts):
        raise OSError

    graphs = {"good": chain({"node": says("x")}), "bad": chain({"node": fails(ValueError("no luck"))})}
    runs = [await start(graphs, "good", thread_id="a"), await start(graphs, "bad", thread_id="b")]
    works(graphs, report=raises)
    assert [(await way(run, "record")).status for run in runs] == ["succeeded", "failed"]


async def test_a_claim_for_which_the_system_gives_no_thread_is_given_back_and_counts_as_no_failure(
    runtime, way, works, start, monkeypatch
):
    refused = []
    begin = threading.Thread.start

    def starts(thread):
        if thread.name.startswith("run-") and not refused:
            refused.append(thread.name)
            msg = "can't start new thread"
            raise RuntimeError(msg)
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", starts)
    graphs = {"g": chain({"node": says("x")})}
    run = await start(graphs, "g")
    works(graphs)
    works(graphs)
    record = await way(run, "record")
    assert len(refused) == 1
    assert (record.status, record.attempt_no, record.failures) == ("succeeded", 2, 0)


def test_a_worker_waits_while_its_file_cannot_be_written_to(tmp_path):
    graphs = {"g": chain({"node": says("x")})}
    with Runtime.open(f"sqlite:///{tmp_path}/a.db") as runtime:
        reports, writer = [], runtime.engine._driver._writer

        def told(what, facts):
            reports.append((what, facts.get("code")))
            if what == "waiting":
                writer.execute("PRAGMA query_only=0")
            elif len(reports) == 2:  # the first run has ended
                writer.execute("PRAGMA query_only=1")

        runtime.bind(graphs["g"], name="g")
        runs = [runtime.runs.start("g", {"log": []}, thread_id=f"t{n}") for n in range(2)]
        worker = Worker(runtime, graphs, poll_seconds=0.01, report=told)
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            assert [run.result(timeout=60)["log"] for run in runs] == [["x"], ["x"]]
        finally:
            worker.stop()
            thread.join()
    assert reports[:4] == [
        ("claimed", None),
        ("finished", None),
        ("waiting", "DATABASE_UNAVAILABLE"),
        ("claimed", None),
    ]
