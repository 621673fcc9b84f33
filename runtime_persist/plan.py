"""What a command yields: named statements and bundles of named fragments.

A *plan* is a generator that yields steps and receives rows. It never sees a connection, so it cannot do foreign
input or output inside the transaction, and the same plan runs on every driver (the idea is psycopg's
``generators.py``).

A *bundle* is a chain of fragments that commits as a whole: one statement of chained CTEs on PostgreSQL, one
fragment after the other inside ``BEGIN IMMEDIATE`` on SQLite. A fragment is written once. It takes its inputs from
parameters and from named earlier fragments, and each fragment that locks or writes reads from the one before it:
that data dependency is what fixes the lock order (PostgreSQL runs CTEs in the order the main query reads them).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Executable, Select

R = TypeVar("R")
Row = Mapping[str, Any]


class Inputs(Protocol):
    """How a fragment reaches what earlier fragments gave (each dialect has its own implementation)."""

    def value(self, fragment: str, column: str) -> ColumnElement[Any]:
        """Return a column of the single row an earlier fragment returned (NULL when it returned none)."""

    def count(self, fragment: str) -> ColumnElement[int]:
        """Return how many rows an earlier fragment returned or wrote."""

    def row(self, column: str) -> ColumnElement[Any]:
        """Return a column of the current row of this fragment's row parameter."""

    def select(self, *columns: ColumnElement[Any]) -> Select[Any]:
        """Return a select of ``columns`` that gives rows only when this fragment's source did."""

    def gate(self) -> ColumnElement[bool]:
        """Return the condition "this fragment's source gave a row", for an UPDATE or DELETE."""


class RowName(NamedTuple):
    """What one row is named by: its table, and the parameters that hold its key (beside the space)."""

    table: str
    params: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A named statement, built once at import and compiled once per dialect and schema.

    Attributes:
        name: for cuts, messages and statistics.
        statement: the SQLAlchemy Core statement.
        each: a list parameter used with :func:`runtime_persist.dialects.sql.among`; PostgreSQL takes it as one
            array, SQLite as one parameter a value.
        alone: the statement in its place where whoever writes is alone, so that no row is locked.
        row: the one row it writes, which its transaction has locked or makes. It reads nothing that another statement
            of its transaction writes: those of different rows may be sent together, and done in any order (None: that
            is not so).

    """

    name: str
    statement: Executable
    each: str | None = None
    alone: Executable | None = None
    row: RowName | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """One named part of a bundle.

    Attributes:
        name: unique inside the bundle; also the name of the fault cut before it.
        build: gives the statement; called once per dialect.
        source: the earlier fragment it selects from; when that gave no row, this one does nothing.
        returns: columns that later fragments or the answer may read (one row at most is then given).
        rows: row parameter: column name to column type; the fragment runs once for each row.
        locks: a statement in its place that only locks what is there already (where ``build`` would make a row, and
            so wait for whoever has locked it); for a bundle among others in one transaction.
        unless: an earlier fragment; when that gave a row, this one does nothing (its statement says so too).
        tells: type of the event that it appends (None: it appends none).

    """

    name: str
    build: Callable[[Inputs], Executable]
    source: str | None = None
    returns: tuple[str, ...] = ()
    rows: Mapping[str, Any] = field(default_factory=dict)
    locks: Callable[[Inputs], Executable] | None = None
    unless: str | None = None
    tells: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """A chain of fragments that commits as a whole."""

    name: str
    fragments: tuple[Fragment, ...]


class Outcome(NamedTuple):
    """What a bundle did: rows written or returned by each fragment, and the single rows that were asked for."""

    counts: Mapping[str, int]
    values: Mapping[str, Row]


class Call(NamedTuple):
    """A query with its parameters; the driver answers with its rows."""

    query: Query
    params: Mapping[str, Any]


class BundleCall(NamedTuple):
    """A bundle with its parameters; ``rows`` has the rows of each fragment that takes some."""

    bundle: Bundle
    params: Mapping[str, Any]
    rows: Mapping[str, Sequence[Mapping[str, Any]]]


class Together(NamedTuple):
    """Statements that each write a row of their own, the first a receipt: one exchange, where a database can do that.

    The driver answers with how many rows each of them returned. None: there was a receipt already. Then nothing is
    written, and what the transaction had locked may be free again.
    """

    calls: tuple[Call, ...]


Step = Call | BundleCall | Together
Plan = Generator[Step, Any, R]


TOGETHER_MAX = 16
"""So many statements are sent together: a statement has at most 32,767 parameters, and a run's row needs some fifty."""


def together(calls: Sequence[Call]) -> int:
    """Return how many of the first statements can be sent together: each writes one row, and no two the same one."""
    rows: set[object] = set()
    for number, (query, params) in enumerate(calls[:TOGETHER_MAX]):
        if query.row is None:
            return number
        row = (query.row.table, *(params[name] for name in query.row.params))
        if row in rows:
            return number
        rows.add(row)
    return min(len(calls), TOGETHER_MAX)


def done(value: R) -> Plan[R]:
    """Return a plan of no steps that gives ``value``."""
    return value
    yield  # type: ignore[unreachable]  # makes it a generator


def many(query: Query, **params: Any) -> Plan[Sequence[Row]]:
    """Run a query and return its rows."""
    rows: Sequence[Row] = yield Call(query, params)
    return rows


def one_or_none(query: Query, **params: Any) -> Plan[Row | None]:
    """Run a query and return its first row."""
    rows = yield from many(query, **params)
    return rows[0] if rows else None
