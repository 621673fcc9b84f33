"""A worker in this process: it finishes what is queued, in order, and nothing that is not its own."""

import threading

import pytest

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
