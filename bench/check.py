"""The short form: round trips, statements, bytes and their growth, which no machine changes."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.bounds import BOUNDS, STATEMENTS, TRIPS, WORKER
from bench.chat import DICT, STR, chat, files
from bench.counting import counting
from bench.databases import is_postgresql, rows_read, size_of_rows
from bench.growth import grown, prepare
from bench.loads import KB, Chat
from bench.report.tables import Table
from bench.savers import BY_KEY, POSTGRESQL, SQLITE, Open
from bench.storage import exponent
from bench.worker_counts import of_one_run
from runtime_persist import Runtime
from runtime_persist.testing.postgres import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Callable

_FEW, _HALF, _TURNS = 25, 50, 100
_HISTORY = 200
_LENGTHS = (100, 2_000)
_REPEATED = 30
"""Operations of one PostgreSQL session: what opening a saver reads is little beside them."""
_WORK: dict[str, Callable[[Any, Chat], Any]] = {
    "get_tuple": lambda saver, chat_: saver.get_tuple(chat_.latest),
    "put": lambda saver, chat_: saver.put(*chat_.put()),
    "put_writes": lambda saver, chat_: saver.put_writes(*chat_.writes(1)),
    "list of 10": lambda saver, chat_: list(saver.list(chat_.latest, limit=10)),
}


@dataclass(frozen=True)
class Finding:
    """One count or size beside its bound."""

    name: str
    database: str
    value: float

    @property
    def holds(self) -> bool:
        return self.value <= BOUNDS[self.name].of(self.database)


def trips(where: str, database: str) -> list[Finding]:
    """Count what each operation sends, in steady state."""
    found = []
    with counting(where) as (counted_where, counted), Runtime.open(counted_where) as runtime:
        saver = runtime.checkpointer
        chat_, history = Chat(saver, "counted", 32 * KB), Chat(saver, "history", KB)
        owned = Chat(saver, "owned", 32 * KB)
        session = saver.session(runtime.lease(thread_id="owned"))
        for _ in range(_HISTORY):
            saver.put(*history.put())
            saver.put_writes(*history.writes(1))
        operations = {
            "put": lambda: saver.put(*chat_.put()),
            "put_writes of 1": lambda: saver.put_writes(*chat_.writes(1)),
            "put_writes of 5": lambda: saver.put_writes(*chat_.writes(5)),
            "put of an owned run": lambda: session.put(*owned.put()),
            "put_writes of an owned run": lambda: session.put_writes(*owned.writes(1)),
            "get_tuple": lambda: saver.get_tuple(chat_.latest),
            "get_tuple with nothing cached": lambda: _cold(runtime, chat_),
            "list of 10": lambda: list(saver.list(history.latest, limit=10)),
            "list of 200": lambda: list(saver.list(history.latest)),
        }
        for name, operate in operations.items():
            operate()  # warm: statements are prepared, what the saver remembers is there
            operate()
            counted.reset()
            operate()
            counts = {f"{name}: {TRIPS}": counted.commits, f"{name}: {STATEMENTS}": counted.statements}
            found += [Finding(what, database, value) for what, value in counts.items() if what in BOUNDS]
    return found


def _cold(runtime: Runtime, chat_: Chat) -> None:
    runtime.engine.content.cache.clear()
    runtime.checkpointer.get_tuple(chat_.latest)


async def chat_sizes(where: str, second: str, database: str) -> list[Finding]:
    """Measure the rows of a chat in each of two databases: with the document as a dict, and as a str."""
    at = {}
    for place, document, turns in ((where, DICT, _TURNS), (second, STR, _FEW)):
        with Runtime.open(place) as runtime:
            async for turn in chat(runtime.checkpointer, turns, document):
                if turn in {_FEW, _HALF, _TURNS}:
                    at[document, turn] = await size_of_rows(place)
    growth = exponent((_HALF, _TURNS), (at[DICT, _HALF], at[DICT, _TURNS]))
    return [
        Finding(f"chat of {_TURNS} turns: bytes", database, at[DICT, _TURNS]),
        Finding(f"chat of {_FEW} turns, a str document: bytes", database, at[STR, _FEW]),
        Finding(f"chat: growth exponent from {_HALF} to {_TURNS} turns", database, growth),
    ]


async def file_sizes(where: str, database: str) -> list[Finding]:
    """Measure the rows of threads that hold one big file (row E1)."""
    with Runtime.open(where) as runtime:
        before = await size_of_rows(where)
        await files(runtime.checkpointer, range(1))
        one = await size_of_rows(where)
        await files(runtime.checkpointer, range(1, 2))
        two = await size_of_rows(where)
    return [
        Finding("E1, a file of 0.5 MB: bytes", database, one - before),
        Finding("E1, one more thread with that file: bytes", database, two - one),
    ]


async def work(where: str, database: str) -> list[Finding]:
    """Compare the work of an operation in a long thread with the same in a short one.

    The work is steps of SQLite's virtual machine; on PostgreSQL rows and index entries read.
    """
    with Runtime.open(where) as runtime:
        filled = Open(BY_KEY["sqlite-async"], where, runtime.checkpointer, runtime)
        await prepare(filled, others=0)
        chats = {
            (name, length): await grown(filled, f"{name} {length}", length) for name in _WORK for length in _LENGTHS
        }
    found = []
    for name, operate in _WORK.items():
        spent = {length: await _spent(where, operate, chats[name, length]) for length in _LENGTHS}
        ratio = spent[_LENGTHS[1]] / spent[_LENGTHS[0]]
        found.append(Finding(f"{name}: work in a thread of {_LENGTHS[1]:,} over one of {_LENGTHS[0]}", database, ratio))
    return found


async def _spent(where: str, operate: Callable[[Any, Chat], Any], chat_: Chat) -> int:
    if is_postgresql(where):
        before = await rows_read(where)
        with Runtime.open(where) as runtime:
            for _ in range(_REPEATED):
                operate(runtime.checkpointer, chat_)
        return await rows_read(where) - before
    with counting(where) as (counted_where, counted), Runtime.open(counted_where) as runtime:
        operate(runtime.checkpointer, chat_)
        counted.reset()
        operate(runtime.checkpointer, chat_)
        return counted.steps


def worker(where: str, database: str) -> list[Finding]:
    """Count what a worker sends for one run."""
    return [Finding(name, database, value) for name, value in zip(WORKER, of_one_run(where), strict=True)]


def everything() -> list[Finding]:
    """Check both databases (raises PostgresNotFound where there is no PostgreSQL)."""
    found = []
    with tempfile.TemporaryDirectory() as folder, PostgresServer.start() as server:
        for database in (SQLITE, POSTGRESQL):
            places = [
                str(Path(folder) / f"{number}.db") if database == SQLITE else server.create_database()
                for number in range(6)
            ]
            found += trips(places[0], database)
            found += asyncio.run(chat_sizes(places[1], places[2], database))
            found += asyncio.run(file_sizes(places[3], database))
            found += asyncio.run(work(places[4], database))
            found += worker(places[5], database)
    return found


def table(found: list[Finding]) -> Table:
    """Return the findings beside bounds and goals."""
    lines = []
    for one in found:
        bound = BOUNDS[one.name]
        goal = "" if bound.goal is None else f"{bound.goal:,g}"
        verdict = "ok" if one.holds else "**TOO MUCH**"
        lines.append([one.name, one.database, _number(one.value), _number(bound.of(one.database)), goal, verdict])
    return Table("What no machine changes", ["count", "database", "value", "bound", "goal", ""], lines)


def _number(value: float) -> str:
    return f"{value:,.2f}" if value != int(value) else f"{int(value):,}"
