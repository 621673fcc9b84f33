"""Positions: where an event stands in its space's outbox.

PostgreSQL: the id of the writing transaction. Readers stop below the oldest transaction that is still open, so one that
commits late is never skipped. SQLite has one writer at a time and counts.

An id is given when a transaction first locks a row, which may be another row than the run's: the ids of two
transactions can lie the other way round than their events of one run. So a run's row remembers the greatest position of
its events, and the next one is never smaller. It may then be greater than its transaction's id: readers look below
open transactions, hence below all positions that these can still write.

Code of 1.0 does not know the column; a trigger keeps it for what such code writes (``followed_by_trigger``). Its own
events have their transaction's id alone: while a deployment rolls, two of a run may lie the other way round on
PostgreSQL. None is skipped.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, func, select

from runtime_persist.dialects.sql import bind, constant
from runtime_persist.dialects.transactions import greater, transaction_number
from runtime_persist.schema import cursors, events, runs

NO_CONSUMER = ""
"""The consumer that SQLite counts on from: what the greatest position was when events were deleted."""


def new() -> ColumnElement[int]:
    """Return the position of what a transaction appends to a new run (parameter: ``space``)."""
    last = select(func.max(events.c.position)).where(events.c.space == bind(events.c.space)).scalar_subquery()
    left = (
        select(cursors.c.position)
        .where(cursors.c.space == bind(cursors.c.space), cursors.c.consumer == constant(NO_CONSUMER))
        .scalar_subquery()
    )
    zero: Any = constant(0)
    return transaction_number(greater(func.coalesce(last, zero), func.coalesce(left, zero)) + constant(1))


def following() -> ColumnElement[int]:
    """Return the position of what a transaction appends to the run whose row it updates."""
    return greater(runs.c.event_position, new())


def of_run(run_id: ColumnElement[Any]) -> ColumnElement[int]:
    """Return the position that a run's row was given earlier in this transaction (parameter: ``space``)."""
    return (
        select(runs.c.event_position)
        .where(runs.c.space == bind(runs.c.space), runs.c.run_id == run_id)
        .scalar_subquery()
    )
