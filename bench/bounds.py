"""What must not get worse: counts and sizes that are the same on every machine.

Each bound is what was reached when it was written, and a little room (sizes: the random parts of versions compress a
little differently each time). Where a goal is not reached yet it stands beside the bound. Whoever makes something
better lowers the bound in the same commit; `python -m bench check` shows all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.savers import POSTGRESQL, SQLITE


@dataclass(frozen=True)
class Bound:
    """The most that is allowed on each database, and what it shall become."""

    sqlite: float
    postgresql: float
    goal: float | None = None

    def of(self, database: str) -> float:
        return {SQLITE: self.sqlite, POSTGRESQL: self.postgresql}[database]


# Of PostgreSQL these are round trips, of SQLite writing transactions. Statements of SQLite count each part of a value
# that is stored (what it is split into depends on the messages).
TRIPS = "round trips or transactions"
STATEMENTS = "statements"

COUNTS = {
    f"put: {TRIPS}": Bound(1, 1),
    f"put: {STATEMENTS}": Bound(12, 1),
    f"put_writes of 1: {TRIPS}": Bound(1, 1),
    f"put_writes of 1: {STATEMENTS}": Bound(5, 1),
    f"put_writes of 5: {TRIPS}": Bound(1, 1),
    f"put_writes of 5: {STATEMENTS}": Bound(15, 1),
    f"put of an owned run: {TRIPS}": Bound(1, 1),
    f"put of an owned run: {STATEMENTS}": Bound(8, 1),
    f"put_writes of an owned run: {TRIPS}": Bound(1, 1),
    f"put_writes of an owned run: {STATEMENTS}": Bound(5, 1),
    f"get_tuple: {TRIPS}": Bound(0, 1, goal=1),  # its content is in memory: this process put it
    f"get_tuple: {STATEMENTS}": Bound(1, 1),
    f"get_tuple with nothing cached: {TRIPS}": Bound(0, 3),
    f"get_tuple with nothing cached: {STATEMENTS}": Bound(2, 3),
    f"list of 10: {STATEMENTS}": Bound(2, 4),
    f"list of 200: {STATEMENTS}": Bound(2, 4),
}
CHAT = {
    "chat of 100 turns: bytes": Bound(800_000, 800_000, goal=1_500_000),
    "chat of 25 turns, a str document: bytes": Bound(240_000, 240_000, goal=500_000),
    "chat: growth exponent from 50 to 100 turns": Bound(1.0, 1.0, goal=1.1),
}
FILES = {
    "E1, a file of 0.5 MB: bytes": Bound(720_000, 720_000, goal=1_000_000),
    "E1, one more thread with that file: bytes": Bound(300_000, 300_000, goal=1_000_000),
}
WORK = {
    f"{name}: work in a thread of 2,000 over one of 100": Bound(1.1, 1.1, goal=1.2)
    for name in ("get_tuple", "put", "put_writes", "list of 10")
}
WORKER = {
    f"run of a worker, one node: {TRIPS}": Bound(8, 28),
    f"run of a worker, one node: {STATEMENTS}": Bound(60, 30),
}
BOUNDS = COUNTS | CHAT | FILES | WORK | WORKER
