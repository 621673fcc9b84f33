"""Column types and SQL constructs that differ between databases, under one name each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import ARRAY, BigInteger, ColumnElement, Index, Text, TextClause, bindparam, literal_column, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

if TYPE_CHECKING:
    from sqlalchemy import Dialect, TableClause
    from sqlalchemy.sql.schema import Column

# The ON CONFLICT clauses of PostgreSQL and SQLite have the same text and the same visitor in SQLAlchemy, so one
# construct compiles on both (dialects/sql tests compile every statement on both).
insert = postgresql.insert

KeyText = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
"""Text compared byte by byte on both databases, whatever the database's collation is: ids, namespaces, names."""


class now_us(FunctionElement[int]):  # noqa: N801 (a SQL function)
    """The database clock in microseconds since 1970.

    PostgreSQL: ``clock_timestamp()``, which moves on while a statement waits for a lock (``now()`` does not).
    SQLite has no server clock and ``unixepoch('subsec')`` is silently NULL below 3.42, so it is put together from
    ``%s`` and ``%f`` (milliseconds; design: domain §4.7).
    """

    type = BigInteger()
    name = "now_us"
    inherit_cache = True


@compiles(now_us, "postgresql")
def _now_postgresql(_element: now_us, _compiler: Any, **_: Any) -> str:
    return "(extract(epoch from clock_timestamp()) * 1000000)::bigint"


@compiles(now_us, "sqlite")
def _now_sqlite(_element: now_us, _compiler: Any, **_: Any) -> str:
    return "((strftime('%s','now') * 1000 + substr(strftime('%f','now'), 4)) * 1000)"


class database_version(FunctionElement[str]):  # noqa: N801 (a SQL function)
    """The version of the server, or of the SQLite that is linked into this process."""

    type = Text()
    name = "database_version"
    inherit_cache = True


@compiles(database_version, "postgresql")
def _version_postgresql(_element: database_version, _compiler: Any, **_: Any) -> str:
    return "current_setting('server_version')"


@compiles(database_version, "sqlite")
def _version_sqlite(_element: database_version, _compiler: Any, **_: Any) -> str:
    return "sqlite_version()"


class joined(FunctionElement[str]):  # noqa: N801 (a SQL function)
    """The texts of all rows, with commas between them (NULL: there is no row)."""

    type = Text()
    name = "joined"
    inherit_cache = True


@compiles(joined, "postgresql")
def _joined_postgresql(element: joined, compiler: Any, **options: Any) -> str:
    return f"string_agg({compiler.process(element.clauses, **options)}, ',')"


@compiles(joined, "sqlite")
def _joined_sqlite(element: joined, compiler: Any, **options: Any) -> str:
    return f"group_concat({compiler.process(element.clauses, **options)}, ',')"


class locked_word(FunctionElement[int]):  # noqa: N801 (a SQL function)
    """Hold a word until the transaction ends; whoever wants the same one waits. It is no row, and leaves nothing.

    SQLite: a transaction that writes is alone.
    """

    type = BigInteger()
    name = "locked_word"
    inherit_cache = True


@compiles(locked_word, "postgresql")
def _locked_word_postgresql(element: locked_word, compiler: Any, **options: Any) -> str:
    # hashtext is 32 bits wide; the first key tells our words from other people's locks.
    word = compiler.process(element.clauses, **options)
    return f"(SELECT 1 FROM pg_advisory_xact_lock({_WORDS}, hashtext({word})))"  # noqa: S608 (a parameter)


@compiles(locked_word, "sqlite")
def _locked_word_sqlite(element: locked_word, compiler: Any, **options: Any) -> str:
    return f"(SELECT 1 WHERE {compiler.process(element.clauses, **options)} IS NOT NULL)"


_WORDS = 0x7270  # "rp"


def partial_index(name: str, *columns: ColumnElement[Any], where: ColumnElement[bool], unique: bool = False) -> Index:
    """Return an index over the rows that meet a condition, on both databases."""
    return Index(name, *columns, postgresql_where=where, sqlite_where=where, unique=unique)


def stored_as_given(dialect: Dialect, table: TableClause, *columns: str) -> list[str]:
    """Return the statements after which a database does not try to compress columns whose bytes already are."""
    if dialect.name != "postgresql":
        return []
    quoted = dialect.identifier_preparer
    changes = ", ".join(f"ALTER COLUMN {quoted.quote(column)} SET STORAGE EXTERNAL" for column in columns)
    return [f"ALTER TABLE {quoted.format_table(table)} {changes}"]


def bind(column: Column[Any] | ColumnElement[str], name: str | None = None) -> ColumnElement[Any]:
    """Return a parameter with a column's type, under the column's name or another."""
    kind = Text() if isinstance(column.type, Text) else column.type
    return bindparam(name or column.name, type_=kind)


def number(name: str) -> ColumnElement[int]:
    """Return an integer parameter."""
    return bindparam(name, type_=BigInteger())


def words(name: str) -> ColumnElement[str]:
    """Return a text parameter."""
    return bindparam(name, type_=Text())


def constant(value: int | str) -> ColumnElement[Any]:
    """Return a literal that is part of the statement's text."""
    return literal_column(str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'")


def excluded(column: str) -> TextClause:
    """Return the new value of a column in an ON CONFLICT DO UPDATE."""
    return text(f"excluded.{column}")


class among(ColumnElement[bool]):  # noqa: N801 (reads as SQL)
    """``column`` is one of the values of the list parameter ``name`` (see :class:`runtime_persist.plan.Query.each`)."""

    inherit_cache = False

    def __init__(self, column: Column[Any] | ColumnElement[str], name: str) -> None:
        """Compare ``column`` (or a text made of columns) with the list parameter ``name``."""
        self.column = column
        self.one = bind(column, name)
        self.all: ColumnElement[Any] = bindparam(name, type_=ARRAY(self.one.type))


@compiles(among, "postgresql")
def _among_postgresql(element: among, compiler: Any, **options: Any) -> str:
    return f"{compiler.process(element.column, **options)} = ANY ({compiler.process(element.all, **options)})"


@compiles(among, "sqlite")
def _among_sqlite(element: among, compiler: Any, **options: Any) -> str:
    return f"{compiler.process(element.column, **options)} IN ({compiler.process(element.one, **options)})"
