"""A journalled call beside a step of DBOS and a task of LangGraph: milliseconds each, one after the other.

Ours commits twice: that the call is about to be made, and what it returned. A step of DBOS and a task commit the result
only, so what became of a call that a crash interrupted is not known there.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.databases import run
from bench.queue_contestants import DBOS, PACKAGES
from bench.queues import is_installed, side
from bench.savers import POSTGRESQL, SQLITE

if TYPE_CHECKING:
    from bench.options import Options
    from bench.savers import Lab

_STEPS, _QUICK_STEPS = 200, 20


class Stepper(NamedTuple):
    """Who makes steps, and where they are stored."""

    key: str
    title: str
    database: str
    package: str | None = None


STEPPERS = tuple(
    stepper
    for prefix, database, saver in (("sqlite", SQLITE, "SqliteSaver"), ("postgres", POSTGRESQL, "PostgresSaver"))
    for stepper in (
        Stepper(f"{prefix}-ours", f"**ours, {database}**: `@operation`", database),
        Stepper(f"{prefix}-dbos", f"DBOS, {database}: step", database, PACKAGES[DBOS]),
        Stepper(f"{prefix}-tasks", f"LangGraph, {saver}: `@task`", database),
    )
)


async def measure(lab: Lab, options: Options) -> list[dict[str, Any]]:
    """Return a row a contestant and round: the quickest of three workflows' milliseconds a step."""
    there = [one for one in options.savers(STEPPERS) if _can(lab, one)]
    steps = _QUICK_STEPS if options.quick else _STEPS
    rows = []
    for turn in options.progress(options.rounds_of("steps"), "steps"):
        random.Random(turn).shuffle(there)
        for stepper in there:
            where = lab.place(stepper.database)
            if stepper.database == SQLITE:
                await run(where, "PRAGMA journal_mode=WAL")  # the others do it themselves; DBOS is helped by it
            async with side(lab, "bench.step_sides", stepper.key, where, str(steps)) as process:
                with lab.machine.watched() as watched:
                    spent = [await process.ask() for _ in range(3)]
            row = {"saver": stepper.key, "round": turn, "ms": min(spent) / steps / 1e6}
            rows.append(row | {"others": watched.others, "noisy": watched.noisy})
    return rows


def _can(lab: Lab, stepper: Stepper) -> bool:
    if stepper.package is not None and not is_installed(lab, stepper.key, stepper.package):
        return False
    return stepper.database != POSTGRESQL or lab.postgresql() is not None
