"""What a person's request about a run needs to know: its last checkpoint, who answered, and what it resumed with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import exists, func, literal_column, select

from runtime_persist.dialects.sql import among, bind, constant, words
from runtime_persist.model.states import AttemptStatus
from runtime_persist.plan import Plan, Query, Row, many, one_or_none
from runtime_persist.schema import attempts, checkpoints, events, receipts, runs, writes

if TYPE_CHECKING:
    from collections.abc import Sequence

_C, _E, _R = checkpoints.c, events.c, runs.c
_ANSWERS_SHOWN = 100

READ_LAST_CHECKPOINT = Query(
    "read_last_checkpoint",
    select(func.max(_C.checkpoint_id).label("checkpoint_id")).where(
        _C.space == bind(_C.space),
        _C.thread_id == bind(_C.thread_id),
        _C.checkpoint_ns == constant(""),
        _C.run_id == bind(_C.run_id),
        _C.hidden == constant(0),
    ),
)
READ_ANSWERS = Query(
    "read_answers",
    select(_E.type, _E.actor, _E.attempt_id, _E.payload, _E.created_us)
    .where(
        _E.space == bind(_E.space),
        _E.run_id == bind(_E.run_id),
        _E.type.in_([constant("run.answered"), constant("operation.resolved")]),
    )
    .order_by(_E.seq.desc())
    .limit(literal_column(str(_ANSWERS_SHOWN))),
)


READ_IS_KNOWN = Query(
    "read_is_known",
    select(receipts.c.command_id).where(
        receipts.c.space == bind(receipts.c.space), receipts.c.command_id == bind(receipts.c.command_id)
    ),
)


READ_RETRIED = Query(
    "read_retried",
    select(_R.retry_of_run_id).where(
        _R.space == bind(_R.space),
        _R.run_id == bind(_R.run_id),
        _R.start_checkpoint_id.is_(None),
        ~exists().where(
            attempts.c.space == _R.space,
            attempts.c.run_id == _R.run_id,
            attempts.c.status == constant(AttemptStatus.YIELDED.value),
            attempts.c.termination_reason != constant("drain"),
        ),
    ),
)
READ_ASKED = Query(
    "read_asked",
    select(writes.c.task_id, writes.c.value).where(
        writes.c.space == bind(writes.c.space),
        writes.c.thread_id == bind(writes.c.thread_id),
        writes.c.channel == words("channel"),
        among(writes.c.task_id, "task_ids"),
    ),
    each="task_ids",
)


def is_known(space: str, command_id: str) -> Plan[bool]:
    """Read whether a command of that id is committed."""
    return (yield from one_or_none(READ_IS_KNOWN, space=space, command_id=command_id)) is not None


def last_checkpoint(space: str, thread_id: str, run_id: str) -> Plan[str | None]:
    """Read the id of the last checkpoint of the root graph that a run stored (None: it stored none)."""
    row = yield from one_or_none(READ_LAST_CHECKPOINT, space=space, thread_id=thread_id, run_id=run_id)
    found: str | None = None if row is None else row["checkpoint_id"]
    return found


def retried(space: str, run_id: str) -> Plan[list[str]]:
    """Read a run and those that it retries from where they stopped, back to the one that last waited for a person."""
    found: list[str] = []
    at: str | None = run_id
    while at is not None and at not in found:
        found.append(at)
        row = yield from one_or_none(READ_RETRIED, space=space, run_id=at)
        at = None if row is None else row["retry_of_run_id"]
    return found


def asked(space: str, thread_id: str, channel: str, task_ids: Sequence[str]) -> Plan[Sequence[Row]]:
    """Read what some tasks have asked, as it is stored."""
    return list(
        (yield from many(READ_ASKED, space=space, thread_id=thread_id, channel=channel, task_ids=list(task_ids)))
    )


def answers(space: str, run_id: str) -> Plan[Sequence[Row]]:
    """Read which questions of a run were answered, by whom and when, the last answer first."""
    return list((yield from many(READ_ANSWERS, space=space, run_id=run_id)))
