"""complete_operation: what a try of an operation came to. Hot: one bundle. Accepted while the run is stopping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Executable, null, update

from runtime_persist.commands.parts import content, events, tries
from runtime_persist.commands.parts.guards import FENCE
from runtime_persist.commands.parts.spec import HotCommand, Receipt
from runtime_persist.commands.parts.tries import OfTry
from runtime_persist.dialects.sql import bind, constant, now_us
from runtime_persist.errors import IllegalTransition
from runtime_persist.model.guards import LEASE_ACTIVE
from runtime_persist.model.states import OperationPhase, OperationStatus, TryStatus
from runtime_persist.plan import Fragment, Inputs, Plan
from runtime_persist.queries import operations as operation_rows
from runtime_persist.schema import operation_tries, operations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime_persist.model.payload import Blob


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteOperation(OfTry):
    """Store the outcome of try ``try_no``; use :meth:`succeeded` or :meth:`failed`, never a free status.

    ``reconciled``: the outside was asked for it, after nothing else proved it.

    Refused: the lease is lost, released or expired; the operation is at another try or already has another
    outcome (IllegalTransition, CommandMismatch).
    """

    status: OperationStatus
    try_status: str
    outcome: bytes
    result: bytes | None = None
    error_type: str | None = None
    error_text: str | None = None
    error_code: str | None = None
    owner: str = ""
    blobs: tuple[Blob, ...] = ()
    reconciled: bool = False

    @classmethod
    def succeeded(
        cls,
        *,
        result: bytes,
        outcome: bytes,
        owner: str,
        blobs: tuple[Blob, ...],
        **base: Any,
    ) -> CompleteOperation:
        """Return the command for a call that returned; ``result`` is an encoded payload reference."""
        done = OperationStatus.SUCCEEDED
        return cls(
            status=done,
            try_status=done.value,
            result=result,
            outcome=outcome,
            owner=owner,
            blobs=blobs,
            **base,
        )

    @classmethod
    def failed(
        cls,
        *,
        error_type: str,
        error_text: str,
        outcome: bytes,
        error_code: str | None = None,
        try_status: str = "failed",
        **base: Any,
    ) -> CompleteOperation:
        """Return the command for a call that raised (or, with ``try_status="unknown"``, is given up as unknown)."""
        return cls(
            status=OperationStatus.FAILED,
            try_status=try_status,
            error_type=error_type,
            error_text=error_text,
            error_code=error_code,
            outcome=outcome,
            **base,
        )


def _operation(inputs: Inputs) -> Executable:
    return (
        update(operations)
        .values(
            status=bind(operations.c.status),
            result=bind(operations.c.result),
            result_fingerprint=bind(operations.c.result_fingerprint),
            error_type=bind(operations.c.error_type),
            error_text=bind(operations.c.error_text),
            error_code=bind(operations.c.error_code),
            phase=constant(OperationPhase.COMPLETED.value),
            next_attempt_us=null(),
            ended_us=now_us(),
        )
        .where(
            *tries.is_operation(),
            operations.c.try_no == bind(operations.c.try_no),
            operations.c.status == constant(OperationStatus.PENDING.value),
            inputs.gate(),
        )
    )


def _try(inputs: Inputs) -> Executable:
    return (
        update(operation_tries)
        .values(
            status=bind(operation_tries.c.status, "try_status"),
            error_type=bind(operation_tries.c.error_type),
            error_text=bind(operation_tries.c.error_text),
            error_code=bind(operation_tries.c.error_code),
            ended_us=now_us(),
        )
        .where(
            *tries.is_try(),
            # One that has ended by itself (its raw result is stored) keeps its end.
            operation_tries.c.status.in_([constant(TryStatus.STARTED.value), constant(TryStatus.UNKNOWN.value)]),
            inputs.gate(),
        )
    )


def _params(
    command: CompleteOperation,
) -> tuple[Mapping[str, Any], Mapping[str, Sequence[Mapping[str, Any]]]]:
    asked = {"reconciled": True} if command.reconciled else {}
    return tries.params(command, "operation.completed", status=command.status.value, **asked) | {
        "status": command.status.value,
        "try_status": command.try_status,
        "result": command.result,
        "result_fingerprint": command.outcome,
        "error_type": command.error_type,
        "error_text": command.error_text,
        "error_code": command.error_code,
        "owner": command.owner,
    }, {"blobs": content.rows(command.blobs)}


def _lookup(command: CompleteOperation) -> Plan[Receipt | None]:
    row = yield from operation_rows.by_id(command.space, command.operation_id)
    settled = row is not None and row["status"] != OperationStatus.PENDING and row["try_no"] == command.try_no
    if row is None or not settled:
        return None
    return Receipt(row["result_fingerprint"] or b"", operation_rows.shown(row))


SPEC = HotCommand(
    name="complete_operation",
    dto=CompleteOperation,
    guard=LEASE_ACTIVE,
    receipt=Fragment("operation", _operation, source=FENCE),
    effects=(
        Fragment("try", _try, source="operation"),
        content.fragment("operation"),
        *events.hot("operation", "operation.completed"),
    ),
    params=_params,
    lookup=_lookup,
    fingerprint=lambda command: command.outcome,
    refuse=lambda command, _: IllegalTransition(
        f"operation {command.operation_id} is not at try {command.try_no} any more",
        operation_id=command.operation_id,
    ),
)
