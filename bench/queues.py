"""Workers beside DBOS queues and procrastinate: items begun a second, and how long an idle worker takes to begin one.

A worker and who queues are processes of their own. Ours runs a graph of one node under a lease, which is more than
what the peers do: an empty workflow of DBOS, an empty task of procrastinate. Every slice has a database of its own on
one disk, or in one server.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import random
import statistics
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.databases import run
from bench.measure import percentile
from bench.queue_contestants import CONTESTANTS, PACKAGES
from bench.queue_sides import prepare
from bench.savers import POSTGRESQL, SQLITE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from bench.options import Options
    from bench.queue_contestants import Contestant
    from bench.savers import Lab

CLAIMS, LATENCY = MEASURES = ("claims", "latency")
CONCURRENCY = (1, 4, 16)
_QUEUED, _QUICK_QUEUED = 2_000, 100
_SECONDS, _QUICK_SECONDS = 4.0, 1.0
_STARTED, _QUICK_STARTED = 20, 3
_REST_SECONDS = 0.1
"""An item has ended so long after it began; then the worker is idle again."""
_PATIENCE_SECONDS = 120.0
_TOLD = 2_000


@dataclass
class Side:
    """One process of a contestant."""

    process: asyncio.subprocess.Process
    complaints: Path

    async def moment(self) -> int:
        """Return the next moment that it tells (raises TimeoutError, or RuntimeError when it has ended)."""
        line = await asyncio.wait_for(self.process.stdout.readline(), _PATIENCE_SECONDS)
        if not line:
            msg = f"the process ended: {self.complaints.read_text()[-_TOLD:]}"
            raise RuntimeError(msg)
        return int(line)

    async def ask(self, number: int = 1) -> int:
        """Write a number, and return what is answered: of a producer the moment before it queued so many items."""
        self.process.stdin.write(b"%d\n" % number)
        return await self.moment()


def _side(
    lab: Lab, role: str, contestant: Contestant, where: str, concurrency: int
) -> contextlib.AbstractAsyncContextManager[Side]:
    return side(lab, "bench.queue_sides", role, contestant.key, where, str(concurrency))


@contextlib.asynccontextmanager
async def side(lab: Lab, module: str, *arguments: str) -> AsyncIterator[Side]:
    """Start a process and wait until it is ready; at the end it is killed: its database is not used again."""
    complaints = lab.folder / f"{arguments[0]}.err"
    with complaints.open("wb") as stderr:  # a file: nobody reads a pipe, and a full one would stop the process
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "ignore", "-m", module, *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
        )
    made = Side(process, complaints)
    try:
        await made.moment()
        with lab.machine.counting_process(process.pid):
            yield made
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def measure(lab: Lab, options: Options) -> list[dict[str, Any]]:
    """Return a row a contestant, measure, concurrency and round."""
    there = [one for one in options.savers(CONTESTANTS) if _can(lab, one)]
    rows = []
    for turn in options.rounds_of("queues"):
        cells = [(what, concurrency) for concurrency in CONCURRENCY for what in MEASURES]
        wanted = [cell for cell in cells if options.wants(f"{cell[0]}, {cell[1]} at once")]
        for what, concurrency in options.progress(wanted, f"queues, round {turn + 1}"):
            random.Random(f"{turn} {what} {concurrency}").shuffle(there)
            for contestant in there:
                found = await (_claims if what == CLAIMS else _latency)(lab, options, contestant, concurrency)
                named = {"saver": contestant.key, "what": what, "concurrency": concurrency, "round": turn}
                rows.append(named | found)
    return rows


def _can(lab: Lab, contestant: Contestant) -> bool:
    package = PACKAGES.get(contestant.kind)
    if package is not None and not is_installed(lab, contestant.key, package):
        return False
    return contestant.database != POSTGRESQL or lab.postgresql() is not None


def is_installed(lab: Lab, key: str, package: str) -> bool:
    """Return whether a peer's package is there; say that it is left out, if not."""
    if importlib.util.find_spec(package) is None:
        lab.left_out[key] = f"{package} is not installed (make bench installs the extra `bench`)"
        return False
    return True


async def _place(lab: Lab, contestant: Contestant) -> str:
    where = lab.place(contestant.database)
    if contestant.database == SQLITE:
        await run(where, "PRAGMA journal_mode=WAL")  # ours does it itself; it stays with the file, and helps DBOS too
    await asyncio.to_thread(prepare, contestant, where)
    return where


async def _claims(lab: Lab, options: Options, contestant: Contestant, concurrency: int) -> dict[str, Any]:
    """Let a worker work on a long queue for a while, from the first item that begins."""
    queued = _QUICK_QUEUED if options.quick else _QUEUED
    seconds = _QUICK_SECONDS if options.quick else _SECONDS
    where = await _place(lab, contestant)
    async with _side(lab, "work", contestant, where, concurrency):
        pass  # it has made the tables, and the queue
    async with _side(lab, "produce", contestant, where, concurrency) as producer:
        await producer.ask(queued)
    async with _side(lab, "work", contestant, where, concurrency) as worker:
        with lab.machine.watched() as watched:
            moments = await _begun(worker, queued, seconds)
    gaps, taken = len(moments) - 1, (moments[-1] - moments[0]) / 1e9
    if 1 < gaps < queued - 1:  # the end of the time came, not that of the queue
        taken = seconds
    return {"ops": gaps / taken, "n": gaps, "others": watched.others, "noisy": watched.noisy}


async def _begun(worker: Side, queued: int, seconds: float) -> list[int]:
    """Return when items began: for so many seconds from the first one, and two of them at least."""
    moments = [await worker.moment(), await worker.moment()]
    end = moments[0] + round(seconds * 1e9)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, end - moments[1]) / 1e9):
            while len(moments) < queued:
                moments.append(await worker.moment())
    return [*moments[:2], *(moment for moment in moments[2:] if moment <= end)]


async def _latency(lab: Lab, options: Options, contestant: Contestant, concurrency: int) -> dict[str, Any]:
    """Start one item after the other for an idle worker, each at another moment of the pause between two looks."""
    where = await _place(lab, contestant)
    chance = random.Random(f"{contestant.key} {concurrency}")
    times = []
    async with (
        _side(lab, "work", contestant, where, concurrency) as worker,
        _side(lab, "produce", contestant, where, concurrency) as producer,
    ):
        await producer.ask(1)  # warm: statements are prepared, modules loaded
        await worker.moment()
        with lab.machine.watched() as watched:
            for _ in range(_QUICK_STARTED if options.quick else _STARTED):
                await asyncio.sleep(_REST_SECONDS + chance.random() * contestant.poll_seconds)
                sent = await producer.ask(1)
                times.append((await worker.moment() - sent) / 1e6)
    return {
        "p50": statistics.median(times),
        "p95": percentile(times, 0.95),
        "n": len(times),
        "others": watched.others,
        "noisy": watched.noisy,
    }
