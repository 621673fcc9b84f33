"""The newest tickets of a run, with the names of their calls."""

from __future__ import annotations

from sqlalchemy import and_, select

from runtime_persist.dialects.sql import bind, number
from runtime_persist.plan import Query
from runtime_persist.schema import operations, tickets

_T, _O = tickets.c, operations.c

# By the primary key: ids of operations are in the order in which they were given.
NEWEST = Query(
    "read_newest_tickets",
    select(tickets, _O.name)
    .select_from(tickets.outerjoin(operations, and_(_O.space == _T.space, _O.operation_id == _T.operation_id)))
    .where(_T.space == bind(_T.space), _T.run_id == bind(_T.run_id))
    .order_by(_T.operation_id.desc())
    .limit(number("page_rows")),
)
