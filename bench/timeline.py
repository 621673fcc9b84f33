"""Where the time of a put goes, from the call to its return: a clock is read at each hand-over.

    python -m bench.timeline [--puts N]

One caller on an event loop, 1 KB, PostgreSQL. Medians of one run on a quiet machine; what waits for a processor is
counted where it waits.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import time
from concurrent.futures import Future

from bench.loads import KB, Chat
from bench.report.tables import Table
from bench.savers import SERVER_SETTINGS
from runtime_persist import Runtime
from runtime_persist.drivers.postgresql import PostgresDriver
from runtime_persist.drivers.postgresql_pool import Connection
from runtime_persist.testing.postgres import PostgresServer

_WARM = 200
STAGES = {
    "called": "serialize, split, address, compress, encode (the caller)",
    "handed over": "hand the command to the database's thread, which wakes up",
    "taken in": "make its parameters",
    "sent": "the statement: bind, PostgreSQL with its fsync, the answer's way back",
    "answered": "read the answer, make the receipt",
    "told": "wake the caller's loop, which goes on",
}


def _marked(marks: dict[str, float], kind: type, method: str, before: str | None, after: str | None = None) -> None:
    """Note the time when a method is called, and when it has returned."""
    inner = getattr(kind, method)

    def note(mark: str | None) -> None:
        if mark is not None:
            marks[mark] = time.perf_counter()

    async def awaited(*given, **named):
        note(before)
        result = await inner(*given, **named)
        note(after)
        return result

    def called(*given, **named):
        note(before)
        result = inner(*given, **named)
        note(after)
        return result

    setattr(kind, method, awaited if asyncio.iscoroutinefunction(inner) else called)


async def measure(where: str, puts: int) -> tuple[float, dict[str, float]]:
    """Return the median microseconds of a put, and of each of its stages."""
    marks: dict[str, float] = {}
    _marked(marks, PostgresDriver, "submit", "handed over")
    _marked(marks, PostgresDriver, "_take_in", "taken in")
    _marked(marks, Connection, "fetch", "sent", "answered")
    _marked(marks, Future, "set_result", "told")
    spent: dict[str, list[float]] = {stage: [] for stage in STAGES}
    whole = []
    async with Runtime.open(where) as runtime:
        saver = runtime.checkpointer
        chat = Chat(saver, "timed", KB)
        for number in range(_WARM + puts):
            given = chat.put()
            marks.clear()
            marks["called"] = time.perf_counter()
            await saver.aput(*given)
            ended = time.perf_counter()
            if number < _WARM:
                continue
            whole.append((ended - marks["called"]) * 1e6)
            times = [*(marks[stage] for stage in STAGES), ended]
            for stage, (begins, ends) in zip(STAGES, itertools.pairwise(times), strict=True):
                spent[stage].append((ends - begins) * 1e6)
    return statistics.median(whole), {stage: statistics.median(found) for stage, found in spent.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.timeline")
    parser.add_argument("--puts", type=int, default=1000)
    given = parser.parse_args()
    with PostgresServer.start(settings=SERVER_SETTINGS) as server:
        where = server.socket_dsn(server.create_database().rsplit("/", 1)[1])
        whole, spent = asyncio.run(measure(where, given.puts))
    lines = [[STAGES[stage], f"{found:.0f}", f"{found / whole:.0%}"] for stage, found in spent.items()]
    head = [f"PostgreSQL, async, {KB:,} bytes: {whole:.0f} µs a put", "µs", "share"]
    print(Table("a put from its call to its return", head, lines).markdown())


if __name__ == "__main__":
    main()
