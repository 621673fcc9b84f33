"""Two real processes on one thread (user pains A1 and A2): no update is lost, and a stale owner writes nothing."""

import signal

import pytest

from tests.support import programs
from tests.support.checkpoints import at
from tests.support.graphs import chain, config, says
from tests.support.leases import run_out

ROUNDS = [f"thread {n}" for n in range(13)]  # two levels, sync and async: fifty on each database


def race(pair):
    """One round: both call at once; whoever gets into its node waits until the other got somewhere too."""
    for child in pair:
        child.give_the_word()
    ended = {}
    waiting = list(pair)
    while waiting:
        for child in list(waiting):
            said = child.hears()
            if said[0] == "ended":
                ended[child] = said[1]
            waiting.remove(child)
    for child in pair:
        if child not in ended:
            child.give_the_word()
            (ended[child],) = child.until("ended")
    return [ended[child] for child in pair]


def parents_from_the_tip(saver, thread_id):
    found = saver.get_tuple(at(thread_id))
    while found is not None:
        yield found.config["configurable"]["checkpoint_id"]
        found = None if found.parent_config is None else saver.get_tuple(found.parent_config)


@pytest.mark.parametrize("level", ["L0", "L1"])
def test_two_processes_that_continue_one_thread_never_both_succeed_with_one_update(
    open_runtime, shared_url, way, fork, level
):
    saver = open_runtime().checkpointer
    graph = chain({"node": says("x")}, checkpointer=saver)
    for thread_id in ROUNDS:
        graph.update_state(config(thread_id), {"n": 0})
    pair = [fork(programs.racer, shared_url, level, way.asynchronous, ROUNDS) for _ in range(2)]
    for child in pair:
        child.until("ready")
    refusal = {"L0": "STALE_WRITER", "L1": "THREAD_OWNED"}[level]
    for thread_id in ROUNDS:
        ended = race(pair)
        n = graph.get_state(config(thread_id)).values["n"]
        if n == 1:
            assert sorted(ended, key=str) == [1, refusal]
        else:
            assert (n, sorted(ended)) == (2, [1, 2])
        stored = {one.config["configurable"]["checkpoint_id"] for one in saver.list(at(thread_id))}
        assert set(parents_from_the_tip(saver, thread_id)) == stored


@pytest.mark.parametrize("kind", ["put", "put_writes"])
def test_a_stale_owner_writes_nothing_although_nobody_holds_the_lease(open_runtime, shared_url, raw_of, fork, kind):
    runtime = open_runtime()
    raw = raw_of(runtime)
    first = fork(programs.stale_holder, shared_url, kind)
    epoch, run_id = first.until("stored")
    run_out(raw)
    assert runtime.runs.get(run_id).shown == "unknown"
    _, other = fork(programs.taker, shared_url).result()
    assert runtime.runs.get(run_id).epoch > epoch
    assert runtime.runs.get(other).phase == "released"
    before = raw.dump()
    first.give_the_word()
    assert first.result() == "LEASE_LOST"
    assert raw.dump() == before
    assert runtime.checkpointer.get_tuple(at()).checkpoint["channel_values"] == {"a": "new"}


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_stopped_owner_that_wakes_after_a_takeover_writes_nothing(
    open_runtime, shared_url, raw_of, fork, way, durability
):
    runtime = open_runtime()
    raw = raw_of(runtime)
    options = {"asynchronous": way.asynchronous, "durability": durability}
    stopped = fork(programs.invoker, shared_url, {"log": []}, result={"log": ["old"]}, pauses=True, **options)
    stopped.until("in node")
    stopped.stop_outside_transactions(raw)
    (run,) = runtime.runs.list()
    run_out(raw)
    assert runtime.runs.get(run.run_id).shown == "unknown"
    taken = fork(programs.invoker, shared_url, None, result={"log": ["new"]}, **options).result()
    assert taken["log"] == ["new"]
    before = raw.dump()
    stopped.send(signal.SIGCONT)
    stopped.give_the_word()
    ended, code, *_ = stopped.outcome()
    assert (ended, code) in {("raised", "LEASE_LOST"), ("raised", "LEASE_EXPIRED")}
    assert raw.dump() == before
    graph = chain({"node": says("x")}, checkpointer=runtime.checkpointer)
    assert graph.get_state(config()).values["log"] == ["new"]
    after = runtime.runs.get(run.run_id)
    assert (after.status, after.epoch, after.attempt_no) == ("succeeded", run.epoch + 1, 2)
