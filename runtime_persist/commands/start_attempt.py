"""start_attempt: a later try of an operation, under the same idempotency key. Hot: one bundle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Executable, null, or_, update

from runtime_persist.commands.parts import events, tries
from runtime_persist.commands.parts.guards import FENCE
from runtime_persist.commands.parts.spec import HotCommand, Receipt
from runtime_persist.commands.parts.tries import OfTry
from runtime_persist.dialects.sql import bind, constant, insert, now_us, number
from runtime_persist.errors import IllegalTransition
from runtime_persist.model.guards import LEASE_ACTIVE_OPEN
from runtime_persist.model.keys import fingerprint
from runtime_persist.model.states import ANSWERED, OperationPhase, OperationStatus, TryStatus
from runtime_persist.plan import Fragment, Inputs, Plan
from runtime_persist.queries import operations as operation_rows
from runtime_persist.schema import operation_tries, operations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class StartAttempt(OfTry):
    """Start try ``try_no`` of an operation; the try before it, if nobody finished it, is stated ``unknown``.

    Refused: no live lease, run stopping; the operation succeeded, is at another try, has a raw result already, or its
    next try is not due yet (IllegalTransition).
    """

    node_attempt: int


def _advance(inputs: Inputs) -> Executable:
    return (
        update(operations)
        .values(
            try_no=number("try_no"),
            status=constant(OperationStatus.PENDING.value),
            run_id=bind(operations.c.run_id),
            epoch=bind(operations.c.epoch),
            node_attempt=bind(operations.c.node_attempt),
            phase=constant(OperationPhase.EXECUTING.value),
            raw=null(),
            raw_fingerprint=null(),
            next_attempt_us=null(),
            error_type=null(),
            error_code=null(),
            error_text=null(),
            ended_us=null(),
        )
        .where(
            *tries.is_operation(),
            operations.c.try_no == number("try_no") - constant(1),
            operations.c.status != constant(OperationStatus.SUCCEEDED.value),
            or_(operations.c.next_attempt_us.is_(None), operations.c.next_attempt_us <= now_us()),
            or_(
                operations.c.status == constant(OperationStatus.FAILED.value),
                operations.c.phase.not_in([constant(phase.value) for phase in ANSWERED]),
            ),
            inputs.gate(),
        )
    )


def _previous_unknown(inputs: Inputs) -> Executable:
    return (
        update(operation_tries)
        .values(status=constant(TryStatus.UNKNOWN.value), ended_us=now_us())
        .where(
            operation_tries.c.space == bind(operation_tries.c.space),
            operation_tries.c.operation_id == bind(operation_tries.c.operation_id),
            operation_tries.c.try_no == number("try_no") - constant(1),
            operation_tries.c.status == constant(TryStatus.STARTED.value),
            inputs.gate(),
        )
    )


def _next_try(inputs: Inputs) -> Executable:
    values = inputs.select(
        bind(operation_tries.c.space),
        bind(operation_tries.c.operation_id),
        number("try_no"),
        constant(TryStatus.STARTED.value),
        bind(operation_tries.c.run_id),
        inputs.value("run", "attempt_id"),
        bind(operation_tries.c.epoch),
        now_us(),
    ).where(inputs.count("previous") >= constant(0))
    names = ["space", "operation_id", "try_no", "status", "run_id", "attempt_id", "epoch", "started_us"]
    return insert(operation_tries).from_select(names, values)


def _params(command: StartAttempt) -> tuple[Mapping[str, Any], Mapping[str, Sequence[Mapping[str, Any]]]]:
    return tries.params(command, "operation.started") | {
        "node_attempt": command.node_attempt,
    }, {}


def _fingerprint(command: StartAttempt) -> bytes:
    return fingerprint(
        command.operation_id.encode(),
        str(command.try_no).encode(),
        str(command.epoch).encode(),
    )


def _lookup(command: StartAttempt) -> Plan[Receipt | None]:
    row = yield from operation_rows.by_id(command.space, command.operation_id)
    if row is None or row["try_no"] != command.try_no or row["try_epoch"] != command.epoch:
        return None
    return Receipt(_fingerprint(command))


SPEC = HotCommand(
    name="start_attempt",
    dto=StartAttempt,
    guard=LEASE_ACTIVE_OPEN,
    receipt=Fragment("operation", _advance, source=FENCE),
    effects=(
        Fragment("previous", _previous_unknown, source="operation"),
        Fragment("try", _next_try, source="operation"),
        *events.hot("operation", "operation.started"),
    ),
    params=_params,
    lookup=_lookup,
    fingerprint=_fingerprint,
    refuse=lambda command, _: IllegalTransition(
        f"operation {command.operation_id} cannot start try {command.try_no}: it succeeded, has an answer, is at "
        "another try, or the try is not due yet",
        operation_id=command.operation_id,
    ),
)
