"""SQLite: fragments run in order inside BEGIN IMMEDIATE; those that only read, one behind the other, are one select."""

from __future__ import annotations

import sqlite3
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Select,
    bindparam,
    create_engine,
    event,
    literal_column,
    select,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql.dml import UpdateBase

from runtime_persist.dialects.base import Compiled, CompiledBundle, CompiledPart, Dialect
from runtime_persist.dialects.joined import joined
from runtime_persist.errors import DatabaseUnavailable, RuntimePersistError, StoreBusy, StoreFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sqlalchemy.engine.interfaces import Dialect as SqlAlchemyDialect

    from runtime_persist.plan import Bundle, Fragment, Query

R = TypeVar("R")

_MIGRATION_WAIT_SECONDS = 60.0
_WAL_FAULT_FIRST, _WAL_FAULT_FIXED = (3, 7, 0), (3, 51, 3)
_WAL_FAULT_BACKPORTS: dict[tuple[int, ...], int] = {(3, 50): 7, (3, 44): 6}
_WAL_FAULT = "has SQLite's WAL-reset fault: use 3.51.3 or later (3.50.7, 3.44.6) where processes share a file"
_LIST_VALUES_MAX = 8_192  # of one statement; SQLite takes 32,766 parameters
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED} if hasattr(sqlite3, "SQLITE_BUSY") else {5, 6}
_UNAVAILABLE = (
    "unable to open database",
    "disk is full",
    "disk I/O error",
    "readonly database",
    "not a database",
)


class _Bound:
    """Earlier fragments' results reach a fragment as parameters: the driver ran them just before."""

    def value(self, fragment: str, column: str) -> ColumnElement[Any]:
        return bindparam(f"{fragment}__{column}")

    def count(self, fragment: str) -> ColumnElement[int]:
        return bindparam(f"{fragment}__count")

    def row(self, column: str) -> ColumnElement[Any]:
        return bindparam(column)

    def select(self, *columns: ColumnElement[Any]) -> Select[Any]:
        return select(*columns)

    def gate(self) -> ColumnElement[bool]:
        return literal_column("1") == literal_column("1")


def write(fragment: Fragment) -> Executable:
    """Return a fragment's own statement; it asks for rows back only when somebody reads them."""
    statement = fragment.build(_Bound())
    if isinstance(statement, UpdateBase) and fragment.returns:
        table: Any = statement.table
        return statement.returning(*(table.c[name] for name in fragment.returns))
    return statement


def with_list(compiled: Compiled, name: str, params: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a statement with a list parameter (see ``among``) as SQLite takes it: one parameter a value.

    The number of parameters is a power of two (the last value repeats), so that few texts are ever prepared.
    """
    values = list(params[name])
    for start in range(0, len(values), _LIST_VALUES_MAX):
        part = values[start : start + _LIST_VALUES_MAX]
        part += part[-1:] * ((1 << (len(part) - 1).bit_length()) - len(part))
        given = {f"{name}_{number}": value for number, value in enumerate(part)}
        listed = ", ".join(f":{key}" for key in given)
        yield compiled.sql.replace(f"(:{name})", f"({listed})"), {**compiled.filled(params), **given}


def _groups(fragments: Sequence[Fragment]) -> Iterator[list[Fragment]]:
    """Yield fragments as they are run: one that writes by itself, some that read and have one source outside."""
    group: list[Fragment] = []
    for fragment in fragments:
        inside = {other.name for other in group}
        joins = _reads(fragment) and (
            fragment.source in inside or fragment.source == group[0].source if group else True
        )
        if group and not joins:
            yield group
            group = []
        if _reads(fragment):
            group.append(fragment)
        else:
            yield [fragment]
    if group:
        yield group


def _before_writing(fragments: Sequence[Fragment]) -> list[Fragment]:
    """Return the first fragments, as long as they read, or make only what usually is there."""

    def only_reads(fragment: Fragment) -> bool:
        return _reads(fragment) or fragment.locks is not None or fragment.unless is not None

    return list(takewhile(only_reads, fragments))


def _reads(fragment: Fragment) -> bool:
    return not fragment.rows and not isinstance(fragment.build(_Bound()), UpdateBase)


def has_wal_reset_fault(version: tuple[int, ...]) -> bool:
    """Return whether a SQLite version has the WAL-reset fault (see :mod:`runtime_persist.drivers.sqlite_wal`)."""
    if not _WAL_FAULT_FIRST <= version < _WAL_FAULT_FIXED:
        return False
    fixed = _WAL_FAULT_BACKPORTS.get(version[:2])
    return fixed is None or version[2] < fixed


class SqliteDialect(Dialect):
    """SQLite 3.37 and later through the standard library's ``sqlite3``."""

    name = "sqlite"
    has_schemas = False

    def sqlalchemy(self) -> SqlAlchemyDialect:
        """Return the dialect that writes ``:name`` parameters."""
        return sqlite.dialect(paramstyle="named")

    def chosen(self, query: Query) -> Executable:
        """Return the statement for a writer that is alone, where there is one."""
        return query.statement if query.alone is None else query.alone

    def bundle(self, bundle: Bundle) -> CompiledBundle:
        """Return the statements of a bundle."""
        found = self._bundles.get(bundle)
        if found is None:
            parts = self._parts(bundle.name, bundle.fragments)
            first = _before_writing(bundle.fragments)
            steady, rest = None, parts
            if any(fragment.locks for fragment in first):
                shown = [fragment for fragment in first if fragment.unless is None]
                steady = self._together(bundle.name, shown, None)
                rest = self._parts(bundle.name, bundle.fragments[len(first) :])
            found = self._bundles[bundle] = CompiledBundle(bundle, None, parts, None, steady, rest)
        return found

    def _parts(self, name: str, fragments: Sequence[Fragment]) -> tuple[CompiledPart, ...]:
        return tuple(self._part(name, list(group)) for group in _groups(fragments))

    def _part(self, name: str, group: list[Fragment]) -> CompiledPart:
        source = group[0].source
        if len(group) > 1:
            return self._together(name, group, source)
        (fragment,) = group
        statement = self._placed(f"{name}.{fragment.name}", write(fragment))
        return CompiledPart((fragment,), source, statement, writes=not _reads(fragment))

    def _together(self, name: str, group: Sequence[Fragment], source: str | None) -> CompiledPart:
        """Return some fragments that read as one select; of one that may make a row, what finds it."""
        statement = self._placed(f"{name}.{group[0].name}", joined(group))
        return CompiledPart(tuple(group), source, statement, together=True)

    def _placed(self, name: str, statement: Executable) -> Compiled:
        """Write a statement with parameters by place: taking them by name costs as much as a small statement."""
        return self.compile(name, statement, sqlite.dialect(paramstyle="qmark"))

    def classify(self, error: BaseException) -> RuntimePersistError:
        """Map busy and locked to ``retry``; a file that cannot be used is named as such."""
        text = str(error)
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if isinstance(error, sqlite3.OperationalError) and (code in _BUSY or "locked" in text):
            return StoreBusy(f"SQLite is busy: {text}")
        if any(words in text for words in _UNAVAILABLE):
            return DatabaseUnavailable(f"the SQLite file cannot be used: {text}")
        return StoreFailed(f"SQLite refused the statement: {text}")

    def with_connection(self, location: str, work: Callable[[Connection], R], *, alone: bool = True) -> R:
        """Run ``work`` inside BEGIN IMMEDIATE (others wait for the file's lock) or BEGIN."""
        engine = create_engine(f"sqlite:///{location}", connect_args={"timeout": _MIGRATION_WAIT_SECONDS})

        @event.listens_for(engine, "connect")
        def _manual(raw: Any, _record: Any) -> None:
            raw.isolation_level = None  # the driver would begin and commit around DDL by itself

        @event.listens_for(engine, "begin")
        def _immediate(connection: Connection) -> None:
            connection.exec_driver_sql("BEGIN IMMEDIATE" if alone else "BEGIN")

        try:
            with engine.begin() as connection:
                return work(connection)
        finally:
            engine.dispose()

    def known_fault(self, version: str) -> str | None:
        """Name the WAL-reset fault of a version that has it."""
        numbers = (*map(int, version.split(".")), 0, 0)[:3]
        return _WAL_FAULT if has_wal_reset_fault(numbers) else None

    def offline_url(self) -> str:
        """Return a SQLite URL."""
        return "sqlite://"
