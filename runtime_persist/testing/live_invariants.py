"""What must hold of runs at every moment, while any number of workers work, die and come back.

    while working:
        assert look(engine) == []

One look reads one snapshot in a few statements that count in the database, whatever number of runs there is.
``runtime_persist/testing/faults.py`` looks at every row instead, when nobody works any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime_persist.plan import Plan, many
from runtime_persist.queries.invariants import RULES

if TYPE_CHECKING:
    from runtime_persist.engine import Engine

__all__ = ["RULES", "look"]


def look(engine: Engine) -> list[str]:
    """Return what is broken in the engine's space now, one text each; nothing when all of it holds."""

    def plan() -> Plan[list[str]]:
        found = []
        for query, meaning in RULES.items():
            rows = yield from many(query, space=engine.space)
            found += [f"{meaning}: {dict(row)}" for row in rows]
        return found

    return engine.coordinator.read("live_invariants", plan, snapshot=True).result()
