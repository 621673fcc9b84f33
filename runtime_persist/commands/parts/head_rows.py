"""Heads of a thread whose checkpoints were deleted: they fall back to what is left."""

from __future__ import annotations

from sqlalchemy import delete, exists, func, select, update

from runtime_persist.dialects.sql import bind, constant
from runtime_persist.plan import Call, Query
from runtime_persist.schema import checkpoints, heads

_C, _H = checkpoints.c, heads.c
_LEFT = (
    _C.space == _H.space,
    _C.thread_id == _H.thread_id,
    _C.checkpoint_ns == _H.checkpoint_ns,
    _C.hidden == constant(0),
)
# Ids of one thread never go back, so the newest checkpoint that is left is the one that was the head before.
MOVE_HEADS = Query(
    "move_orphaned_heads",
    update(heads)
    .values(
        checkpoint_id=func.coalesce(
            select(func.max(_C.checkpoint_id)).where(*_LEFT).scalar_subquery(),
            constant(""),
        ),
    )
    .where(
        _H.space == bind(_H.space),
        _H.thread_id == bind(_H.thread_id),
        ~exists().where(*_LEFT, _C.checkpoint_id == _H.checkpoint_id),
    ),
)
DROP_HEADS = Query(
    "drop_empty_heads",
    delete(heads).where(
        _H.space == bind(_H.space), _H.thread_id == bind(_H.thread_id), _H.checkpoint_id == constant("")
    ),
)
STATEMENTS = (MOVE_HEADS, DROP_HEADS)


def fall_back(space: str, thread_id: str) -> list[Call]:
    """Return the statements that move a thread's heads to its newest checkpoints that are left."""
    return [Call(query, {"space": space, "thread_id": thread_id}) for query in STATEMENTS]
