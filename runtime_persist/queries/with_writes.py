"""One checkpoint and its writes in one statement: both of one moment, and one round trip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import CTE, Select, Text, cast, literal_column, null, select
from sqlalchemy.types import BigInteger, LargeBinary

from runtime_persist.dialects.sql import bind
from runtime_persist.plan import Plan, Query, Row, many
from runtime_persist.schema import checkpoints, heads, writes

if TYPE_CHECKING:
    from sqlalchemy import CompoundSelect

_C, _W, _H = checkpoints.c, writes.c, heads.c
_ROW, _WRITE = 0, 1
_OF_ROW = ("parent_id", "run_id", "body", "metadata", "orphan")
_OF_WRITE = ("task_id", "idx", "task_path", "channel", "value")
_KIND: dict[str, Any] = {
    "body": LargeBinary(),
    "metadata": LargeBinary(),
    "value": LargeBinary(),
    "orphan": BigInteger(),
    "idx": BigInteger(),
}


def _both(target: CTE) -> CompoundSelect[Any]:
    """Return the checkpoint that ``target`` names and its writes, as rows of one shape."""
    # A value and not a table to join: SQLite would read all writes of the thread and then look which are the target's.
    named = select(target.c.checkpoint_id).scalar_subquery()
    row: Select[Any] = select(
        literal_column(str(_ROW)).label("kind"),
        *(_C[name] for name in ("thread_id", "checkpoint_ns", "checkpoint_id", "fingerprint", *_OF_ROW)),
        *(cast(null(), _KIND.get(name, Text())).label(name) for name in _OF_WRITE),
    ).where(
        _C.space == bind(_C.space),
        _C.thread_id == bind(_C.thread_id),
        _C.checkpoint_ns == bind(_C.checkpoint_ns),
        _C.checkpoint_id == named,
        _C.hidden == literal_column("0"),
    )
    its: Select[Any] = select(
        literal_column(str(_WRITE)).label("kind"),
        *(_W[name] for name in ("thread_id", "checkpoint_ns", "checkpoint_id", "fingerprint")),
        *(cast(null(), _KIND.get(name, Text())).label(name) for name in _OF_ROW),
        *(_W[name] for name in _OF_WRITE),
    ).where(
        _W.space == bind(_W.space),
        _W.thread_id == bind(_W.thread_id),
        _W.checkpoint_ns == bind(_W.checkpoint_ns),
        _W.checkpoint_id == named,
    )
    return row.union_all(its)


_HEAD = (
    select(_H.checkpoint_id)
    .where(
        _H.space == bind(_H.space),
        _H.thread_id == bind(_H.thread_id),
        _H.checkpoint_ns == bind(_H.checkpoint_ns),
    )
    .cte("target")
)
_NAMED = select(bind(_C.checkpoint_id).label("checkpoint_id")).cte("target")
READ_HEAD_WITH_WRITES = Query("read_head_with_writes", _both(_HEAD))
READ_CHECKPOINT_WITH_WRITES = Query("read_checkpoint_with_writes", _both(_NAMED))


def row_and_writes(
    space: str, thread_id: str, ns: str, checkpoint_id: str | None
) -> Plan[tuple[Row | None, list[Row]]]:
    """Read a checkpoint's row (None: the head of the namespace) and the rows of its writes."""
    key = {"space": space, "thread_id": thread_id, "checkpoint_ns": ns}
    if checkpoint_id is None:
        found = yield from many(READ_HEAD_WITH_WRITES, **key)
    else:
        found = yield from many(READ_CHECKPOINT_WITH_WRITES, **key, checkpoint_id=checkpoint_id)
    row = next((one for one in found if one["kind"] == _ROW), None)
    return row, [one for one in found if one["kind"] == _WRITE]
