"""Sync inside async, async inside sync, one saver for many loops (user pain F9)."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from tests.fixtures.raw import DEADLINE_SECONDS
from tests.support.checkpoints import at, new_checkpoint
from tests.support.graphs import chain, config, says


def sync_tour(saver, thread_id):
    """Every method of the saver, in its sync form."""
    place = saver.put(at(thread_id), new_checkpoint({"n": 1}), {"step": 0}, {"n": "1"})
    saver.put_writes(place, [("n", 2)], "task")
    found = saver.get_tuple(at(thread_id))
    assert found.pending_writes == [("task", "n", 2)]
    assert saver.get(at(thread_id))["channel_values"] == {"n": 1}
    assert len(list(saver.list(at(thread_id)))) == 1
    assert saver.get_next_version(None, None)
    saver.delete_thread(thread_id)
    assert saver.get_tuple(at(thread_id)) is None
    return True


async def async_tour(saver, thread_id):
    """Every method of the saver, in its async form."""
    place = await saver.aput(at(thread_id), new_checkpoint({"n": 1}), {"step": 0}, {"n": "1"})
    await saver.aput_writes(place, [("n", 2)], "task")
    found = await saver.aget_tuple(at(thread_id))
    assert found.pending_writes == [("task", "n", 2)]
    assert (await saver.aget(at(thread_id)))["channel_values"] == {"n": 1}
    assert len([item async for item in saver.alist(at(thread_id))]) == 1
    await saver.adelete_thread(thread_id)
    assert await saver.aget_tuple(at(thread_id)) is None
    return True


def test_f9_every_sync_method_works_inside_the_loop_that_uses_the_async_ones(saver):
    async def main():
        await async_tour(saver, "a")
        return sync_tour(saver, "b") and await async_tour(saver, "c")

    assert asyncio.run(main())


def test_f9_one_saver_serves_loop_after_loop_and_several_at_once(saver):
    def tour(name):
        return asyncio.run(async_tour(saver, name))

    assert tour("first")
    with ThreadPoolExecutor(4) as threads:
        futures = [threads.submit(tour, f"t{n}") for n in range(6)]
        futures += [threads.submit(sync_tour, saver, f"s{n}") for n in range(6)]
        assert all(future.result(DEADLINE_SECONDS) for future in futures)


def test_f9_a_saver_made_inside_a_loop_is_used_without_one(engine_url, opened):
    async def main():
        return WorkflowCheckpointAdapter.from_conn_string(engine_url)

    saver = opened(asyncio.run(main()))
    assert sync_tour(saver, "t")


def test_f9_a_graph_is_called_both_ways_on_one_saver(saver):
    graph = chain({"a": says("a"), "b": says("b")}, checkpointer=saver)

    async def main():
        return graph.invoke({"log": []}, config("s")), await graph.ainvoke({"log": []}, config("a"))

    assert [found["log"] for found in asyncio.run(main())] == [["a", "b"], ["a", "b"]]
    assert graph.invoke({"log": ["x"]}, config("a"))["log"] == ["a", "b", "x", "a", "b"]


def test_f9_a_cancelled_caller_leaves_a_saver_that_works(saver):
    async def main():
        task = asyncio.create_task(saver.aput(at("t"), new_checkpoint({"n": 1}), {}, {"n": "1"}))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await async_tour(saver, "u")

    assert asyncio.run(main())
