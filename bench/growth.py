"""Put, latest get and list in threads of 10, 1,000 and 100,000 checkpoints, in a database of a million."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from bench import bulk
from bench.loads import KB, Chat
from bench.measure import Caller, slice_of
from bench.micro import called
from bench.savers import BY_KEY

if TYPE_CHECKING:
    from bench.options import Options
    from bench.savers import Lab, Open

PUT, GET, LIST = OPERATIONS = ("put", "get_tuple", "list 10")
LENGTHS = (10, 1_000, 100_000)
_QUICK_LENGTHS = (10, 1_000, 10_000)
_OTHERS, _QUICK_OTHERS = 20_000, 200
"""Other threads in the database …"""
_OTHERS_LENGTH = 45
"""… with so many checkpoints each. The peers' databases hold the long threads only: filling them would take long."""
_REAL = 12
"""Newest checkpoints of each thread that the saver itself wrote."""
_SAVERS = ("sqlite-async", "AsyncSqliteSaver", "postgres-async", "AsyncPostgresSaver")


async def measure(lab: Lab, options: Options) -> list[dict[str, Any]]:
    """Return a row a saver, operation, length and round."""
    operations = [operation for operation in OPERATIONS if options.wants(operation)]
    opened = await lab.open_all(options.savers([BY_KEY[key] for key in _SAVERS]))
    lengths = _QUICK_LENGTHS if options.quick else LENGTHS
    chats: dict[tuple[str, str, int], Chat] = {}
    totals: dict[str, int] = {}
    for key, found in options.progress(opened.items(), "growth, filling") if operations else ():
        others = 0 if not found.saver.ours else _QUICK_OTHERS if options.quick else _OTHERS
        await prepare(found, others)
        for length in lengths:
            for operation in (PUT, GET):
                chats[key, operation, length] = await grown(found, f"{operation} {length}", length)
        totals[key] = others * _OTHERS_LENGTH + 2 * sum(lengths)
    rows = []
    keys = list(opened)
    for turn in options.rounds_of("growth"):
        steps = [(operation, length) for operation in operations for length in lengths]
        for operation, length in options.progress(steps, f"growth, round {turn + 1}"):
            random.Random(f"{turn} {operation} {length}").shuffle(keys)
            for key in keys:
                chat = chats[key, PUT if operation == PUT else GET, length]
                slice_ = await slice_of(
                    lab.machine, [_caller(opened[key], operation, chat)], options.seconds, sync=False
                )
                named = {"operation": operation, "length": length, "database": totals[key], "round": turn}
                rows.append({"saver": key} | named | slice_)
    return rows


async def prepare(found: Open, others: int) -> None:
    """Make the template that threads are copied from, and so many other threads."""
    chat = Chat(found.inner, bulk.TEMPLATE, KB)
    await called(found, "put", "", *chat.put())
    await called(found, "put_writes", "", *chat.writes(1))
    if others:
        await bulk.fill(found.where, "other ", others, _OTHERS_LENGTH, heads=True)


async def grown(found: Open, thread_id: str, length: int) -> Chat:
    """Return a thread of so many checkpoints, the newest of which the saver itself put."""
    copied = max(0, length - _REAL)
    chat = Chat(found.inner, thread_id, KB)
    if copied:
        await bulk.fill(found.where, thread_id, 1, copied, heads=False)
        chat.continue_from(bulk.checkpoint_id(copied), bulk.version(copied))
    for _ in range(min(length, _REAL)):
        await called(found, "put", "", *chat.put())
    return chat


def _caller(found: Open, operation: str, chat: Chat) -> Caller:
    if operation == PUT:
        return Caller(chat.put, found.method("put"))
    if operation == GET:
        return Caller(lambda: (chat.latest,), found.method("get_tuple"))
    listing = found.method("list")
    return Caller(lambda: (chat.latest,), lambda config: listing(config, limit=10))
