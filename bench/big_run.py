"""How long it takes to look into a run of 100,000 operations and checkpoints, and with how much memory."""

from __future__ import annotations

import asyncio
import statistics
import sys
from typing import TYPE_CHECKING, Any

from bench import bulk
from bench.big_run_sides import PEAK, QUESTIONS
from bench.queues import side
from bench.savers import POSTGRESQL, SQLITE

if TYPE_CHECKING:
    from bench.options import Options
    from bench.savers import Lab

SIZES, _QUICK_SIZES = (1_000, 100_000), (100, 1_000)
_ASKED = 5
_SIDES = "bench.big_run_sides"


async def measure(lab: Lab, options: Options) -> list[dict[str, Any]]:
    """Return a row a database, size of the run, question and round."""
    databases = [SQLITE] if lab.postgresql() is None else [SQLITE, POSTGRESQL]
    sizes = _QUICK_SIZES if options.quick else SIZES
    places = [(database, size) for database in databases if options.wants(database) for size in sizes]
    made = {place: await _made(lab, *place) for place in options.progress(places, "long runs, filling")}
    rows = []
    for turn in options.rounds_of("big_run"):
        for place in options.progress(places, f"long runs, round {turn + 1}"):
            named = {"saver": "ours", "database": place[0], "size": place[1], "round": turn}
            rows += [named | row for row in await _looked(lab, *made[place])]
    return rows


async def _made(lab: Lab, database: str, size: int) -> tuple[str, str]:
    """Return where a long run is, and its id."""
    where = lab.place(database)
    making = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "ignore", "-m", _SIDES, "make", where), stdout=asyncio.subprocess.PIPE
    )
    told, _ = await making.communicate()
    if making.returncode:
        msg = "the run could not be made; what is wrong stands above"
        raise RuntimeError(msg)
    await bulk.lengthen(where, size)
    return where, told.decode().strip()


async def _looked(lab: Lab, where: str, run_id: str) -> list[dict[str, Any]]:
    rows = []
    async with side(lab, _SIDES, run_id, where) as process:
        for number, asked in enumerate(QUESTIONS):
            await process.ask(number)  # what is imported and compiled once
            with lab.machine.watched() as watched:
                spent = [await process.ask(number) for _ in range(_ASKED)]
            row = {"asked": asked, "ms": statistics.median(spent) / 1e6}
            rows.append(row | {"others": watched.others, "noisy": watched.noisy})
        peak = await process.ask(PEAK)
    return [row | {"peak": peak} for row in rows]
