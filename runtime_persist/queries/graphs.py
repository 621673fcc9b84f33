"""Which graphs some process of the space can run."""

from __future__ import annotations

from sqlalchemy import select

from runtime_persist.dialects.sql import bind
from runtime_persist.plan import Plan, Query, many
from runtime_persist.schema import graphs

READ_GRAPHS = Query(
    "read_graphs",
    select(graphs.c.graph).where(graphs.c.space == bind(graphs.c.space)).order_by(graphs.c.graph),
)


def names(space: str) -> Plan[list[str]]:
    """Return the registered names."""
    return [row["graph"] for row in (yield from many(READ_GRAPHS, space=space))]
