"""resolve_unknown: a person says what became of an operation that nothing else can prove; its run is queued."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import content, run_rows, settling, taking
from runtime_persist.commands.parts.spec import ColdCommand, Command, Decision, Locked, RunChange
from runtime_persist.errors import IllegalTransition, InvariantBroken, OperationNotFound
from runtime_persist.model.guards import CONTROL
from runtime_persist.model.states import OperationStatus, RunStatus, TryStatus
from runtime_persist.queries import operations as operation_rows

if TYPE_CHECKING:
    from runtime_persist.model.payload import Blob
    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveUnknown(Command):
    """Settle an unknown try and queue the waiting run.

    Refused: the run does not wait, or the try is not unknown (IllegalTransition); no such operation in the run's
    thread (OperationNotFound).

    Attributes:
        run_id: the run that waits with the question.
        operation_id: the operation.
        happened: True: it counts as succeeded with ``result``, once its response hooks (if any) were asked about that;
            False: it is proved not to have happened, and the resumed run tries again under the same idempotency key.
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


def decide(command: ResolveUnknown, locked: Locked) -> Plan[Decision]:
    """Return the operation settled and the run queued."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    if before["status"] != RunStatus.WAITING_APPROVAL:  # a running run could become queued too: by yielding
        msg = f"run {command.run_id} is {before['status']}; it waits for no answer"
        raise IllegalTransition(msg, run_id=command.run_id, status=before["status"])
    row = yield from operation_rows.by_id(command.space, command.operation_id)
    if row is None or row["thread_id"] != before["thread_id"]:
        msg = f"there is no operation {command.operation_id!r} in the thread of run {command.run_id}"
        raise OperationNotFound(msg, operation_id=command.operation_id)
    if row["status"] != OperationStatus.PENDING or row["try_status"] != TryStatus.UNKNOWN:
        msg = (
            f"operation {command.operation_id} is {row['status']}, its last try {row['try_status']}: nothing to settle"
        )
        raise IllegalTransition(msg, operation_id=command.operation_id)
    run = taking.taken(before, None, locked.now_us)
    run.tell("operation.resolved", operation_id=command.operation_id, happened=command.happened)
    run.move(RunStatus.QUEUED, question=None, queued_us=locked.now_us)
    return Decision(
        {"status": settling.status_of(row, happened=command.happened).value, "run_status": run.run["status"]},
        runs=[RunChange(before, run.run, run.events)],
        effects=[
            *settling.settled(row, happened=command.happened, result=command.result, outcome=command.outcome),
            *content.store(command.space, command.owner, command.blobs),
        ],
    )


SPEC = ColdCommand(
    name="resolve_unknown",
    dto=ResolveUnknown,
    guard=CONTROL,
    decide=decide,
    statements=(operation_rows.READ_BY_ID, run_rows.SAVE_RUN, settling.SETTLE, settling.SETTLE_TRY, content.STORE_BLOB),
)
