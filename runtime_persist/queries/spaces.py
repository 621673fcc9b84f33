"""The space's row."""

from __future__ import annotations

from sqlalchemy import select

from runtime_persist.dialects.sql import bind
from runtime_persist.plan import Plan, Query, Row, one_or_none
from runtime_persist.schema import spaces

READ_SPACE = Query("read_space", select(spaces).where(spaces.c.space == bind(spaces.c.space)))


def space(name: str) -> Plan[Row | None]:
    """Return the space's row, None when the space does not exist."""
    return (yield from one_or_none(READ_SPACE, space=name))


def secret(name: str) -> Plan[bytes | None]:
    """Return the space's secret, None when the space does not exist."""
    row = yield from space(name)
    return None if row is None else bytes(row["secret"])
