"""Operations of the journal: how one is named, and how it is read with its last try."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from runtime_persist.dialects.sql import bind, now_us
from runtime_persist.plan import Plan, Query, Row, one_or_none
from runtime_persist.schema import attempts, operation_tries, operations

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationKey:
    """Identity of a workflow operation. Run, attempt and epoch are not part of it: a thread outlives runs.

    Attributes:
        thread_id: the thread.
        checkpoint_ns: namespace including the task id.
        name: the operation's explicit name.
        ordinal: ``#n``, the n-th call of that name in the task, or the caller's key.

    """

    thread_id: str
    checkpoint_ns: str
    name: str
    ordinal: str

    def params(self) -> dict[str, Any]:
        """Return the identity as statement parameters."""
        return {
            "thread_id": self.thread_id,
            "checkpoint_ns": self.checkpoint_ns,
            "name": self.name,
            "ordinal": self.ordinal,
        }


_LAST_TRY = operations.outerjoin(
    operation_tries,
    (operation_tries.c.space == operations.c.space)
    & (operation_tries.c.operation_id == operations.c.operation_id)
    & (operation_tries.c.try_no == operations.c.try_no),
).outerjoin(
    attempts,
    (attempts.c.space == operation_tries.c.space) & (attempts.c.attempt_id == operation_tries.c.attempt_id),
)
_COLUMNS = (
    *operations.c,
    operation_tries.c.status.label("try_status"),
    operation_tries.c.epoch.label("try_epoch"),
    operation_tries.c.run_id.label("try_run_id"),
    operation_tries.c.attempt_id.label("try_attempt_id"),
    operation_tries.c.started_us.label("try_started_us"),
    attempts.c.status.label("try_attempt_status"),
    now_us().label("now_us"),
)

READ_BY_KEY = Query(
    "read_operation_by_key",
    select(*_COLUMNS)
    .select_from(_LAST_TRY)
    .where(
        operations.c.space == bind(operations.c.space),
        operations.c.thread_id == bind(operations.c.thread_id),
        operations.c.checkpoint_ns == bind(operations.c.checkpoint_ns),
        operations.c.name == bind(operations.c.name),
        operations.c.ordinal == bind(operations.c.ordinal),
    ),
)
READ_BY_ID = Query(
    "read_operation",
    select(*_COLUMNS)
    .select_from(_LAST_TRY)
    .where(
        operations.c.space == bind(operations.c.space),
        operations.c.operation_id == bind(operations.c.operation_id),
    ),
)


def by_key(space: str, key: OperationKey) -> Plan[Row | None]:
    """Read an operation with its last try."""
    return (yield from one_or_none(READ_BY_KEY, space=space, **key.params()))


def by_id(space: str, operation_id: str) -> Plan[Row | None]:
    """Read an operation with its last try."""
    return (yield from one_or_none(READ_BY_ID, space=space, operation_id=operation_id))


def shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return an operation's row as the answer of a command: plain values only."""
    return dict(row)
