"""A worker and its instance: what it reports, when, and what counts when nodes hang or hosts forget."""

import threading

import pytest

from runtime_persist.errors import CapacityReached, InvalidInput, RunFailed
from runtime_persist.worker import RegisteredGraph, Worker
from tests.fixtures.raw import wait_until
from tests.support.graphs import chain, says


@pytest.fixture
def working(runtime):
    """Starts workers, each on a thread of its own; they are stopped after the test."""
    started = []

    def starts(graphs, **options):
        worker = Worker(runtime, graphs, poll_seconds=0.01, sweep_seconds=0, **options)
        thread = threading.Thread(target=worker.run)
        thread.start()
        started.append((worker, thread))
        return worker

    yield starts
    for worker, _ in started:
        worker.stop()
    for _, thread in started:
        thread.join()


def instances(raw):
    return raw.rows(
        "SELECT slots, active_task_ids, draining, graphs, expires_us - reported_us AS ttl FROM rp_instances"
    )


def test_a_worker_reports_itself_and_is_gone_when_it_stops(runtime, raw, working):
    worker = working({"g": RegisteredGraph(chain({"n": says("x")}), version="v1")}, slots=3)
    (row,) = wait_until(lambda: instances(raw), "it has reported")
    assert (row["slots"], row["active_task_ids"], row["draining"]) == (3, "[]", 0)
    assert row["graphs"] == '{"g":["v1"]}'
    worker.stop()
    wait_until(lambda: instances(raw)[0]["draining"], "it said that it leaves")
    assert instances(raw)[0]["ttl"] < 1_000_000


def test_a_report_that_ran_out_is_renewed_before_the_next_claim(runtime, raw, working):
    graph = chain({"n": says("x")})
    runtime.bind(graph, name="g")
    working({"g": graph})
    wait_until(lambda: instances(raw), "it has reported")
    raw.rows("UPDATE rp_instances SET expires_us = 0")
    assert runtime.runs.start("g", {"log": []}).result(timeout=20)["log"] == ["x"]
    assert instances(raw)[0]["ttl"] > 1_000_000


def test_a_node_that_hangs_past_its_deadline_blocks_neither_its_graph_nor_more_than_its_slot(runtime, raw, working):
    """Its run ends at the deadline and its graph's only place is free; its thread still occupies the slot it has."""
    hangs = threading.Event()

    def node(state):
        if state["log"] == ["hang"]:
            hangs.wait()
        return {"log": ["ran"]}

    graph = chain({"n": node})
    runtime.bind(graph, name="narrow", max_concurrency=1)
    stuck = runtime.runs.start("narrow", {"log": ["hang"]}, deadline=0.5)
    behind = runtime.runs.start("narrow", {"log": []})
    working({"narrow": graph}, slots=2, stop_grace_seconds=0)
    try:
        assert "ran" in behind.result(timeout=30)["log"]
        with pytest.raises(RunFailed, match="timed_out"):
            stuck.result(timeout=0)
        task = f"{stuck.run_id}:1"
        wait_until(lambda: task in instances(raw)[0]["active_task_ids"], "the thread that hangs is reported")
    finally:
        hangs.set()
    wait_until(lambda: instances(raw)[0]["active_task_ids"] == "[]", "it has returned")


def test_a_call_of_a_bound_graph_without_a_place_is_told_so_and_starts_nothing(runtime, raw):
    inside, go = threading.Event(), threading.Event()

    def node(_):
        inside.set()
        go.wait()
        return {"log": []}

    durable = runtime.bind(chain({"n": node}), name="g", max_concurrency=1)
    first = threading.Thread(target=durable.invoke, args=({"log": []}, {"configurable": {"thread_id": "a"}}))
    first.start()
    inside.wait()
    with pytest.raises(CapacityReached, match="max_concurrency=1"):
        durable.invoke({"log": []}, {"configurable": {"thread_id": "b"}})
    go.set()
    first.join()
    assert [one.thread_id for one in runtime.runs.list()] == ["a"]
    assert raw.value("SELECT instance_id FROM rp_runs") is None


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "2"])
def test_a_limit_that_cannot_be_meant_is_refused(runtime, limit):
    with pytest.raises(InvalidInput, match="max_concurrency"):
        runtime.bind(chain({"n": says("x")}), name="g", max_concurrency=limit)


def test_a_worker_that_has_worked_until_nothing_was_left_works_again(runtime, raw):
    graph = chain({"n": says("x")})
    runtime.bind(graph, name="g")
    worker = Worker(runtime, {"g": graph}, poll_seconds=0.01)
    for _ in range(2):
        run = runtime.runs.start("g", {"log": []})
        worker.run(until_idle=True)
        assert run.result(timeout=0)["log"] == ["x"]


def test_a_report_that_does_not_count_any_more_ends_no_worker_that_works_until_nothing_is_left(runtime, raw):
    graph = chain({"n": says("x")})
    runtime.bind(graph, name="g")
    runs = [runtime.runs.start("g", {"log": []}) for _ in range(2)]

    def told(what, _):
        if what == "claimed":
            raw.rows("UPDATE rp_instances SET expires_us = 0")

    Worker(runtime, {"g": graph}, poll_seconds=0.01, report=told).run(until_idle=True)
    assert [run.record().status for run in runs] == ["succeeded"] * 2
