"""How many runs are open in each state, of which graph, and since when the oldest of them is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select

from runtime_persist.dialects.sql import bind, constant, now_us
from runtime_persist.model.states import FINAL_RUN, RunStatus
from runtime_persist.plan import Plan, Query, Row, many
from runtime_persist.schema import runs

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPEN = [constant(status.value) for status in RunStatus if status not in FINAL_RUN]

READ_OPEN_COUNTS = Query(
    "read_open_counts",
    select(
        runs.c.status,
        runs.c.graph,
        func.count().label("runs"),
        func.min(runs.c.created_us).label("oldest_us"),
        func.max(now_us()).label("now_us"),
    )
    .where(runs.c.space == bind(runs.c.space), runs.c.status.in_(_OPEN))
    .group_by(runs.c.status, runs.c.graph),
)


def open_counts(space: str) -> Plan[Sequence[Row]]:
    """Read how many open runs of each graph are in each state (``status, graph, runs, oldest_us, now_us``)."""
    return (yield from many(READ_OPEN_COUNTS, space=space))
