"""control_finalize_operation: a person says what became of an operation that a run left open when it ended.

Nobody guesses: until then it stays unknown. The run stays as it ended; who calls the operation again, in a later run of
the thread, finds what was said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select

from runtime_persist.commands.parts import content, run_rows, settling, taking
from runtime_persist.commands.parts.spec import ColdCommand, Command, Decision, Locked, RunChange
from runtime_persist.dialects.sql import bind
from runtime_persist.errors import IllegalTransition, InvariantBroken, OperationNotFound
from runtime_persist.model.guards import CONTROL
from runtime_persist.model.states import FINAL_RUN, OperationStatus, RunStatus, TryStatus
from runtime_persist.plan import Plan, Query, one_or_none
from runtime_persist.queries import operations as operation_rows
from runtime_persist.schema import operations

if TYPE_CHECKING:
    from runtime_persist.model.payload import Blob


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlFinalizeOperation(Command):
    """Settle an open operation whose last try a run made that has ended.

    Refused: the run has not ended, another run has tried the operation since, or its last try is not unknown
    (IllegalTransition); no such operation in the run's thread (OperationNotFound).

    Attributes:
        run_id: the run that made the last try.
        operation_id: the operation.
        happened: True: it counts as succeeded with ``result``, once its response hooks (if any) were asked about that;
            False: it did not happen, and is called again by who comes to it.
        result: encoded payload reference (with ``happened``).
        outcome: fingerprint of the result.

    """

    run_id: str
    operation_id: str
    happened: bool
    result: bytes | None = None
    outcome: bytes = b""
    owner: str = ""
    blobs: tuple[Blob, ...] = ()


# Its own run ended, so no lock of a run keeps another one of the thread from trying it meanwhile.
LOCK_OPERATION = Query(
    "lock_operation",
    select(operations.c.operation_id)
    .where(
        operations.c.space == bind(operations.c.space),
        operations.c.operation_id == bind(operations.c.operation_id),
    )
    .with_for_update(),
)
_UNPROVED = {TryStatus.STARTED, TryStatus.UNKNOWN}


def decide(command: ControlFinalizeOperation, locked: Locked) -> Plan[Decision]:
    """Return the operation settled; its run says so in one more event."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    if RunStatus(before["status"]) not in FINAL_RUN:
        msg = f"run {command.run_id} is {before['status']}: what it asks is answered, not what it left"
        raise IllegalTransition(msg, run_id=command.run_id, status=before["status"])
    key = {"space": command.space, "operation_id": command.operation_id}
    yield from one_or_none(LOCK_OPERATION, **key)
    row = yield from operation_rows.by_id(command.space, command.operation_id)
    if row is None or row["thread_id"] != before["thread_id"]:
        msg = f"there is no operation {command.operation_id!r} in the thread of run {command.run_id}"
        raise OperationNotFound(msg, operation_id=command.operation_id)
    pending = row["status"] == OperationStatus.PENDING and row["try_status"] in _UNPROVED
    if not pending or row["try_run_id"] != command.run_id:
        msg = (
            f"operation {command.operation_id} is {row['status']}, its last try {row['try_status']} (of run "
            f"{row['try_run_id']}): nothing to settle"
        )
        raise IllegalTransition(msg, operation_id=command.operation_id)
    run = taking.taken(before, None, locked.now_us)
    run.tell("operation.resolved", operation_id=command.operation_id, happened=command.happened)
    return Decision(
        {"status": settling.status_of(row, happened=command.happened).value, "run_status": before["status"]},
        runs=[RunChange(before, run.run, run.events)],
        effects=[
            *settling.settled(row, happened=command.happened, result=command.result, outcome=command.outcome),
            *content.store(command.space, command.owner, command.blobs),
        ],
    )


SPEC = ColdCommand(
    name="control_finalize_operation",
    dto=ControlFinalizeOperation,
    guard=CONTROL,
    decide=decide,
    statements=(
        LOCK_OPERATION,
        operation_rows.READ_BY_ID,
        run_rows.SAVE_RUN,
        settling.SETTLE,
        settling.SETTLE_TRY,
        content.STORE_BLOB,
    ),
)
