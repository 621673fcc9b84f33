"""Sizes of databases, and statements run beside the savers; a database is a PostgreSQL URL or a SQLite file."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from typing import Any

_COLUMNS = {
    "postgresql": """
        SELECT table_name, column_name, data_type FROM information_schema.columns
        WHERE table_schema = 'public' ORDER BY table_name, ordinal_position""",
    "sqlite": """
        SELECT m.name, c.name, c.type FROM sqlite_master AS m, pragma_table_info(m.name) AS c
        WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.cid""",
}
_KEYS = {
    "postgresql": """
        SELECT c.relname, a.attname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = ANY(i.indkey)
        WHERE i.indisprimary AND c.relnamespace = 'public'::regnamespace""",
    "sqlite": """
        SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c
        WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND c.pk > 0""",
}
_NUMBER_BYTES = 8
_GLANCE_SECONDS = 0.01
_OTHER_SESSIONS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"""
_ROWS_READ = """
    SELECT (SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0) FROM pg_stat_user_tables)
         + (SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes)"""


def is_postgresql(where: str) -> bool:
    return where.startswith("postgres")


async def run(where: str, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements on a connection of their own and return the rows of the last one."""
    rows: list[tuple[Any, ...]] = []
    if not is_postgresql(where):
        with contextlib.closing(sqlite3.connect(where, isolation_level=None)) as connection:
            for sql in statements:
                rows = connection.execute(sql).fetchall()
        return rows
    import asyncpg

    connection = await asyncpg.connect(where)
    try:
        for sql in statements:
            rows = [tuple(row) for row in await connection.fetch(sql)]
    finally:
        await connection.close()
    return rows


async def size_on_disk(where: str) -> int:
    """Return the bytes of all tables with indexes and TOAST, or of the SQLite file with an empty log."""
    if is_postgresql(where):
        await run(where, "VACUUM ANALYZE")
        sizes = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"  # noqa: E501
        return (await run(where, sizes))[0][0] or 0
    await run(where, "PRAGMA wal_checkpoint(TRUNCATE)")
    return os.stat(where).st_size  # noqa: PTH116 (nothing else runs on this loop)


async def size_of_rows(where: str) -> int:
    """Return the bytes of all values in all rows: the same on every machine, and on both databases."""
    total = 0
    for table, columns in (await columns_of(where)).items():
        lengths = " + ".join(_length(name, kind, postgresql=is_postgresql(where)) for name, kind in columns.items())
        total += int((await run(where, f'SELECT coalesce(sum({lengths}), 0) FROM "{table}"'))[0][0])  # noqa: S608
    return total


async def rows_read(where: str) -> int:
    """Return how many rows and index entries a PostgreSQL database has read since it was made.

    A session's numbers arrive when it ends, so this waits for all other sessions to end.
    """
    while (await run(where, _OTHER_SESSIONS))[0][0]:  # noqa: ASYNC110 (another process ends them)
        await asyncio.sleep(_GLANCE_SECONDS)
    return int((await run(where, _ROWS_READ))[0][0])


async def columns_of(where: str) -> dict[str, dict[str, str]]:
    """Return table -> column -> type."""
    found: dict[str, dict[str, str]] = {}
    for table, column, kind in await run(where, _COLUMNS["postgresql" if is_postgresql(where) else "sqlite"]):
        found.setdefault(table, {})[column] = kind.lower()
    return found


async def keys_of(where: str) -> dict[str, set[str]]:
    """Return table -> columns of its primary key."""
    found: dict[str, set[str]] = {}
    for table, column in await run(where, _KEYS["postgresql" if is_postgresql(where) else "sqlite"]):
        found.setdefault(table, set()).add(column)
    return found


def _length(column: str, kind: str, *, postgresql: bool) -> str:
    name = f'"{column}"'
    if kind in {"bigint", "integer"}:
        return str(_NUMBER_BYTES)
    length = f"octet_length({name})" if postgresql else f"length(CAST({name} AS BLOB))"
    return f"coalesce({length}, 0)"
