"""Everything that is stored about a run, table by table: the parts of its recovery bundle.

A table's part is one entry of :data:`PARTS`. A table without one is in :data:`LEFT_OUT`, with the reason; a test asks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, or_, select, tuple_

from runtime_persist.dialects.sql import bind, number
from runtime_persist.plan import Plan, Query, Row, many, one_or_none
from runtime_persist.queries.references import OPERATION_VALUES, RUN_VALUES
from runtime_persist.queries.runs import READ_RUN
from runtime_persist.schema import (
    attempts,
    checkpoints,
    domains,
    events,
    graphs,
    heads,
    operation_tries,
    operations,
    receipts,
    runs,
    threads,
    tickets,
    writes,
)

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Table
    from sqlalchemy.sql.schema import Column

_R, _C, _W, _O, _T = runs.c, checkpoints.c, writes.c, operations.c, operation_tries.c
_SPACE, _RUN, _THREAD = bind(_R.space), bind(_R.run_id), bind(_R.thread_id)

LEFT_OUT: Final = {
    "rp_blobs": "content: it travels by address, beside the rows",
    "rp_spaces": "the space's secret",
    "rp_cursors": "how far consumers of the whole space have come",
    "rp_instances": "workers as they are now; an attempt names its own",
}
"""Tables of which nothing is in a bundle, and why."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The rows of one table that belong to a run.

    Attributes:
        table: the table; without its prefix it is the part's name.
        where: which rows.
        by: what that asks for besides the space: ``run_id``, ``thread_id``, ``graph``.
        values: columns that hold payload references.
        without: columns that stay in the database.

    """

    table: Table
    where: ColumnElement[bool]
    by: tuple[str, ...] = ("run_id",)
    values: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    query: Query = field(init=False)

    def __post_init__(self) -> None:
        """Build the statement."""
        statement = (
            select(*self.columns)
            .where(self.table.c.space == _SPACE, self.where)
            .order_by(*self.key)
            .limit(number("page_rows"))
        )
        object.__setattr__(self, "query", Query(f"bundle_{self.name}", statement))

    @property
    def name(self) -> str:
        """The part's name."""
        return self.table.name.removeprefix("rp_")

    @property
    def columns(self) -> list[Column[Any]]:
        """The columns that are read, in the table's order."""
        return [column for column in self.table.c if column.name not in {"space", *self.without}]

    @property
    def key(self) -> list[Column[Any]]:
        """The columns that rows are told apart and ordered by."""
        return [column for column in self.columns if column.primary_key]


_STORED_BY_IT = and_(_C.thread_id == _THREAD, _C.run_id == _RUN)
_CHECKPOINT = tuple_(_C.checkpoint_ns, _C.checkpoint_id)
_HEADS = select(heads.c.checkpoint_ns, heads.c.checkpoint_id).where(
    heads.c.space == _SPACE, heads.c.thread_id == _THREAD
)
_BEFORE = select(_C.checkpoint_ns, _C.parent_id).where(_C.space == _SPACE, _STORED_BY_IT, _C.parent_id.is_not(None))
# What the run stored, what it began with, and where its thread stands.
_ITS_CHECKPOINTS = and_(
    _C.thread_id == _THREAD, or_(_C.run_id == _RUN, _CHECKPOINT.in_(_HEADS), _CHECKPOINT.in_(_BEFORE))
)
_THEIR_KEYS = select(_C.checkpoint_ns, _C.checkpoint_id).where(_C.space == _SPACE, _ITS_CHECKPOINTS)
_TRIED = select(_T.operation_id).where(_T.space == _SPACE, _T.run_id == _RUN)
_BEGUN = select(_O.operation_id).where(_O.space == _SPACE, or_(_O.run_id == _RUN, _O.operation_id.in_(_TRIED)))
_OF_THREAD = ("run_id", "thread_id")

PARTS: Final = (
    Part(runs, _R.run_id == _RUN, values=RUN_VALUES),
    Part(attempts, attempts.c.run_id == _RUN, without=("callback_hash",)),
    Part(domains, domains.c.run_id == _RUN),
    Part(operations, or_(_O.run_id == _RUN, _O.operation_id.in_(_TRIED)), values=OPERATION_VALUES),
    Part(operation_tries, or_(_T.run_id == _RUN, _T.operation_id.in_(_BEGUN))),
    Part(tickets, tickets.c.run_id == _RUN),
    Part(events, events.c.run_id == _RUN),
    Part(receipts, receipts.c.run_id == _RUN),
    Part(threads, threads.c.thread_id == _THREAD, by=("thread_id",), without=("thread_hash",)),
    Part(heads, heads.c.thread_id == _THREAD, by=("thread_id",)),
    Part(checkpoints, _ITS_CHECKPOINTS, by=_OF_THREAD),
    Part(
        writes,
        and_(
            _W.thread_id == _THREAD,
            or_(_W.run_id == _RUN, tuple_(_W.checkpoint_ns, _W.checkpoint_id).in_(_THEIR_KEYS)),
        ),
        by=_OF_THREAD,
        values=("value",),
    ),
    Part(graphs, graphs.c.graph == bind(graphs.c.graph), by=("graph",)),
)
PART_OF: Final = {part.name: part for part in PARTS}


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of a run, part by part, as they were together at one moment (``now_us``, by the database's clock)."""

    now_us: int
    rows: dict[str, list[Row]]


def of_run(space: str, run_id: str, rows_max: int) -> Plan[Found | None]:
    """Read all parts of a run; of each at most ``rows_max`` rows and one more, which says that there are more."""
    run = yield from one_or_none(READ_RUN, space=space, run_id=run_id)
    if run is None:
        return None
    said = {"run_id": run_id, "thread_id": run["thread_id"], "graph": run["graph"]}
    rows: dict[str, list[Row]] = {}
    for part in PARTS:
        asked = {name: said[name] for name in part.by}
        rows[part.name] = list((yield from many(part.query, space=space, page_rows=rows_max + 1, **asked)))
    return Found(int(run["now_us"]), rows)
