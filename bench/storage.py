"""Bytes in the database: a chat of 200 turns, and row E1 (a file of 0.5 MB in the state)."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

from bench.chat import DICT, FILE_THREADS, STR, TURNS, chat, files
from bench.databases import size_on_disk
from bench.savers import BY_KEY

if TYPE_CHECKING:
    from bench.options import Options
    from bench.savers import Lab

CHAT, FILE, FILES = "chat", "E1, one thread", f"E1, {FILE_THREADS} threads"
_SAVERS = ("sqlite-async", "AsyncSqliteSaver", "postgres-async", "AsyncPostgresSaver")


async def measure(lab: Lab, options: Options) -> list[dict[str, Any]]:
    """Return a row a saver, case and number of turns: bytes on disk."""
    savers = [saver for saver in options.savers([BY_KEY[key] for key in _SAVERS]) if lab.can_open(saver)]
    cases = [(saver, document) for document in (DICT, STR) for saver in savers if options.wants(f"{CHAT} {document}")]
    rows = []
    for saver, document in options.progress(cases, "storage, chat"):
        async with contextlib.AsyncExitStack() as stack:
            found = await lab.open(saver, stack)
            marks = TURNS[:2] if options.quick else TURNS
            async for turn in chat(found.inner, max(marks), document):
                if turn in marks:
                    size = await size_on_disk(found.where)
                    rows.append({"saver": saver.key, "case": CHAT, "document": document, "turns": turn, "bytes": size})
    for saver in options.progress(savers if options.wants(FILE) else [], "storage, E1"):
        if options.quick and not saver.ours:
            continue
        async with contextlib.AsyncExitStack() as stack:
            found = await lab.open(saver, stack)
            for case, threads in ((FILE, range(1)), (FILES, range(1, FILE_THREADS))):
                if saver.ours or case == FILE:
                    await files(found.inner, threads)
                    rows.append({"saver": saver.key, "case": case, "bytes": await size_on_disk(found.where)})
    return rows


def exponent(turns: tuple[int, int], sizes: tuple[int, int]) -> float:
    """Return how bytes grow with turns between two points: 1 is linear, 2 is quadratic."""
    return math.log(sizes[1] / sizes[0]) / math.log(turns[1] / turns[0])
