"""Checks of one saver: calls at the same time, callers that are cancelled, readers in the middle of a call."""

import asyncio
import contextlib
import functools
from concurrent.futures import ThreadPoolExecutor

from runtime_persist.errors import StaleWriter
from tests.fixtures.raw import DEADLINE_SECONDS
from tests.support.checkpoints import Steps, at, new_checkpoint
from tests.support.way import ASYNC

MANY = 40
"""Writes of one call: more than anybody commits while a reader looks once."""


async def at_once(way, *calls):
    """Make several calls at the same time: on threads, or as tasks."""
    if way.asynchronous:
        await asyncio.gather(*(call() for call in calls))
        return
    with ThreadPoolExecutor(len(calls)) as threads:
        for started in [threads.submit(way.run, call()) for call in calls]:
            started.result(DEADLINE_SECONDS)


async def writes_of_tasks_that_end_at_once_are_all_stored(saver, way):
    """Parallel tasks of one step end together: their writes come from as many threads."""
    place = await Steps(way, saver).put(a=1)
    tasks = [f"task-{n}" for n in range(6)]
    calls = [functools.partial(way, saver, "put_writes", place, [("x", task), ("y", 1)], task) for task in tasks]
    await at_once(way, *calls)
    found = await way(saver, "get_tuple", at())
    assert found.pending_writes == [write for task in tasks for write in ((task, "x", task), (task, "y", 1))]


async def puts_of_threads_at_once_are_all_stored(saver, way):
    """Independent threads do not take anything from one another."""
    names = [f"t{n}" for n in range(6)]
    calls = [functools.partial(Steps(way, saver, name).put, a=name) for name in names]
    await at_once(way, *calls)
    for name in names:
        found = await way(saver, "get_tuple", at(name))
        assert found.checkpoint["channel_values"] == {"a": name}


async def what_is_put_while_others_prune_stays(saver, way):
    """Each put is acknowledged, and is the newest until the next one: pruning must not choose without it."""
    steps = Steps(way, saver)
    await steps.put(big="x" * 3_000)

    done = []

    async def turn():
        if way.asynchronous:
            await asyncio.sleep(0)

    async def puts():
        try:
            for n in range(12):
                place = await steps.put(n=n)
                found = await way(saver, "get_tuple", place)
                assert found is not None, f"put {n} was pruned"
                assert found.checkpoint["channel_values"] == {"big": "x" * 3_000, "n": n}
                await turn()
        finally:
            done.append(True)

    async def prunes():
        while not done:
            with contextlib.suppress(StaleWriter):  # somebody else was quicker, again and again: prune later
                await way(saver, "prune", ["t"])
            await turn()

    await at_once(way, puts, prunes)
    assert (await way(saver, "get_tuple", at())).checkpoint["channel_values"]["n"] == 11


async def a_call_that_is_cancelled_is_stored_whole_or_not_at_all(saver, way):
    """Cancelled as soon as a reader sees anything of it."""
    place = await Steps(way, saver).put(a=1)
    given = [("x", n) for n in range(MANY)]
    call = asyncio.ensure_future(way(saver, "put_writes", place, given, "task"))
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not call.done() and not (await way(saver, "get_tuple", at())).pending_writes:  # noqa: ASYNC110 (a reader)
            await asyncio.sleep(0)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    found = (await way(saver, "get_tuple", at())).pending_writes
    assert found == [("task", "x", n) for n in range(MANY)]


async def a_cancelled_put_leaves_nothing_half(saver, way):
    """Cancelled after any number of turns of the loop: the next caller finds all of it or nothing, and goes on."""
    for turns in range(12):
        given = new_checkpoint({"a": turns, "big": "x" * 5_000})
        call = asyncio.ensure_future(way(saver, "put", at(f"t{turns}"), given, {}, given["channel_versions"]))
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        placed = await Steps(way, saver, f"next{turns}").put(b=turns)  # behind it: by now the first one has ended
        assert (await way(saver, "get_tuple", placed)).checkpoint["channel_values"] == {"b": turns}
        found = await way(saver, "get_tuple", at(f"t{turns}"))
        assert found is None or found.checkpoint["channel_values"] == given["channel_values"]


CHECKS = (
    writes_of_tasks_that_end_at_once_are_all_stored,
    puts_of_threads_at_once_are_all_stored,
    what_is_put_while_others_prune_stays,
    a_call_that_is_cancelled_is_stored_whole_or_not_at_all,
    a_cancelled_put_leaves_nothing_half,
)
ONLY_ASYNC = (a_call_that_is_cancelled_is_stored_whole_or_not_at_all, a_cancelled_put_leaves_nothing_half)
WAYS = dict.fromkeys(ONLY_ASYNC, (ASYNC,))
"""A sync caller cannot be cancelled."""
