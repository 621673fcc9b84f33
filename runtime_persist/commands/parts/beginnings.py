"""Where a run begins: at a checkpoint of its thread that somebody named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from runtime_persist.dialects.sql import bind, constant
from runtime_persist.errors import CheckpointNotFound
from runtime_persist.plan import Plan, Query, Row, one_or_none
from runtime_persist.schema import checkpoints

if TYPE_CHECKING:
    from runtime_persist.errors import RuntimePersistError

_C = checkpoints.c
FIND_CHECKPOINT = Query(
    "find_checkpoint",
    select(_C.checkpoint_id, _C.run_id, _C.parent_id).where(
        _C.space == bind(_C.space),
        _C.thread_id == bind(_C.thread_id),
        _C.checkpoint_ns == constant(""),
        _C.checkpoint_id == bind(_C.checkpoint_id),
        _C.hidden == constant(0),
    ),
)


def find_checkpoint(space: str, thread_id: str, checkpoint_id: str) -> Plan[Row]:
    """Read which run stored a checkpoint of the root graph.

    The thread is locked by the caller, so it is neither pruned nor deleted before the transaction ends.

    Raises:
        CheckpointNotFound: the thread has none of that id.

    """
    found = yield from one_or_none(FIND_CHECKPOINT, space=space, thread_id=thread_id, checkpoint_id=checkpoint_id)
    if found is None:
        raise no_checkpoint(thread_id, checkpoint_id)
    return found


def no_checkpoint(thread_id: str, checkpoint_id: str, why: str = "") -> RuntimePersistError:
    """Return the refusal for a checkpoint that a run cannot begin at."""
    msg = f"thread {thread_id!r} has no checkpoint {checkpoint_id!r} of its root graph{why}; see get_state_history"
    return CheckpointNotFound(msg, thread_id=thread_id, checkpoint_id=checkpoint_id)
