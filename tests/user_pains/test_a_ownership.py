"""Rows A8 and A10: others reach for a thread that a live run has, and many threads share one saver and one graph."""

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from langgraph.config import get_config

from runtime_persist import operation
from runtime_persist.errors import ThreadOwned
from tests.fixtures.raw import wait_until
from tests.support.checkpoints import at, new_checkpoint
from tests.support.graphs import chain, config, says
from tests.user_pains.programs_ownership import sits_in_a_node

NODES = {"first": says("first"), "sits": says("sits")}


def edits(runtime):
    """What another process may try to do to thread ``t``: name -> (target, method, arguments)."""
    saver = runtime.checkpointer
    plain, bound = chain(NODES, checkpointer=saver), runtime.bind(chain(NODES), name="g")
    return {
        "update_state": (plain, "update_state", (config(), {"log": ["edited"]})),
        "update_state of a bound graph": (bound, "update_state", (config(), {"log": ["edited"]})),
        "invoke without a lease": (plain, "invoke", ({"log": ["other"]}, config())),
        "invoke": (bound, "invoke", ({"log": ["other"]}, config())),
        "delete_thread": (saver, "delete_thread", ("t",)),
        "prune": (saver, "prune", (["t"],)),
        "prune of a bound graph": (bound, "prune", (["t"],)),
    }


async def test_a8_a_thread_in_use_is_not_edited_and_is_copied_whole(runtime, fork, way, raw, shared_url):
    """A8: edits of another process are refused, reads answer, a copy is a whole checkpoint, the result is intact."""
    holder = fork(sits_in_a_node, shared_url)
    holder.until("in node")
    (run,) = await way(runtime.runs, "list")
    before = raw.dump()
    for name, (target, method, given) in edits(runtime).items():
        with pytest.raises(ThreadOwned) as refused:
            await way(target, method, *given)
        assert refused.value.details["run_id"] == run.run_id, name
    assert raw.dump() == before

    plain = chain(NODES, checkpointer=runtime.checkpointer)
    state = await way(plain, "get_state", config())
    assert (state.values["log"], state.next) == (["in", "first"], ("sits",))
    assert len(await way.all(plain, "get_state_history", config())) == 3
    await way(runtime.checkpointer, "copy_thread", "t", "copy")
    copied = await way(plain, "get_state", config("copy"))
    assert (copied.values, copied.next) == (state.values, state.next)
    assert (await way(plain, "invoke", None, config("copy")))["log"] == ["in", "first", "sits"]

    holder.give_the_word()
    assert holder.result()["log"] == ["in", "first", "sits"]
    after = await way(plain, "get_state", config())
    assert (after.values["log"], after.next) == (["in", "first", "sits"], ())
    assert (await way(runtime.runs, "get", run.run_id)).status == "succeeded"
    for name, (target, method, given) in edits(runtime).items():
        if name != "invoke without a lease":  # now it is free, and every one of them is let in
            await way(target, method, *given)


async def test_a10_fifty_threads_share_a_saver_and_a_graph_and_keep_apart(runtime, raw):
    """A10: half OS threads, half tasks, at once; each has its own lease and journal, and the loss of one stops one."""
    at_once, sent, lost = threading.Event(), Counter(), "thread 13"

    @operation(name="send", on_unknown="ask")
    def send(what: str, *, idempotency_key: str) -> str:
        sent[what] += 1
        return idempotency_key

    def node(_):
        own = get_config()["configurable"]
        at_once.wait(30)
        if own["thread_id"] == lost:
            raw.rows("UPDATE rp_runs SET epoch = 9 WHERE thread_id = ?", lost)
        owned = own["__pregel_checkpointer"].owned_run
        return {"log": [own["thread_id"], own["tenant"], owned.lease.run_id, send(own["thread_id"])]}

    graph = runtime.bind(
        chain({"node": node, "last": says("last")}).with_config({"configurable": {"tenant": "acme"}}), name="g"
    )
    outputs = {}

    def call(thread_id):
        try:
            outputs[thread_id] = graph.invoke({"log": []}, config(thread_id))["log"]
        except RuntimeError as error:
            outputs[thread_id] = error.code

    async def acall(thread_id):
        outputs[thread_id] = (await graph.ainvoke({"log": []}, config(thread_id)))["log"]

    def all_own_a_lease():
        return raw.value("SELECT count(*) FROM rp_runs WHERE phase = 'active' AND status = 'running'") == 50

    with ThreadPoolExecutor(26) as threads:
        loop = asyncio.get_running_loop()
        calls = [loop.run_in_executor(threads, call, f"thread {n}") for n in range(25)]
        tasks = [asyncio.ensure_future(acall(f"task {n}")) for n in range(25)]
        await loop.run_in_executor(threads, wait_until, all_own_a_lease, "fifty leases at once")
        at_once.set()
        await asyncio.gather(*calls, *tasks)

    runs = {run.thread_id: run for run in runtime.runs.list(limit=100)}
    assert outputs.pop(lost) == "LEASE_LOST"
    assert runs.pop(lost).status == "running"
    assert sent == Counter(outputs.keys())
    assert len({log[3] for log in outputs.values()}) == len(outputs) == 49
    for thread_id, log in outputs.items():
        assert log == [thread_id, "acme", runs[thread_id].run_id, log[3], "last"]
        assert runs[thread_id].status == "succeeded"
    journal = raw.rows("SELECT thread_id, run_id, idempotency_key FROM rp_operations")
    assert {(row["thread_id"], row["run_id"], row["idempotency_key"]) for row in journal} == {
        (thread_id, log[2], log[3]) for thread_id, log in outputs.items()
    }
    assert runtime.checkpointer.owned_run is None


@pytest.mark.parametrize("level", ["L0", "L1"])
def test_a10_put_and_put_writes_of_one_thread_at_once_both_land(runtime, raw, level):
    """A10: the engine calls both at the same time."""
    rounds = 20
    lease = runtime.lease(thread_id="t") if level == "L1" else None
    saver = runtime.checkpointer.session(lease) if lease else runtime.checkpointer
    place = saver.put(at(), new_checkpoint({"a": 0}), {}, {"a": "1"})
    with ThreadPoolExecutor(2) as pool:
        for n in range(rounds):
            both = threading.Barrier(2)

            def put(place=place, n=n, both=both):
                both.wait()
                return saver.put(place, new_checkpoint({"a": n}, {"a": str(n + 2)}), {}, {"a": str(n + 2)})

            def put_writes(place=place, n=n, both=both):
                both.wait()
                saver.put_writes(place, [("a", n)], f"task {n}")

            written, stored = pool.submit(put_writes), pool.submit(put)
            place = stored.result()
            written.result()
    found = list(saver.list(at()))
    assert [one.checkpoint["channel_values"]["a"] for one in found] == [*reversed(range(rounds)), 0]
    assert [one.pending_writes for one in found[1:]] == [[(f"task {n}", "a", n)] for n in reversed(range(rounds))]
    if lease:
        lease.release()
