"""A run belongs to the version of the graph it was started with: whoever has not that version leaves it alone."""

import threading

import pytest

from runtime_persist.adapters.workflow.definition import version_of
from runtime_persist.errors import InvalidInput
from runtime_persist.worker import RegisteredGraph, Worker
from tests.support.capacity import written
from tests.support.graphs import asks, chain, fanned, nested, resume, says
from tests.support.leases import run_out
from tests.support.way import SYNC

V1 = {"b": says("b of 1")}
V2 = {"b2": says("b of 2"), "c": says("c")}


@pytest.fixture
def way():
    """The sync way alone: what is asked for in either way is the same row, and that is what workers see."""
    return SYNC


def v1(**options):
    return RegisteredGraph(chain(V1), version="v1", **options)


def v2(**options):
    return RegisteredGraph(chain(V2), version="v2", **options)


@pytest.fixture
def queued(runtime, way):
    async def starts(graph, version):
        runtime.bind(graph, name="g", version=version)
        return await way(runtime.runs, "start", "g", {"log": []}, thread_id="t")

    return starts


async def test_a_worker_of_another_version_changes_nothing_at_all(way, works, queued, raw):
    run = await queued(chain(V2), "v2")
    works({"g": v1()})  # registers its version
    before = written(raw)
    for _ in range(3):
        assert works({"g": v1()}) == []
    assert written(raw) == before
    assert (await way(run, "record")).attempt_no == 0
    works({"g": v2()})
    assert (await way(run, "result", timeout=0))["log"] == ["b of 2", "c"]


async def test_a_worker_that_leaves_runs_alone_waits_between_its_looks(runtime, queued, monkeypatch):
    """No hot loop: one look at the database a pause, and not one claim."""
    await queued(chain(V2), "v2")
    worker = Worker(runtime, {"g": v1()}, poll_seconds=0.25)
    # That the run was queued is told some time later, and is a reason for one more look.
    monkeypatch.setattr(worker, "_wake", lambda _message: None)
    coordinator = runtime.engine.coordinator
    looks, read = [], coordinator.read

    def counted(name, *args, **options):
        if name == "read_heads":
            looks.append(len(pauses))
            if len(looks) == 4:
                worker.stop()
        return read(name, *args, **options)

    pauses, wait = [], worker._changed.wait

    def paused(timeout):
        pauses.append(timeout)
        return wait(0.001)

    monkeypatch.setattr(coordinator, "read", counted)
    monkeypatch.setattr(worker._changed, "wait", paused)
    thread = threading.Thread(target=worker.run)
    thread.start()
    thread.join()
    assert looks == [0, 1, 2, 3]
    assert pauses[:3] == [0.25] * 3


@pytest.mark.parametrize("accepted", [["v1"], ["v0", "v1"], ["*"]])
async def test_a_new_version_adopts_the_runs_of_those_it_says_it_is_compatible_with(way, works, queued, accepted):
    run = await queued(chain(V1), "v1")
    works({"g": v2(compatible_with=accepted)})
    assert (await way(run, "result", timeout=0))["log"] == ["b of 2", "c"]
    assert (await way(run, "record")).graph_version == "v1"


async def test_the_version_counts_for_takeovers_retries_and_answers_too(runtime, way, works, queued, raw):
    run = await queued(chain({"ask": asks("why?")}), "v1")
    works({"g": RegisteredGraph(chain({"ask": asks("why?")}), version="v1")})
    await way(runtime.runs, "answer", run.run_id, resume("because"))
    assert works({"g": v2()}) == []
    for status in ("running", "lost"):
        raw.rows("UPDATE rp_runs SET status = ?, phase = 'active', expires_us = 1", status)
        assert [what for what, _ in works({"g": v2()})] == []
    raw.rows("UPDATE rp_runs SET status = 'retry_wait', phase = 'released', expires_us = 0, next_attempt_us = 1")
    assert works({"g": v2()}) == []
    assert (await way(run, "record")).attempt_no == 1


async def test_what_was_left_behind_by_a_version_nobody_has_is_shown_as_lost(runtime, way, works, raw):
    def leaves(_):
        run_out(raw)
        return {"log": ["late"]}

    graph = runtime.bind(chain({"a": says("a"), "b": leaves}), name="g", version="v1")
    with pytest.raises(RuntimeError):
        await way(graph, "invoke", {"log": []}, {"configurable": {"thread_id": "t"}}, durability="sync")
    assert works({"g": v2()}) == []
    (run,) = await way(runtime.runs, "list")
    assert (run.status, run.shown, run.attempt_no, run.epoch) == ("lost", "unknown", 1, 1)
    works({"g": RegisteredGraph(chain({"a": says("a"), "b": says("b")}), version="v1")})
    assert (await way(runtime.runs, "result", run.run_id, timeout=0))["log"] == ["a", "b"]


async def test_a_stopping_run_that_was_left_behind_is_ended_by_any_worker(runtime, way, works, queued, raw):
    run = await queued(chain(V1), "v1")
    raw.rows(
        "UPDATE rp_runs SET status = 'lost', phase = 'active', expires_us = 1, worker_id = 'w', "
        "control = 'stopping', stop_reason = 'cancel'"
    )
    works({"other": chain({"node": says("x")})})
    assert (await way(run, "record")).status == "cancelled"


async def test_a_run_belongs_to_the_version_its_own_process_has_bound(runtime, open_runtime, way, works, queued):
    """In a rolling deployment the old release may register itself again at any time."""
    run = await queued(chain(V2), None)
    open_runtime().bind(chain(V1), name="g")
    again = await way(runtime.runs, "start", "g", {"log": []}, thread_id="t2")
    works({"g": RegisteredGraph(chain(V2))})
    assert [(await way(one, "record")).status for one in (run, again)] == ["succeeded"] * 2


def test_the_version_is_made_of_names_and_edges_and_not_of_code():
    base = version_of(chain({"a": says("x"), "b": says("y")}))
    assert version_of(chain({"a": says("other"), "b": asks("why?")})) == base
    assert version_of(chain({"a": says("x"), "b": says("y")}, interrupt_before=["b"])) == base
    others = [
        chain({"a": says("x")}),
        chain({"b": says("x"), "a": says("y")}),
        chain({"a": says("x"), "b2": says("y")}),
        fanned(says("x")),
        nested(chain({"a": says("x")})),
        nested(chain({"a2": says("x")})),
    ]
    assert len({base, *map(version_of, others)}) == len(others) + 1
    assert version_of(fanned(says("x"))) == version_of(fanned(says("y")))


@pytest.mark.parametrize("version", ["", "*", 7])
def test_a_version_that_cannot_be_meant_is_refused(runtime, version):
    with pytest.raises(InvalidInput, match="version"):
        runtime.bind(chain(V1), name="g", version=version)
