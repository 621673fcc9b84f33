"""Cancelling is an intent first and an end only when it is proved that nothing runs; asking again changes nothing."""

import pytest

from runtime_persist import RetryPolicy, operation
from runtime_persist.errors import RunCancelled, RunStopping
from runtime_persist.model.states import FINAL_RUN, RunStatus
from tests.support import programs
from tests.support.graphs import asks, chain, fails, says
from tests.support.leases import run_out


@pytest.fixture
def graphs(runtime):
    made = {"g": chain({"node": says("x"), "after": says("y")}), "asks": chain({"ask": asks("why?")})}
    made["fails"] = chain({"node": fails(ValueError("no luck"))})
    for name, graph in made.items():
        runtime.bind(graph, name=name)
    return made


async def ended(way, run, raw):
    """It ended cancelled, once; asking again writes nothing."""
    before = raw.dump()
    for _ in range(2):
        assert await way(run, "cancel") == "cancelled"
    assert {name: rows for name, rows in raw.dump().items() if name != "rp_receipts"} == {
        name: rows for name, rows in before.items() if name != "rp_receipts"
    }
    with pytest.raises(RunCancelled, match="cancel"):
        await way(run, "result", timeout=0)
    ends = raw.rows("SELECT type FROM rp_events WHERE run_id = ? AND type = 'run.cancelled'", run.run_id)
    assert len(ends) == 1


@pytest.mark.parametrize(("graph", "status"), [("g", "queued"), ("asks", "waiting_approval"), ("fails", "retry_wait")])
async def test_a_run_of_which_nothing_runs_ends_at_once(way, works, start, graphs, raw, graph, status):
    run = await start(graphs, graph, thread_id="t", retry=RetryPolicy(backoff=1_800, backoff_max=1_800))
    if status != "queued":
        works(graphs)
    assert (await way(run, "record")).status == status
    assert await way(run, "cancel") == "cancelled"
    await ended(way, run, raw)


@pytest.mark.parametrize("graph", ["g", "fails"])
async def test_a_run_that_has_ended_stays_as_it_is(way, works, start, graphs, raw, graph):
    run = await start(graphs, graph, thread_id="t")
    works(graphs)
    status = (await way(run, "record")).status
    assert status in FINAL_RUN
    before = raw.rows("SELECT * FROM rp_events")
    assert await way(run, "cancel") == status
    assert raw.rows("SELECT * FROM rp_events") == before


async def test_a_run_that_is_executed_takes_no_new_work_and_ends_when_it_has_stopped(runtime, way, works, start, raw):
    called = []

    @operation(name="call")
    def call(*, idempotency_key):
        called.append(1)

    def node(_):
        assert runtime.runs.cancel(run.run_id) == "running"
        record = runtime.runs.get(run.run_id)
        assert (record.status, record.shown, record.control) == ("running", "cancelling", "stopping")
        with pytest.raises(RunStopping):
            call()
        raise RunStopping

    graphs = {"g": chain({"node": node})}
    run = await start(graphs, "g", thread_id="t")
    works(graphs)
    assert called == []
    await ended(way, run, raw)


async def test_a_lost_run_is_taken_over_only_to_end_it_also_while_no_worker_is_alive(
    runtime, graphs, shared_url, fork, raw
):
    run = runtime.runs.start("g", {"log": []}, thread_id="t")
    worker = fork(programs.worker, shared_url)
    worker.until("in node")
    worker.kill()
    run_out(raw)
    assert run.record().shown == "unknown"
    assert run.cancel() == "cancelled"
    assert run.record().status == RunStatus.CANCELLED
    assert raw.value("SELECT count(*) FROM rp_attempts") == 1


async def test_what_is_asked_of_runs_while_no_worker_is_alive_is_done_by_the_next_one(
    runtime, way, works, start, graphs, raw
):
    """Queued, cancelled, hurried, answered: rows, not messages to somebody."""
    asking = await start(graphs, "asks", thread_id="a")
    works(graphs)
    first, second = [await start(graphs, "g", {"log": [n]}, thread_id=f"t{n}") for n in range(2)]
    gone = await start(graphs, "g", thread_id="gone")
    await way(runtime.runs, "resume", asking.run_id, "because")
    await way(second, "now")
    await way(gone, "cancel")
    reports = works(graphs)
    claimed = [facts["run_id"] for what, facts in reports if what == "claimed"]
    assert sorted(claimed) == sorted([second.run_id, first.run_id, asking.run_id])
    assert claimed.index(second.run_id) < claimed.index(first.run_id)
    assert (await way(asking, "result", timeout=0))["log"] == ["because"]
