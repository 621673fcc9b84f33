"""Rows of what users suffer from that are about time: F3, F9, F10 and L1."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from bench.counting import counting
from bench.growth import grown, prepare
from bench.loads import KB, MB, Chat
from bench.measure import Caller, percentile, slice_of
from bench.micro import thread_with_history
from bench.savers import BY_KEY, POSTGRESQL, Open, Saver, async_postgres
from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from runtime_persist.errors import ValueTooLarge

if TYPE_CHECKING:
    from bench.options import Options
    from bench.savers import Lab

F3, F9, F10, L1 = "F3", "F9", "F10", "L1"
USERS = 200
LOCK_SECONDS = 1.0
HISTORY = 200
LONG_THREAD = 10_000
CAP_MB = 5
_HANG_SECONDS = 10.0
_OURS = (BY_KEY["sqlite-async"], BY_KEY["postgres-async"])
_SMALL_POOLS = {1: "AsyncPostgresSaver (pool of 1)", 10: "AsyncPostgresSaver (pool of 10)"}


def row(name: str, saver: Saver, what: str, value: float, unit: str, right: str = "", holds: bool | None = None):  # noqa: FBT001
    """Return one line: what was measured, what is right, and whether it is."""
    return {
        "row": name,
        "saver": saver.title,
        "database": saver.database,
        "what": what,
        "value": value,
        "unit": unit,
        "right": right,
        "holds": holds,
    }


async def measure(lab: Lab, options: Options) -> list[dict[str, Any]]:
    """Return the lines of all rows."""
    parts = {F3: _many_users, F9: _inside_a_loop, F10: _long_history, L1: _very_big}
    rows = []
    for name in options.progress([name for name in parts if options.wants(name)], "rows"):
        rows += await parts[name](lab, options)
    return rows


# --- F3: many users of one saver -------------------------------------------------------------------------------


def _peer(pool: int) -> Saver:
    async def opener(stack, where):
        return await async_postgres(stack, where, pool)

    return Saver(f"pool-{pool}", _SMALL_POOLS[pool], POSTGRESQL, False, opener)


async def _many_users(lab: Lab, options: Options) -> list[dict[str, Any]]:
    rows, throughput = [], {}
    savers = [saver for saver in (*_OURS, _peer(1), _peer(10)) if lab.can_open(saver)]
    for saver in savers:
        async with contextlib.AsyncExitStack() as stack:
            found = await lab.open(saver, stack)
            chats = [Chat(found.inner, f"user {user}", KB) for user in range(USERS)]
            callers = [Caller(chat.put, found.method("put")) for chat in chats]
            await slice_of(lab.machine, callers, 0, sync=False)
            slice_ = await slice_of(lab.machine, callers, options.seconds * 4, sync=False)
            throughput[saver.key] = slice_["ops"]
            rows.append(row(F3, saver, f"{USERS} concurrent aput", slice_["ops"], "a second"))
            if saver.database == POSTGRESQL:
                others = await _with_a_locked_row(found, callers[1:64], chats[0])
                told = f"p95 of 63 others' aput while a row is locked for {LOCK_SECONDS:g} s"
                rows.append(row(F3, saver, told, others, "ms", "< 200", others < 200 if saver.ours else None))
    if "pool-10" in throughput:
        times = throughput["postgres-async"] / throughput["pool-10"]
        rows.append(
            row(
                F3,
                BY_KEY["postgres-async"],
                "the same over the peer's with a pool of 10",
                times,
                "×",
                "≥ 4",
                times >= 4,
            )
        )
    return rows


async def _with_a_locked_row(found: Open, callers: list[Caller], blocked: Chat) -> float:
    """Return the others' p95 (ms) while a put waits for a row that somebody else has locked for a second."""
    import asyncpg

    given = blocked.put()
    thread_id, checkpoint_id = given[0]["configurable"]["thread_id"], given[1]["id"]
    # Whatever the saver's put of this thread has to wait for: our thread row, the peer's row of the same key.
    lock = (
        f"SELECT 1 FROM rp_threads WHERE thread_id = '{thread_id}' FOR UPDATE"  # noqa: S608 (our own id)
        if found.saver.ours
        else "INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, checkpoint) "  # noqa: S608
        f"VALUES ('{thread_id}', '', '{checkpoint_id}', '{{}}')"
    )
    connection = await asyncpg.connect(found.where)
    transaction = connection.transaction()
    await transaction.start()
    await connection.fetch(lock)
    waiting = asyncio.create_task(found.method("put")(*given))
    times: list[float] = []
    end = time.perf_counter() + LOCK_SECONDS

    async def work(caller: Caller) -> None:
        while time.perf_counter() < end:
            arguments = caller.prepare()
            began = time.perf_counter()
            await caller.operate(*arguments)
            times.append(time.perf_counter() - began)

    async def release() -> None:
        await asyncio.sleep(LOCK_SECONDS)
        await transaction.rollback()
        await connection.close()

    await asyncio.gather(release(), *map(work, callers))
    await waiting
    return percentile(times, 0.95) * 1e3


# --- F9: a sync method inside the event loop -------------------------------------------------------------------


async def _inside_a_loop(lab: Lab, _options: Options) -> list[dict[str, Any]]:
    rows = []
    for saver in (saver for saver in _OURS if lab.can_open(saver)):
        longest = await asyncio.to_thread(_longest_call, lab.place(saver.database))
        told = "longest of the sync methods, called inside a running event loop"
        rows.append(row(F9, saver, told, longest * 1e3, "ms", "< 1000", longest < 1))
    return rows


def _longest_call(where: str) -> float:
    """Return seconds; infinite when a method hangs."""
    times: list[float] = []

    async def in_a_loop() -> None:
        with WorkflowCheckpointAdapter.from_conn_string(where) as saver:
            chat = Chat(saver, "loop", KB)
            calls = [
                saver.setup,
                lambda: saver.put(*chat.put()),
                lambda: saver.put_writes(*chat.writes(5)),
                lambda: saver.get_tuple(chat.latest),
                lambda: list(saver.list(chat.latest)),
                lambda: saver.get_delta_channel_history(
                    config=saver.get_tuple(chat.latest).config, channels=["messages"]
                ),
                lambda: saver.copy_thread("loop", "copy"),
                lambda: saver.prune(["loop"]),
                lambda: saver.delete_for_runs(["nobody"]),
                lambda: saver.delete_thread("copy"),
            ]
            for call in calls:
                began = time.perf_counter()
                call()
                times.append(time.perf_counter() - began)

    thread = threading.Thread(target=lambda: asyncio.run(in_a_loop()), daemon=True)
    thread.start()
    thread.join(_HANG_SECONDS)
    return float("inf") if thread.is_alive() else max(times)


# --- F10: a long history ---------------------------------------------------------------------------------------


async def _long_history(lab: Lab, options: Options) -> list[dict[str, Any]]:
    rows = []
    for saver in (saver for saver in _OURS if lab.can_open(saver)):
        with counting(lab.place(saver.database)) as (where, counted):
            async with contextlib.AsyncExitStack() as stack:
                runtime = await saver.opener(stack, where)
                found = Open(saver, where, runtime.checkpointer, runtime)
                chat = await thread_with_history(found, "history", KB, HISTORY)
                counted.reset()
                assert len(await found.method("list")(chat.latest)) == HISTORY
                told = f"statements of list() of {HISTORY} checkpoints with writes"
                rows.append(row(F10, saver, told, counted.statements, "", "≤ 5", counted.statements <= 5))
        async with contextlib.AsyncExitStack() as stack:
            found = await lab.open(saver, stack)
            await prepare(found, others=0)
            chat = await grown(found, "long", LONG_THREAD)
            slice_ = await slice_of(
                lab.machine,
                [Caller(lambda chat=chat: (chat.latest,), found.method("get_tuple"))],
                options.seconds,
                sync=False,
            )
            told = f"latest of a thread of {LONG_THREAD:,} checkpoints, p50"
            rows.append(row(F10, saver, told, slice_["p50"], "ms", "< 20", slice_["p50"] < 20))
    return rows


# --- L1: very big values ---------------------------------------------------------------------------------------


async def _very_big(lab: Lab, options: Options) -> list[dict[str, Any]]:
    rows = []
    for saver in (saver for saver in _OURS if lab.can_open(saver)):
        for megabytes in (20,) if options.quick else (20, 300):
            found = await asyncio.to_thread(_in_its_own_process, lab.place(saver.database), megabytes)
            for name in ("put", "get"):
                rows.append(row(L1, saver, f"{name} of {megabytes} MB", found[f"{name}_s"], "s"))  # noqa: PERF401
            times = found["bytes"] / (megabytes * MB)
            told = f"peak memory with a value of {megabytes} MB"
            rows.append(row(L1, saver, told, times, "× its size", "≤ 4", times <= 4))
        milliseconds = await asyncio.to_thread(_over_the_cap, lab.place(saver.database))
        told = f"ValueTooLarge for {CAP_MB} MB and a byte where {CAP_MB} MB are allowed"
        rows.append(row(L1, saver, told, milliseconds, "ms", "nothing sent", True))
    return rows


def _in_its_own_process(where: str, megabytes: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.big_value", where, str(megabytes)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)  # noqa: S603


def _over_the_cap(where: str) -> float:
    with counting(where) as (counted_where, counted):
        saver = WorkflowCheckpointAdapter.from_conn_string(counted_where, max_value_bytes=CAP_MB * MB)
        with saver:
            config, checkpoint, metadata, versions = Chat(saver, "cap", KB).put()
            checkpoint["channel_values"]["messages"] = b"x" * (CAP_MB * MB + 1)
            counted.reset()
            began = time.perf_counter()
            try:
                saver.put(config, checkpoint, metadata, versions)
            except ValueTooLarge:
                assert counted.statements == 0
                return (time.perf_counter() - began) * 1e3
    raise AssertionError("a value over the cap was taken")
