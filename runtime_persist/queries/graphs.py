"""Which graphs some process of the space can run."""

from __future__ import annotations

from sqlalchemy import select

from runtime_persist.dialects.sql import bind
from runtime_persist.plan import Plan, Query, Row, many
from runtime_persist.schema import graphs

READ_GRAPHS = Query(
    "read_graphs",
    select(graphs).where(graphs.c.space == bind(graphs.c.space)).order_by(graphs.c.graph),
)


def registered(space: str) -> Plan[dict[str, Row]]:
    """Return the registered graphs by name."""
    return {row["graph"]: row for row in (yield from many(READ_GRAPHS, space=space))}
