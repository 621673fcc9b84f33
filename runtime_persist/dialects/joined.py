"""Fragments of a bundle that only read, as one select over joined rows: what a chain of CTEs says, at half the price.

Each of them looks one row up by its key, or is a test of what the others gave. SQLite makes a table of each CTE and
looks through it for each column; here a row's columns are read where they lie, and a test is an expression.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    Column,
    ColumnElement,
    FromClause,
    Select,
    and_,
    bindparam,
    case,
    literal_column,
    select,
    true,
)
from sqlalchemy.sql.visitors import replacement_traverse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime_persist.plan import Fragment

_ONE: ColumnElement[int] = literal_column("1")
_NONE: ColumnElement[int] = literal_column("0")


class Joined:
    """Earlier fragments' results reach a fragment as columns of the same row; others' as parameters (they ran before).

    Attributes:
        rows: by fragment, the row that it looks up.
        gave: by fragment, the condition that it gave a row.

    """

    def __init__(self) -> None:
        """Know no fragment yet."""
        self.rows: dict[str, FromClause] = {}
        self.gave: dict[str, ColumnElement[bool]] = {}
        self._source: str | None = None

    def add(self, fragment: Fragment, rows: Any) -> Any:
        """Join what a fragment looks up to ``rows``, or note what it tests; return what is joined then."""
        self._source = fragment.source
        build = fragment.locks or fragment.build
        statement: Any = build(self)
        condition = and_(true(), *statement._where_criteria)  # noqa: SLF001 (``whereclause`` is None for none)
        tables = {column.table for column in statement.selected_columns if isinstance(column, Column)}
        if not tables:
            self.gave[fragment.name] = condition
            return rows
        (table,) = tables
        found = table.alias(fragment.name)
        self.rows[fragment.name] = found
        self.gave[fragment.name] = found.c[next(iter(table.primary_key)).name].is_not(None)

        def of_this_row(element: Any, **_: Any) -> Any:
            return found.c[element.name] if isinstance(element, Column) and element.table is table else None

        return rows.outerjoin(found, replacement_traverse(condition, {}, of_this_row))

    def value(self, fragment: str, column: str) -> ColumnElement[Any]:
        """Return a column of the row that an earlier fragment looked up."""
        if fragment not in self.gave:
            return bindparam(f"{fragment}__{column}")
        found: ColumnElement[Any] = self.rows[fragment].c[column]
        return found

    def count(self, fragment: str) -> ColumnElement[int]:
        """Return how many rows an earlier fragment gave."""
        if fragment not in self.gave:
            return bindparam(f"{fragment}__count")
        return case((self.gave[fragment], _ONE), else_=_NONE)

    def row(self, column: str) -> ColumnElement[Any]:
        """Refuse: a fragment with a row parameter writes."""
        raise NotImplementedError(column)

    def select(self, *columns: ColumnElement[Any]) -> Select[Any]:
        """Return a select that gives rows only when the source did."""
        return select(*columns).where(self.gate())

    def gate(self) -> ColumnElement[bool]:
        """Return the condition that the source gave a row (one outside of this select did, or it would not be run)."""
        return self.gave.get(self._source or "", true())


def joined(fragments: Sequence[Fragment]) -> Select[Any]:
    """Return the select that always has one row: for each fragment its count, and the columns that it returns."""
    inputs = Joined()
    rows: Any = select(_ONE.label("one")).subquery("always")
    columns: list[ColumnElement[Any]] = []
    for fragment in fragments:
        rows = inputs.add(fragment, rows)
        columns.append(inputs.count(fragment.name).label(f"{fragment.name}__count"))
        columns += [inputs.value(fragment.name, name).label(f"{fragment.name}__{name}") for name in fragment.returns]
    return select(*columns).select_from(rows)
