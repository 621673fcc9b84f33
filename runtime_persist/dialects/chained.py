"""Fragments of a bundle as common table expressions that read from one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    ARRAY,
    CTE,
    ColumnElement,
    Integer,
    Select,
    bindparam,
    cast,
    column,
    func,
    literal_column,
    select,
    true,
)
from sqlalchemy.sql.dml import UpdateBase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime_persist.plan import Fragment


class Chained:
    """Earlier fragments' results reach a fragment as the CTEs they became; others' as parameters (they ran before)."""

    def __init__(self, fragment: Fragment, ctes: dict[str, CTE]) -> None:
        """Reach ``ctes``."""
        self._ctes = ctes
        self._source = ctes.get(fragment.source) if fragment.source else None
        self._rows: Any = None
        if fragment.rows:
            # A row parameter is one array a column: unnest gives the rows back inside the statement.
            arrays = [bindparam(f"{fragment.name}__{name}", type_=ARRAY(kind)) for name, kind in fragment.rows.items()]
            columns = [column(name, kind) for name, kind in fragment.rows.items()]
            self._rows = func.unnest(*arrays).table_valued(*columns).render_derived(name=f"{fragment.name}_rows")

    def value(self, fragment: str, column: str) -> ColumnElement[Any]:
        """Return a column of the single row an earlier fragment returned."""
        if fragment not in self._ctes:
            return bindparam(f"{fragment}__{column}")
        return select(self._ctes[fragment].c[column]).scalar_subquery()

    def count(self, fragment: str) -> ColumnElement[int]:
        """Return how many rows an earlier fragment gave."""
        if fragment not in self._ctes:
            return bindparam(f"{fragment}__count")
        return select(func.count()).select_from(self._ctes[fragment]).scalar_subquery()

    def row(self, column: str) -> ColumnElement[Any]:
        """Return a column of the current row of the row parameter."""
        found: ColumnElement[Any] = self._rows.c[column]
        return found

    def select(self, *columns: ColumnElement[Any]) -> Select[Any]:
        """Return a select that gives rows only when the source did."""
        statement = select(*columns)
        if self._source is not None and self._rows is not None:
            return statement.select_from(self._source.join(self._rows, true()))
        if self._source is not None:
            return statement.select_from(self._source)
        return statement if self._rows is None else statement.select_from(self._rows)

    def gate(self) -> ColumnElement[bool]:
        """Return the condition that the source gave a row."""
        return true() if self._source is None else _gave_rows(self._source)


def chain(fragment: Fragment, ctes: dict[str, CTE], *, waits: bool = True) -> CTE:
    """Return a fragment as a CTE that reads from the earlier ones; without ``waits`` it skips rows that are locked."""
    build = fragment.build if waits or fragment.locks is None else fragment.locks
    statement: Any = build(Chained(fragment, ctes))
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


def answer(first: Any, fragments: Sequence[Fragment], ctes: dict[str, CTE]) -> Select[Any]:
    """Return the select that always has one row, and says what each fragment gave; ``first`` is read first of all."""
    columns: list[ColumnElement[Any]] = []
    source: Any = first
    for fragment in fragments:
        cte = ctes[fragment.name]
        columns.append(_count(fragment, cte).label(f"{fragment.name}__count"))
        if fragment.returns:
            source = source.outerjoin(cte, true())
            columns += [cte.c[name].label(f"{fragment.name}__{name}") for name in fragment.returns]
    return select(*columns).select_from(source)


def _gave_rows(cte: CTE) -> ColumnElement[bool]:
    return select(literal_column("1")).select_from(cte).exists()


def _count(fragment: Fragment, cte: CTE) -> ColumnElement[int]:
    """Return how many rows a fragment gave, in the cheapest way: most of them give one or none."""
    if fragment.returns:
        return func.coalesce(cte.c.there, literal_column("0"))  # it is joined to the answer
    if fragment.rows:
        return select(func.count()).select_from(cte).scalar_subquery()
    return cast(_gave_rows(cte), Integer)
