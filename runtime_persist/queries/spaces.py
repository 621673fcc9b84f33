"""The space's row."""

from __future__ import annotations

from sqlalchemy import select

from runtime_persist.dialects.sql import bind
from runtime_persist.plan import Plan, Query, one_or_none
from runtime_persist.schema import spaces

READ_SPACE = Query("read_space", select(spaces.c.secret).where(spaces.c.space == bind(spaces.c.space)))


def secret(space: str) -> Plan[bytes | None]:
    """Return the space's secret, None when the space does not exist."""
    row = yield from one_or_none(READ_SPACE, space=space)
    return None if row is None else bytes(row["secret"])
