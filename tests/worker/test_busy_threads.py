"""A new run on a busy thread: it waits, is not started, or replaces the open runs, keeping or undoing what they did."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from runtime_persist.errors import RunCancelled, ThreadBusy, ThreadOwned
from tests.fixtures.raw import wait_until
from tests.support import programs
from tests.support.graphs import asks, chain, config, nested, says
from tests.support.leases import run_out
from tests.support.way import SYNC

REPLACES = ("interrupt", "rollback")


@pytest.fixture
def way():
    """The sync way alone: what is asked for in either way is the same row, and that is what workers see."""
    return SYNC


async def superseded(way, run):
    with pytest.raises(RunCancelled, match="superseded"):
        await way(run, "result", timeout=0)
    record = await way(run, "record")
    assert (record.status, record.stop_reason) == ("cancelled", "superseded")


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_reject_starts_nothing_while_a_run_is_open_whatever_it_does(runtime, works, start, raw, asynchronous):
    graphs = {"g": chain({"ask": asks("why?")})}
    run = await start(graphs, "g", thread_id="t")
    for _ in range(2):  # queued, then waiting
        before = raw.dump()
        with pytest.raises(ThreadBusy) as caught:
            await SYNC(runtime.runs, "start", "g", {"log": []}, thread_id="t", on_busy="reject")
        assert caught.value.details["run_id"] == run.run_id
        assert raw.dump() == before
        works(graphs)
    await SYNC(run, "cancel")
    assert (await start(graphs, "g", thread_id="t", on_busy="reject")).run_id != run.run_id


def test_of_many_that_start_at_once_and_reject_one_is_started(runtime, open_runtime):
    runtime.bind(chain({"node": says("x")}), name="g")
    runtimes = [runtime, open_runtime()]

    def start(n):
        try:
            return runtimes[n % 2].runs.start("g", {"log": []}, thread_id="t", on_busy="reject").run_id
        except ThreadBusy as error:
            return error.details["run_id"]

    with ThreadPoolExecutor(8) as pool:
        (only,) = set(pool.map(start, range(8)))
    assert [run.run_id for run in runtime.runs.list()] == [only]


def test_of_many_that_start_at_once_and_replace_the_others_the_last_one_is_left(runtime, open_runtime, works, raw):
    graphs = {"g": chain({"node": says("x")})}
    runtime.bind(graphs["g"], name="g")
    runtimes = [runtime, open_runtime()]

    def start(n):
        return runtimes[n % 2].runs.start("g", {"log": [n]}, thread_id="t", on_busy=REPLACES[n % 3 > 0])

    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(start, range(8)))
    works(graphs)
    ends = [run.record().status for run in runs]
    assert sorted(ends) == ["cancelled"] * 7 + ["succeeded"]
    last = runs[ends.index("succeeded")]
    (newest,) = raw.rows("SELECT run_id FROM rp_runs ORDER BY thread_run_no DESC LIMIT 1")
    assert newest["run_id"] == last.run_id  # ids are made before the thread's order is decided
    assert last.result(timeout=0)["log"] == [ends.index("succeeded"), "x"]


async def test_enqueue_waits_for_all_of_them(way, works, start):
    graphs = {"g": chain({"node": says("x")})}
    runs = [await start(graphs, "g", {"log": [n]}, thread_id="t", on_busy="enqueue") for n in range(3)]
    works(graphs)
    assert (await way(runs[-1], "result", timeout=0))["log"] == [0, "x", 1, "x", 2, "x"]


@pytest.mark.parametrize("on_busy", REPLACES)
async def test_runs_that_never_began_end_at_once_and_only_the_last_one_is_executed(way, works, start, on_busy):
    graphs = {"g": chain({"node": says("x")})}
    runs = [await start(graphs, "g", {"log": [n]}, thread_id="t") for n in range(3)]
    last = await start(graphs, "g", {"log": ["last"]}, thread_id="t", on_busy=on_busy)
    for run in runs:
        await superseded(way, run)
    assert [what for what, _ in works(graphs)] == ["claimed", "finished"]
    assert (await way(last, "result", timeout=0))["log"] == ["last", "x"]


@pytest.mark.parametrize(("on_busy", "log"), [("interrupt", [0, "a", 1, "x", 2, "a"]), ("rollback", [0, "a", 2, "a"])])
async def test_a_waiting_run_is_replaced(runtime, way, works, start, on_busy, log):
    """A turn of the thread had ended before it, and what it had committed stays or goes."""
    graphs = {"first": chain({"node": says("a")}), "asking": chain({"node": says("x"), "ask": asks("why?")})}
    await start(graphs, "first", {"log": [0]}, thread_id="t")
    run = await start(graphs, "asking", {"log": [1]}, thread_id="t")
    works(graphs)
    last = await start(graphs, "first", {"log": [2]}, thread_id="t", on_busy=on_busy)
    await superseded(way, run)
    state = runtime.checkpointer.get_tuple(config("t")).checkpoint["channel_values"]["log"]
    assert state == log[:-2]  # at once: before any worker looks
    works(graphs)
    assert (await way(last, "result", timeout=0))["log"] == log


@pytest.mark.parametrize(
    ("on_busy", "log"), [("interrupt", [1, "ran", "y", 2, "ran", "y"]), ("rollback", [2, "ran", "y"])]
)
async def test_a_run_that_is_executed_ends_first_and_its_end_is_what_decides(runtime, way, works, start, on_busy, log):
    started = []

    def node(_):
        if not started:
            started.append(runtime.runs.start("g", {"log": [2]}, thread_id="t", on_busy=on_busy))
        return {"log": ["ran"]}

    graphs = {"g": chain({"node": node, "after": says("y")})}
    run = await start(graphs, "g", {"log": [1]}, thread_id="t")
    works(graphs)
    await superseded(way, run)
    assert (await way(started[0], "result", timeout=0))["log"] == log


@pytest.mark.parametrize(
    ("on_busy", "log"), [("interrupt", [7, "before", "again", "after"]), ("rollback", ["again", "after"])]
)
def test_a_run_whose_worker_was_killed_is_ended_by_another_one_before_the_new_run_begins(
    runtime, shared_url, fork, raw, on_busy, log
):
    runtime.bind(chain({"node": says("x"), "after": says("y")}), name="g")
    run = runtime.runs.start("g", {"log": [7, "before"]}, thread_id="t")
    first = fork(programs.worker, shared_url)
    first.until("in node")
    wait_until(lambda: raw.value("SELECT count(*) FROM rp_checkpoints") == 2, "its input is stored")
    new = runtime.runs.start("g", {"log": []}, thread_id="t", on_busy=on_busy)
    first.kill()
    run_out(raw)
    assert run.record().shown == "unknown"
    second = fork(programs.worker, shared_url)
    second.until("in node")
    assert run.record().status == "cancelled"
    second.give_the_word("again")
    assert new.result(timeout=30)["log"] == log


async def test_a_rollback_reaches_into_stateful_subgraphs(way, works, start):
    """The inner graph remembers nothing of the run that was rolled back."""
    inner = chain({"count": lambda state: {"n": 1}, "ask": asks("why?")}, checkpointer=True)
    graphs = {"g": nested(inner)}
    await start(graphs, "g", {"log": []}, thread_id="t")
    works(graphs)
    last = await start(graphs, "g", {"log": []}, thread_id="t", on_busy="rollback")
    works(graphs)
    await way(last._runs, "resume", last.run_id, "because")
    works(graphs)
    assert (await way(last, "result", timeout=0))["n"] == 1


async def test_a_rolled_back_run_stays_with_its_events_and_the_journal_keeps_what_it_did(way, works, start, raw):
    graphs = {"g": chain({"node": says("x"), "ask": asks("why?")})}
    run = await start(graphs, "g", {"log": []}, thread_id="t")
    works(graphs)
    await start(graphs, "g", {"log": []}, thread_id="t", on_busy="rollback")
    types = [row["type"] for row in raw.rows("SELECT type FROM rp_events WHERE run_id = ? ORDER BY seq", run.run_id)]
    assert types[-4:] == ["run.rollback_requested", "run.stop_requested", "run.rolled_back", "run.cancelled"]
    assert raw.value("SELECT count(*) FROM rp_checkpoints") == 0


async def test_an_owned_call_never_replaces_a_queued_run(runtime, start):
    graphs = {"g": chain({"node": says("x")})}
    await start(graphs, "g", thread_id="t")
    with pytest.raises(ThreadOwned):
        runtime.bind(graphs["g"], name="g").invoke({"log": []}, config("t"))
