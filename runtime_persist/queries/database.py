"""What the database says of itself."""

from __future__ import annotations

from sqlalchemy import select

from runtime_persist.dialects.sql import database_version
from runtime_persist.plan import Plan, Query, many

READ_VERSION = Query("read_database_version", select(database_version().label("version")))


def version() -> Plan[str]:
    """Return the version of the database as it names it."""
    (row,) = yield from many(READ_VERSION)
    return str(row["version"])
