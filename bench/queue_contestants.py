"""Who takes part in the part queues, and how each is run."""

from __future__ import annotations

from dataclasses import dataclass

from bench.savers import POSTGRESQL, SQLITE

OURS, DBOS, PROCRASTINATE = "ours", "DBOS", "procrastinate"
PACKAGES = {DBOS: "dbos", PROCRASTINATE: "procrastinate"}

_DEFAULT_POLL = 1.0
_SHORT_POLL = 0.01


@dataclass(frozen=True)
class Contestant:
    """One line of the tables.

    Attributes:
        key: its name on the command line and in the results.
        title: its name in tables.
        database: where its queue is.
        kind: what it is.
        poll_seconds: pause between two looks at the queue; 0: it is woken.
        claims_all: its queue has no limit, so one look claims all there is; its threads are what limits it.

    """

    key: str
    title: str
    database: str
    kind: str
    poll_seconds: float = 0.0
    claims_all: bool = False

    @property
    def ours(self) -> bool:
        return self.kind == OURS


def _of_dbos(prefix: str, database: str) -> tuple[Contestant, ...]:
    return (
        Contestant(f"{prefix}-dbos", "DBOS, looks every second (its default)", database, DBOS, _DEFAULT_POLL),
        Contestant(f"{prefix}-dbos-short", "DBOS, looks every 10 ms", database, DBOS, _SHORT_POLL),
        Contestant(f"{prefix}-dbos-all", "DBOS, every 10 ms, no limit", database, DBOS, _SHORT_POLL, claims_all=True),
    )


CONTESTANTS = (
    Contestant("sqlite-worker", "**ours, SQLite**", SQLITE, OURS),
    *_of_dbos("sqlite", SQLITE),
    Contestant("postgres-worker", "**ours, PostgreSQL**", POSTGRESQL, OURS),
    *_of_dbos("postgres", POSTGRESQL),
    Contestant("procrastinate", "procrastinate, LISTEN", POSTGRESQL, PROCRASTINATE),
)
BY_KEY = {contestant.key: contestant for contestant in CONTESTANTS}
