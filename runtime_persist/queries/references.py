"""All rows of a space that refer to content, in pages, and all content there is: what a collection looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, tuple_

from runtime_persist.dialects.sql import bind, now_us, number
from runtime_persist.plan import Plan, Query, Row, many, one_or_none
from runtime_persist.schema import blobs, checkpoints, operations, runs, writes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Table

_START: dict[type, Any] = {str: "", bytes: b"", int: -(2**62)}
"""Below every value of a column that is part of a key."""


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """How a table is read from its first row to its last, a page at a time, in the order of its key."""

    key: tuple[str, ...]
    start: tuple[Any, ...]
    query: Query

    def page(self, space: str, after: tuple[Any, ...], rows: int) -> Plan[Sequence[Row]]:
        """Read the rows behind a place."""
        place = {f"after_{name}": value for name, value in zip(self.key, after, strict=True)}
        return (yield from many(self.query, space=space, page_rows=rows, **place))

    def place(self, row: Row) -> tuple[Any, ...]:
        """Return the place of a row."""
        return tuple(row[name] for name in self.key)


def _walk(table: Table, *columns: str) -> Walk:
    key = [column for column in table.primary_key if column.name != "space"]
    shown = [table.c[name] for name in columns]
    query = Query(
        f"page_of_{table.name.removeprefix('rp_')}",
        select(*key, *shown)
        .where(
            table.c.space == bind(table.c.space),
            tuple_(*key) > tuple_(*(bind(column, f"after_{column.name}") for column in key)),
        )
        .order_by(*key)
        .limit(number("page_rows")),
    )
    return Walk(tuple(c.name for c in key), tuple(_START[c.type.python_type] for c in key), query)


CHECKPOINTS = _walk(checkpoints, "parent_id", "body", "metadata", "fingerprint")
WRITES = _walk(writes, "channel", "value", "fingerprint")
RUN_VALUES = ("input", "question", "answer", "result")
RUNS = _walk(runs, *RUN_VALUES)
OPERATION_VALUES = ("result", "raw")
OPERATIONS = _walk(operations, *OPERATION_VALUES)
BLOBS = _walk(blobs, "size", "unused_us", "created_us")

COUNT_ROWS = Query(
    "count_referring_rows",
    select(
        now_us().label("now_us"),
        *(
            select(func.count()).select_from(table).where(table.c.space == bind(table.c.space)).scalar_subquery()
            .label(table.name.removeprefix("rp_"))
            for table in (checkpoints, writes, runs, operations, blobs)
        ),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Size:
    """The moment of a look at a space (microseconds, by the database's clock), and how many rows it had then."""

    now_us: int
    referring: int
    blobs: int


def size(space: str) -> Plan[Size]:
    """Return how many rows of a space there are to look at."""
    row = yield from one_or_none(COUNT_ROWS, space=space)
    counts = dict(row or {})
    now, there = int(counts.pop("now_us")), int(counts.pop("blobs"))
    return Size(now, sum(map(int, counts.values())), there)
