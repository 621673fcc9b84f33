"""Events: of one run by their numbers, of the whole space by their positions; and how far a consumer has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, bindparam, literal_column, or_, select
from sqlalchemy.types import BigInteger

from runtime_persist.dialects.sql import bind, number, words
from runtime_persist.dialects.transactions import settled_number, unassigned_number
from runtime_persist.plan import Plan, Query, Row, many, one_or_none
from runtime_persist.schema import cursors, events

if TYPE_CHECKING:
    from collections.abc import Mapping

_E = events.c
_PAGE = bindparam("page_rows", type_=BigInteger())

READ_EVENTS = Query(
    "read_events",
    select(events)
    .where(_E.space == bind(_E.space), _E.run_id == bind(_E.run_id), _E.seq > number("after_seq"))
    .order_by(_E.seq)
    .limit(_PAGE),
)
# Only what no open transaction can add to any more: an event that commits late is still to come, not left behind.
READ_OUTBOX = Query(
    "read_outbox",
    select(events)
    .where(
        _E.space == bind(_E.space),
        _E.position < settled_number(),
        _E.position >= number("after_position"),
        or_(
            _E.position > number("after_position"),
            _E.run_id > words("after_run_id"),
            and_(_E.run_id == words("after_run_id"), _E.seq > number("after_seq")),
        ),
    )
    .order_by(_E.position, _E.run_id, _E.seq)
    .limit(_PAGE),
)
# Positions that no transaction of this server has had: they come out of a dump of another one.
READ_FOREIGN = Query(
    "read_foreign_positions",
    select(_E.position)
    .where(_E.space == bind(_E.space), _E.position >= unassigned_number())
    .order_by(_E.position.desc())
    .limit(literal_column("1")),
)
READ_CURSOR = Query(
    "read_cursor",
    select(cursors).where(cursors.c.space == bind(cursors.c.space), cursors.c.consumer == bind(cursors.c.consumer)),
)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where an event stands in the outbox of its space; places are ordered."""

    position: int = 0
    run_id: str = ""
    seq: int = 0

    @classmethod
    def of(cls, row: Mapping[str, object]) -> Place:
        """Return the place of an event's row, or the one a cursor's row names."""
        return cls(int(str(row["position"])), str(row["run_id"]), int(str(row["seq"])))


BEGINNING = Place()
"""In front of all events."""


def of_run(space: str, run_id: str, after_seq: int, rows: int) -> Plan[list[Row]]:
    """Read a run's events behind a sequence number."""
    return list((yield from many(READ_EVENTS, space=space, run_id=run_id, after_seq=after_seq, page_rows=rows)))


def outbox(space: str, after: Place, rows: int) -> Plan[list[Row]]:
    """Read the space's events behind a place, in order, as far as nothing can come between them any more."""
    found = yield from many(
        READ_OUTBOX,
        space=space,
        after_position=after.position,
        after_run_id=after.run_id,
        after_seq=after.seq,
        page_rows=rows,
    )
    return list(found)


def foreign(space: str) -> Plan[bool]:
    """Read whether positions come from another server."""
    return (yield from one_or_none(READ_FOREIGN, space=space)) is not None


def cursor(space: str, consumer: str) -> Plan[Place]:
    """Read the last place that a consumer acknowledged."""
    row = yield from one_or_none(READ_CURSOR, space=space, consumer=consumer)
    return BEGINNING if row is None else Place.of(row)
