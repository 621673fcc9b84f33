"""A run's lease and the attempts that held it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.queries import runs

if TYPE_CHECKING:
    from runtime_persist.plan import Plan, Row


@dataclass(frozen=True, slots=True)
class Lease:
    """A run's row, and its attempts, oldest first."""

    run: Row
    attempts: list[Row]


def lease(space: str, run_id: str) -> Plan[Lease | None]:
    """Read a run's lease (None: there is no such run)."""
    run = yield from runs.run(space, run_id)
    return None if run is None else Lease(run, (yield from runs.attempts_of(space, run_id)))
