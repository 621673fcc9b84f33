"""PostgreSQL: a bundle is one statement of chained common table expressions.

The rules of the fence that live here (design: architecture §3): a fragment that takes locks becomes a MATERIALIZED
CTE with no other condition than its key; every later fragment selects from the one it names, so rows are locked in
that order; the final SELECT always has one row, also when the guard's row does not exist.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import (
    ARRAY,
    CTE,
    ColumnElement,
    Connection,
    Executable,
    Integer,
    Select,
    bindparam,
    cast,
    column,
    func,
    literal_column,
    select,
    text,
    true,
)
from sqlalchemy.dialects.postgresql.asyncpg import dialect as asyncpg_dialect
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool
from sqlalchemy.sql.dml import UpdateBase

from runtime_persist.dialects.base import CompiledBundle, Dialect
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

    from runtime_persist.plan import Bundle, Fragment

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
_UNWRITABLE = {"53100", "53200", "25006"}  # disk full, out of memory, read-only (a standby)


class _Chained:
    """Earlier fragments' results reach a fragment as the CTEs they became."""

    def __init__(self, fragment: Fragment, ctes: dict[str, CTE]) -> None:
        self._ctes = ctes
        self._source = ctes[fragment.source] if fragment.source else None
        self._rows: Any = None
        if fragment.rows:
            # A row parameter is one array a column: unnest gives the rows back inside the statement.
            arrays = [bindparam(f"{fragment.name}__{name}", type_=ARRAY(kind)) for name, kind in fragment.rows.items()]
            columns = [column(name, kind) for name, kind in fragment.rows.items()]
            self._rows = func.unnest(*arrays).table_valued(*columns).render_derived(name=f"{fragment.name}_rows")

    def value(self, fragment: str, column: str) -> ColumnElement[Any]:
        return select(self._ctes[fragment].c[column]).scalar_subquery()

    def count(self, fragment: str) -> ColumnElement[int]:
        return select(func.count()).select_from(self._ctes[fragment]).scalar_subquery()

    def row(self, column: str) -> ColumnElement[Any]:
        found: ColumnElement[Any] = self._rows.c[column]
        return found

    def select(self, *columns: ColumnElement[Any]) -> Select[Any]:
        statement = select(*columns)
        if self._source is not None and self._rows is not None:
            return statement.select_from(self._source.join(self._rows, true()))
        if self._source is not None:
            return statement.select_from(self._source)
        return statement if self._rows is None else statement.select_from(self._rows)

    def gate(self) -> ColumnElement[bool]:
        return true() if self._source is None else _gave_rows(self._source)


def chain(fragment: Fragment, ctes: dict[str, CTE], *, waits: bool = True) -> CTE:
    """Return a fragment as a CTE that reads from the earlier ones; without ``waits`` it skips rows that are locked."""
    build = fragment.build if waits or fragment.locks is None else fragment.locks
    statement: Any = build(_Chained(fragment, ctes))
    there: ColumnElement[int] = literal_column("1", Integer()).label("there")
    if isinstance(statement, UpdateBase):
        table: Any = statement.table
        return statement.returning(there, *(table.c[name] for name in fragment.returns)).cte(fragment.name)
    if fragment.returns:
        statement = statement.add_columns(there)
    if not waits and statement._for_update_arg is not None:  # noqa: SLF001 (SQLAlchemy has no public word for it)
        statement = statement.with_for_update(skip_locked=True)
    # MATERIALIZED: the lock is taken once, before anything that reads it is evaluated.
    cte: CTE = statement.cte(fragment.name)
    return cte.prefix_with("MATERIALIZED")


def _gave_rows(cte: CTE) -> ColumnElement[bool]:
    return select(literal_column("1")).select_from(cte).exists()


def _count(fragment: Fragment, cte: CTE) -> ColumnElement[int]:
    """Return how many rows a fragment gave, in the cheapest way: most of them give one or none."""
    if fragment.returns:
        return func.coalesce(cte.c.there, literal_column("0"))  # it is joined to the answer
    if fragment.rows:
        return select(func.count()).select_from(cte).scalar_subquery()
    return cast(_gave_rows(cte), Integer)


class PostgresDialect(Dialect):
    """PostgreSQL 14 and later through asyncpg."""

    name = "postgresql"
    has_schemas = True

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

    def _whole(self, bundle: Bundle, *, waits: bool) -> Executable:
        ctes: dict[str, CTE] = {}
        columns: list[ColumnElement[Any]] = []
        # Read first of all: what waits for a lock nevertheless (content that somebody else is storing) gives up soon.
        limit = "1" if waits else f"set_config('lock_timeout', '{_PATIENCE_MS}', true)"
        source: Any = select(literal_column(limit).label("one")).subquery("always")
        for fragment in bundle.fragments:
            cte = ctes[fragment.name] = chain(fragment, ctes, waits=waits)
            columns.append(_count(fragment, cte).label(f"{fragment.name}__count"))
            if fragment.returns:
                source = source.outerjoin(cte, true())
                columns += [cte.c[name].label(f"{fragment.name}__{name}") for name in fragment.returns]
        return select(*columns).select_from(source)

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
        if state in _UNWRITABLE:
            return DatabaseUnavailable(f"PostgreSQL cannot write now: {text}")
        lost = isinstance(error, OSError | EOFError | TimeoutError) or "connection" in type(error).__name__.lower()
        # asyncpg's words for a statement that was not sent, because the connection is just being ended.
        lost = lost or "cannot switch to state" in text
        if state in _LOST or state.startswith("08") or lost or "closed" in text or "connection was" in text:
            return ConnectionLost(f"the connection to PostgreSQL was lost: {text}")
        return StoreFailed(f"PostgreSQL refused the statement: {text}")

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
