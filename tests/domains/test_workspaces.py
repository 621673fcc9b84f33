"""``workspace``: a node works in a directory that nobody else works in, and a takeover knows of it."""

import asyncio
import os
import threading

import pytest

from runtime_persist import workspace
from runtime_persist.errors import InvalidInput, OperationNeedsRun, RunFailed, WorkspaceBusy
from runtime_persist.model.domains import DomainState, Proof
from tests.fixtures.raw import wait_until
from tests.support import programs_domains
from tests.support.children import alive
from tests.support.graphs import chain, says
from tests.support.leases import run_out

CONFIG = {"configurable": {"thread_id": "t"}}


def domains_of(runtime):
    (record,) = runtime.runs.list()
    return record, runtime.runs.domains(record.run_id)


async def test_a_node_that_works_in_a_directory_opens_and_closes_its_domain(runtime, tmp_path, way):
    seen = []

    def node(_):
        with workspace(tmp_path) as place:
            seen.append(place.path)
            return {"log": ["x"]}

    async def anode(_):
        async with workspace(str(tmp_path)) as place:
            seen.append(place.path)
            return {"log": ["x"]}

    graph = runtime.bind(chain({"node": node if way.name == "sync" else anode}), name="g")
    assert (await way(graph, "invoke", {"log": []}, CONFIG))["log"] == ["x"]
    record, (domain,) = domains_of(runtime)
    assert record.status == "succeeded"
    assert (domain.kind, domain.handle["path"], domain.handle["pid"]) == ("workspace", str(tmp_path), os.getpid())
    assert (domain.state, domain.receipt.how) == (DomainState.REVOKED, Proof.CLOSED)
    assert seen == [tmp_path]


def test_a_directory_is_one_nodes_at_a_time_also_outside_runs(runtime, tmp_path):
    def node(_):
        with pytest.raises(WorkspaceBusy), workspace(tmp_path):
            pass
        return {"log": ["refused"]}

    graph = runtime.bind(chain({"node": node}), name="g")
    with workspace(tmp_path) as place:
        assert place.path == tmp_path
        assert graph.invoke({"log": []}, CONFIG)["log"] == ["refused"]
    with workspace(tmp_path):
        pass
    assert domains_of(runtime)[1] == []


def test_a_node_that_raises_lets_go_of_the_directory(runtime, tmp_path):
    def node(_):
        with workspace(tmp_path):
            msg = "no luck"
            raise ValueError(msg)

    with pytest.raises(ValueError, match="no luck"):
        runtime.bind(chain({"node": node}), name="g").invoke({"log": []}, CONFIG)
    record, (domain,) = domains_of(runtime)
    assert (record.status, domain.receipt.how) == ("failed", Proof.CLOSED)


def test_a_graph_that_belongs_to_no_run_cannot_open_one(tmp_path):
    def node(_):
        with workspace(tmp_path):
            pass

    with pytest.raises(OperationNeedsRun):
        chain({"node": node}).invoke({"log": []})


def test_it_is_used_inside_its_block_only_and_once_at_a_time(tmp_path):
    place = workspace(tmp_path)
    with pytest.raises(InvalidInput):
        _ = place.path
    with place, pytest.raises(InvalidInput), place:
        pass
    with place:
        assert place.environ["PATH"] == os.environ["PATH"]


def test_a_dead_workers_directory_is_free_only_when_its_programs_are_ended(
    runtime, shared_url, fork, raw, tmp_path, works
):
    graphs = {"g": chain({"node": says("second"), "after": says("after")})}
    runtime.bind(graphs["g"], name="g")
    run = runtime.runs.start("g", {"log": []}, thread_id="t")
    worker = fork(programs_domains.with_a_workspace, shared_url, str(tmp_path))
    program, _ = worker.until("in node")
    worker.kill()
    run_out(raw)
    assert alive(program)
    works(graphs)
    assert not alive(program)
    assert runtime.runs.domains(run.run_id)[0].receipt.how is Proof.KILLED
    assert run.result(timeout=0)["log"] == ["second", "after"]


def test_a_slow_workers_directory_is_never_taken_from_it(runtime, shared_url, fork, raw, tmp_path, working):
    """Its lease ran out, but it works there still: the takeover waits until it has let go."""
    graphs = {"g": chain({"node": says("second"), "after": says("after")})}
    runtime.bind(graphs["g"], name="g")
    run = runtime.runs.start("g", {"log": []}, thread_id="t")
    slow = fork(programs_domains.with_a_workspace, shared_url, str(tmp_path), lease_ttl=3600.0)
    program, _ = slow.until("in node")
    run_out(raw)
    reports = working(graphs)
    wait_until(lambda: "blocked" in [what for what, _ in reports], "the takeover is blocked")
    assert alive(program)
    slow.give_the_word()
    slow.until("closed")
    assert run.result(timeout=30)["log"] == ["second", "after"]
    assert runtime.runs.domains(run.run_id)[0].receipt.how is Proof.CLOSED


def test_a_run_past_its_deadline_ends_when_its_node_has_let_go_of_the_directory(open_runtime, tmp_path, working):
    """The worker does not stop a node on a thread: until it returns the run does not end, and the lease is renewed."""
    inside, go = threading.Event(), threading.Event()

    def node(_):
        with workspace(tmp_path):
            inside.set()
            go.wait(30)
        return {"log": ["late"]}

    graphs = {"g": chain({"node": node})}
    runtime = open_runtime(lease_ttl=1.0)
    runtime.bind(graphs["g"], name="g")
    run = runtime.runs.start("g", {"log": []}, thread_id="t", deadline=0.5)
    working(graphs, of=runtime, stop_grace_seconds=0.0)
    inside.wait(30)
    wait_until(lambda: run.record().control == "stopping", "it is to stop")
    for _ in range(3):
        before = run.record().expires_us
        wait_until(lambda: run.record().expires_us > before, "the lease is renewed")  # noqa: B023 (used at once)
    assert (run.record().status, run.record().epoch) == ("running", 1)
    go.set()
    with pytest.raises(RunFailed, match="timed_out"):
        run.result(timeout=30)
    assert runtime.runs.domains(run.run_id)[0].receipt.how is Proof.CLOSED
    assert run.record().epoch == 1


def test_many_tasks_each_have_their_own_directory(runtime, tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()

    async def work(name):
        async with workspace(tmp_path / name):
            await asyncio.sleep(0)
            return name

    async def node(_):
        return {"log": list(await asyncio.gather(work("a"), work("b")))}

    graph = runtime.bind(chain({"node": node}), name="g")
    assert asyncio.run(graph.ainvoke({"log": []}, CONFIG))["log"] == ["a", "b"]
    record, found = domains_of(runtime)
    assert [one.state for one in found] == [DomainState.REVOKED] * 2
    assert record.status == "succeeded"
