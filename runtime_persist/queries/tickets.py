"""Tickets of budgets: whether the counters of runs are what they add up to, and who holds one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, func, or_, select
from sqlalchemy.sql.expression import case

from runtime_persist.dialects.sql import bind, constant, number
from runtime_persist.model.budgets import EMPTY, KINDS, TicketState
from runtime_persist.plan import Plan, Query, Row, many, one_or_none
from runtime_persist.queries.run_tickets import NEWEST
from runtime_persist.queries.runs import READ_RUN
from runtime_persist.schema import operations, runs, tickets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement

_R, _T, _O = runs.c, tickets.c, operations.c


def _sum(kind: str, state: TicketState) -> ColumnElement[int]:
    counted = case((_T.state == constant(state.value), _T[kind]), else_=constant(0))
    return func.sum(counted).label(f"{kind}_{state.value}")


SUMS = tuple(_sum(kind, state) for kind in KINDS for state in (TicketState.RESERVED, TicketState.CONSUMED))
"""What the selected tickets come to: ``loops_reserved``, ``loops_consumed`` and so on (NULL: there are none)."""

_SUMS = select(_T.run_id, *SUMS).where(_T.space == bind(_T.space)).group_by(_T.run_id).subquery()
_DIFFERS = or_(*(_R[name] != func.coalesce(_SUMS.c[name], constant(0)) for name in EMPTY))
WRONG = Query(
    "read_wrong_budgets",
    select(_R.run_id, *(_R[name] for name in EMPTY))
    .select_from(runs.outerjoin(_SUMS, _SUMS.c.run_id == _R.run_id))
    .where(_R.space == bind(_R.space), _DIFFERS),
)
WRONG_OF_RUN = Query("read_wrong_budget", WRONG.statement.where(_R.run_id == bind(_R.run_id)))  # type: ignore[attr-defined]
HELD = Query(
    "read_held_tickets",
    select(tickets, _O.name)
    .select_from(tickets.outerjoin(operations, and_(_O.space == _T.space, _O.operation_id == _T.operation_id)))
    .where(
        _T.space == bind(_T.space),
        _T.run_id == bind(_T.run_id),
        _T.state == constant(TicketState.RESERVED.value),
    )
    .order_by(_T.reserved_us, _T.operation_id)
    .limit(number("page_rows")),
)
BY_INVOCATION = Query(
    "read_invocations",
    select(_T.invocation, *SUMS)
    .where(_T.space == bind(_T.space), _T.run_id == bind(_T.run_id), _T.invocation.is_not(None))
    .group_by(_T.invocation)
    .order_by(func.max(_T.operation_id).desc())
    .limit(number("page_rows")),
)


def is_wrong(space: str, run_id: str) -> Plan[bool]:
    """Return whether the counters of a run are not what its tickets add up to."""
    return (yield from one_or_none(WRONG_OF_RUN, space=space, run_id=run_id)) is not None


@dataclass(frozen=True, slots=True)
class Found:
    """A run, some of its tickets with the names of their calls, and what its newest invocations took."""

    run: Row
    tickets: Sequence[Row]
    invocations: Sequence[Row]


def of_run(space: str, run_id: str, rows: int, *, held: bool) -> Plan[Found | None]:
    """Read the newest tickets of a run; ``held``: those that are reserved, the oldest first."""
    run = yield from one_or_none(READ_RUN, space=space, run_id=run_id)
    if run is None:
        return None
    page = {"space": space, "run_id": run_id, "page_rows": rows}
    return Found(run, (yield from many(HELD if held else NEWEST, **page)), (yield from many(BY_INVOCATION, **page)))
