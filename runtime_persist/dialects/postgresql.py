"""PostgreSQL: a bundle is one statement of chained common table expressions.

The rules of the fence that live here (design: architecture §3): a fragment that takes locks becomes a MATERIALIZED
CTE with no other condition than its key; every later fragment selects from the one it names, so rows are locked in
that order; the final SELECT always has one row, also when the guard's row does not exist.
"""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import CTE, Connection, Executable, literal_column, select, text
from sqlalchemy.dialects.postgresql.asyncpg import dialect as asyncpg_dialect
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from runtime_persist.dialects.base import Compiled, CompiledBundle, Dialect, server_name
from runtime_persist.dialects.chained import answer, chain
from runtime_persist.dialects.url import asyncpg_address
from runtime_persist.errors import (
    ConnectionLost,
    DatabaseUnavailable,
    RuntimePersistError,
    SchemaMissing,
    StoreBusy,
    StoreFailed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.engine.interfaces import Dialect as SqlAlchemyDialect

    from runtime_persist.plan import Bundle, Query

R = TypeVar("R")

_PATIENCE_MS = 100
"""How long a batch waits for a lock that it could not skip."""
_MIGRATION_LOCK = 0x72705F6D69677261  # "rp_migra"; a transaction lock: it also works behind a pooler
_BUSY = {"40001", "40P01", "55P03", "57014"}  # serialization failure, deadlock, lock not available, cancelled
# Shut down, crashed, starting up, dropped, idle for too long (twice), too many connections. Class 08, the connection
# itself, too: poolers use it for all they have to say.
_LOST = {"57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "53300"}
_MISSING = {"42P01", "3F000"}  # undefined table, invalid schema name
_UNAVAILABLE = {"28000", "28P01", "3D000"}  # authorization, password, no such database
_READ_ONLY = "25006"  # a standby
_OUT_OF_RESOURCES = {"53", "58"}  # classes: disk full, out of memory …; a fault of the system below (I/O)
_OF_POOLERS = {"58", "XX"}  # how some of them say that they have no server, or too many clients, now


_RETURNS = " RETURNING "
_PARAMETER = re.compile(r"""("[^"]*"|'[^']*')|\$(\d+)""")
"""A parameter, or a name or a text in which there is none."""


def _renumbered(sql: str, by: int) -> str:
    """Return a statement whose parameters have higher numbers."""
    return _PARAMETER.sub(lambda found: found[1] or f"${int(found[2]) + by}", sql)


class PostgresDialect(Dialect):
    """PostgreSQL 14 and later through asyncpg."""

    name = "postgresql"
    has_schemas = True

    def __init__(self, schema: str | None = None) -> None:
        """Write every table name with ``schema`` in front of it (None: the connection's default)."""
        super().__init__(schema)
        self._together: dict[tuple[Query, ...], Compiled] = {}

    def sqlalchemy(self) -> SqlAlchemyDialect:
        """Return the dialect that writes ``$1::TYPE`` parameters."""
        return asyncpg_dialect()  # type: ignore[no-untyped-call]

    def bundle(self, bundle: Bundle) -> CompiledBundle:
        """Return the one statement of a bundle."""
        found = self._bundles.get(bundle)
        if found is None:
            whole = self.compile(bundle.name, self._whole(bundle, waits=True))
            together = self.compile(bundle.name, self._whole(bundle, waits=False))
            found = self._bundles[bundle] = CompiledBundle(bundle, whole, (), together)
        return found

    def in_one(self, queries: tuple[Query, ...]) -> Compiled:
        """Return statements that each write a row as the parts of one; the database runs the first one first."""
        found = self._together.get(queries)
        if found is None:
            found = self._together[queries] = self._joined(queries)
        return found

    def _joined(self, queries: tuple[Query, ...]) -> Compiled:
        parts: list[str] = []
        counts: list[str] = []
        order: list[str] = []
        constants: dict[str, Any] = {}
        for number, query in enumerate(queries):
            one = self.query(query)
            parts.append(f"s{number} AS ({_renumbered(one.sql, len(order))})")
            counts.append(f"(SELECT count(*)::int FROM s{number})" if _RETURNS in one.sql else "0")  # noqa: S608
            order += [f"{number}:{name}" for name in one.order]
            constants |= {f"{number}:{name}": value for name, value in one.constants.items()}
        # What it is made of, for who looks at the server; no row of the first one is an error, which undoes the others.
        names = ", ".join(query.name for query in queries)
        counts[0] = f"1 / {counts[0]}"
        sql = f"/* {names} */ WITH {', '.join(parts)} SELECT {', '.join(counts)}"
        return Compiled(names, sql, tuple(order), server_name(sql), constants)

    def _whole(self, bundle: Bundle, *, waits: bool) -> Executable:
        # Read first of all: what waits for a lock nevertheless (content that somebody else is storing) gives up soon.
        limit = "1" if waits else f"set_config('lock_timeout', '{_PATIENCE_MS}', true)"
        ctes: dict[str, CTE] = {}
        for fragment in bundle.fragments:
            ctes[fragment.name] = chain(fragment, ctes, waits=waits)
        return answer(select(literal_column(limit).label("one")).subquery("always"), bundle.fragments, ctes)

    def classify(self, error: BaseException) -> RuntimePersistError:
        """Map by SQLSTATE; connection errors of the driver and the socket are ``retry``."""
        state = getattr(error, "sqlstate", None) or ""
        text = f"{type(error).__name__}: {error}"
        if state in _BUSY:
            return StoreBusy(f"PostgreSQL asked to try again: {text}")
        if state in _MISSING:
            return SchemaMissing(
                f"the database has no runtime_persist tables ({text}); run `runtime-persist db upgrade`",
            )
        if state in _UNAVAILABLE:
            return DatabaseUnavailable(f"PostgreSQL refused the connection: {text}")
        lost = isinstance(error, OSError | EOFError | TimeoutError) or "connection" in type(error).__name__.lower()
        # asyncpg's words for a statement that was not sent, because the connection is just being ended.
        lost = lost or "cannot switch to state" in text
        if state in _LOST or state.startswith("08") or lost or "closed" in text or "connection was" in text:
            return ConnectionLost(f"the connection to PostgreSQL was lost: {text}")
        if state == _READ_ONLY or state[:2] in _OUT_OF_RESOURCES:
            return DatabaseUnavailable(f"PostgreSQL cannot write now: {text}")
        return StoreFailed(f"PostgreSQL refused the statement: {text}")

    def classify_refused(self, error: BaseException) -> RuntimePersistError:
        """Map what came of opening a connection: nothing was sent, so no statement of ours is at fault."""
        found = self.classify(error)
        if not isinstance(found, StoreFailed | DatabaseUnavailable):
            return found
        if (getattr(error, "sqlstate", None) or "")[:2] in _OF_POOLERS:
            return ConnectionLost(f"PostgreSQL, or a pooler before it, has no connection now: {error}")
        return DatabaseUnavailable(f"PostgreSQL refused the connection: {type(error).__name__}: {error}")

    def with_connection(self, location: str, work: Callable[[Connection], R], *, alone: bool = True) -> R:
        """Run ``work`` on its own event loop and thread: the caller may be inside a loop."""

        async def main() -> R:
            import asyncpg

            # SQLAlchemy would hand the URL's libpq parameters to asyncpg as keywords, which it refuses.
            dsn, seconds = asyncpg_address(location)
            engine = create_async_engine(
                "postgresql+asyncpg://",
                # Without a cache there are no statement names, which a pooler would mix up.
                async_creator=lambda: asyncpg.connect(dsn, timeout=seconds, statement_cache_size=0),
                poolclass=NullPool,
            )
            try:
                async with engine.begin() as connection:
                    if alone:
                        lock = text("SELECT pg_advisory_xact_lock(:key)")
                        await connection.execute(lock, {"key": _MIGRATION_LOCK})
                    return await connection.run_sync(work)
            finally:
                await engine.dispose()

        with ThreadPoolExecutor(1, "runtime-persist-migrate") as pool:
            return pool.submit(lambda: asyncio.run(main())).result()

    def offline_url(self) -> str:
        """Return a PostgreSQL URL without a host."""
        return "postgresql+asyncpg://"
