"""Where the microseconds of a put go: every thread of the process is profiled, calls are sorted into layers.

    python -m bench.profiling [--database sqlite|postgresql] [--size BYTES] [--puts N] [--calls N]

The profile counts processor time of threads, so other processes and waiting do not disturb it. A profiler makes all
Python calls dearer: only its shares are used, of the processor time that a put takes without it. What is left of a
put's time was waited: for the disk, for the PostgreSQL server (whose work this is not), for another thread.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import tempfile
import threading
import time
from pathlib import Path

from bench.loads import KB, Chat
from bench.report.tables import Table
from bench.savers import SERVER_SETTINGS
from runtime_persist import Runtime
from runtime_persist.testing.postgres import PostgresServer

_WARM = 100
_BUILTINS = {
    "sqlite3.Connection' objects": "SQLite: statements and COMMIT",
    "sqlite3.Cursor' objects": "SQLite: statements and COMMIT",
    "Context' objects": "asyncio, futures, thread hand-over",
    "epoll": "asyncio, futures, thread hand-over",
    "lock'": "asyncio, futures, thread hand-over",
    "SimpleQueue": "asyncio, futures, thread hand-over",
    "asyncpg": "asyncpg",
    "zstandard": "zstd",
    "zstd": "zstd",
    "blake3": "hashing",
    "ormsgpack": "serializer",
    "orjson": "serializer",
    "socket": "socket calls",
}
_FILES = {
    "runtime_persist/adapters": "adapters: encoding, manifest, metadata, what was loaded",
    "runtime_persist/contentstore": "content store: segments, addresses, packing",
    "runtime_persist/engine": "engine: flows, futures",
    "runtime_persist/coordinator": "coordinator and commands: parameters, receipts, retries",
    "runtime_persist/commands": "coordinator and commands: parameters, receipts, retries",
    "runtime_persist/model": "model: keys, references, fingerprints",
    "runtime_persist/plan": "drivers: running the plan",
    "runtime_persist/drivers": "drivers: running the plan",
    "runtime_persist/dialects": "drivers: running the plan",
    "asyncpg": "asyncpg",
    "selectors.py": "asyncio, futures, thread hand-over",
    "asyncio": "asyncio, futures, thread hand-over",
    "concurrent/futures": "asyncio, futures, thread hand-over",
    "threading.py": "asyncio, futures, thread hand-over",
    "queue.py": "asyncio, futures, thread hand-over",
    "langgraph": "serializer",
    "langchain_core": "serializer",
    "pydantic": "serializer",
    "bench/": None,
}
OTHER = "Python itself and the rest"
WAITING = "waiting: disk, server, another thread"


class Profiled:
    """Runs every thread that is started inside the block under a profile of its own; the caller's too."""

    def __init__(self) -> None:
        self._profiles: list[cProfile.Profile] = []
        self._run = threading.Thread.run

    def __enter__(self):
        profiles, run = self._profiles, self._run

        def profiled(thread):
            profile = cProfile.Profile(time.thread_time)
            profiles.append(profile)
            profile.runcall(run, thread)

        threading.Thread.run = profiled
        return self

    def __exit__(self, *_):
        threading.Thread.run = self._run

    def stats(self, caller: cProfile.Profile) -> pstats.Stats:
        return pstats.Stats(caller, *self._profiles)


def layer(file: str, name: str) -> str | None:
    """Return what a function belongs to; None for the bench itself."""
    if file == "~":
        return next((what for word, what in _BUILTINS.items() if word in name), OTHER)
    return next((what for word, what in _FILES.items() if word in file), OTHER)


def _puts(where: str, size: int, puts: int, caller: cProfile.Profile | None) -> tuple[float, float]:
    """Return the median seconds of a put, and its seconds of processor time."""
    times = []
    with Runtime.open(where) as runtime:
        saver = runtime.checkpointer
        chat = Chat(saver, "profiled", size)
        given = [chat.put() for _ in range(_WARM + puts)]
        for number, one in enumerate(given):
            if number == _WARM:
                processor = time.process_time()
            began = time.perf_counter()
            if caller is None:
                saver.put(*one)
            else:
                caller.runcall(saver.put, *one)
            times.append(time.perf_counter() - began)
        processor = time.process_time() - processor
    return statistics.median(times[_WARM:]), processor / puts


def profile(make_place, size: int, puts: int) -> tuple[float, float, pstats.Stats]:
    """Return the median seconds of a put, its processor time, and the profile of another run."""
    plain, processor = _puts(make_place(), size, puts, None)
    caller = cProfile.Profile(time.thread_time)
    with Profiled() as threads:
        _puts(make_place(), size, puts, caller)
    return plain, processor, threads.stats(caller)


def table(title: str, plain: float, processor: float, stats: pstats.Stats) -> Table:
    """Return microseconds a put by layer."""
    spent: dict[str, float] = {}
    for (file, _, name), (_, _, own, _, callers) in stats.stats.items():
        parts = [(layer(file, name), own)]
        if parts[0][0] == OTHER and callers:  # len() and its like belong to whoever calls them
            parts = [(layer(caller, function), part[2]) for (caller, _, function), part in callers.items()]
        for found, seconds in parts:
            if found is not None:
                spent[found] = spent.get(found, 0.0) + seconds
    profiled = sum(spent.values())
    shares = {what: own / profiled * processor for what, own in spent.items()}
    shares[WAITING] = max(0.0, plain - processor)
    lines = [
        [what, f"{seconds * 1e6:.0f}", f"{seconds / sum(shares.values()):.0%}"]
        for what, seconds in sorted(shares.items(), key=lambda item: -item[1])
    ]
    head = [f"{title}: {plain * 1e6:.0f} µs a put, {processor * 1e6:.0f} of them on the processor", "µs", "share"]
    return Table(title, head, lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.profiling")
    parser.add_argument("--database", choices=["sqlite", "postgresql"])
    parser.add_argument("--size", type=int, default=KB)
    parser.add_argument("--puts", type=int, default=1000)
    parser.add_argument(
        "--calls", type=int, default=0, help="also show so many functions with the most time of their own"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, PostgresServer.start(settings=SERVER_SETTINGS) as server:
        files = iter(range(9))
        places = {
            "sqlite": lambda: str(Path(folder) / f"{next(files)}.db"),
            "postgresql": lambda: server.socket_dsn(server.create_database().rsplit("/", 1)[1]),
        }
        for database in [given.database] if given.database else places:
            plain, processor, stats = profile(places[database], given.size, given.puts)
            print(table(f"{database}, {given.size:,} bytes", plain, processor, stats).markdown())
            if given.calls:
                stats.sort_stats("tottime").print_stats(given.calls)


if __name__ == "__main__":
    main()
