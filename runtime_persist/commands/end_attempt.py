"""end_attempt: a try ended, and with it nothing but the try. Hot: one bundle. Accepted while the run is stopping.

It failed and another one is due later, or the caller stopped waiting and nothing proves what became of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Executable, update

from runtime_persist.commands.parts import events, tries
from runtime_persist.commands.parts.guards import FENCE
from runtime_persist.commands.parts.spec import HotCommand, Receipt
from runtime_persist.commands.parts.tries import OfTry
from runtime_persist.dialects.sql import bind, constant, now_us, number
from runtime_persist.errors import IllegalTransition
from runtime_persist.model.guards import LEASE_ACTIVE
from runtime_persist.model.keys import fingerprint
from runtime_persist.model.states import OperationStatus, TryStatus
from runtime_persist.plan import Fragment, Inputs, Plan
from runtime_persist.queries import operations as operation_rows
from runtime_persist.schema import operation_tries, operations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAttempt(OfTry):
    """State how the last try, which is started, ended while its operation stays pending.

    Attributes:
        status: ``failed`` or ``unknown``.
        error_type: type of what was raised.
        error_code: its code, if it has one.
        error_text: what it said.
        retry_in_us: the next try may start so many microseconds from now, by the database's clock (None: at once,
            when somebody decides so).

    Refused: the lease is lost, released or expired; the try is not the last one, or has ended (IllegalTransition).

    """

    status: TryStatus
    error_type: str | None = None
    error_code: str | None = None
    error_text: str | None = None
    retry_in_us: int | None = None


def _try(inputs: Inputs) -> Executable:
    return (
        update(operation_tries)
        .values(
            status=bind(operation_tries.c.status),
            error_type=bind(operation_tries.c.error_type),
            error_code=bind(operation_tries.c.error_code),
            error_text=bind(operation_tries.c.error_text),
            ended_us=now_us(),
        )
        .where(
            *tries.is_try(),
            operation_tries.c.status == constant(TryStatus.STARTED.value),
            inputs.gate(),
        )
    )


def _operation(inputs: Inputs) -> Executable:
    return (
        update(operations)
        .values(next_attempt_us=now_us() + number("retry_in_us"))  # NULL when it is
        .where(
            *tries.is_operation(),
            operations.c.status == constant(OperationStatus.PENDING.value),
            inputs.gate(),
        )
    )


def _params(command: EndAttempt) -> tuple[Mapping[str, Any], Mapping[str, Sequence[Mapping[str, Any]]]]:
    due = {} if command.retry_in_us is None else {"retry_in_us": command.retry_in_us}
    return tries.params(command, "operation.attempt_ended", status=command.status.value, **due) | {
        "status": command.status.value,
        "error_type": command.error_type,
        "error_code": command.error_code,
        "error_text": command.error_text,
        "retry_in_us": command.retry_in_us,
    }, {}


def _said(operation_id: str, try_no: int, status: str) -> bytes:
    return fingerprint(operation_id.encode(), str(try_no).encode(), status.encode())


def _lookup(command: EndAttempt) -> Plan[Receipt | None]:
    row = yield from operation_rows.by_id(command.space, command.operation_id)
    ended = row is not None and row["try_no"] == command.try_no and row["try_status"] != TryStatus.STARTED
    if row is None or not ended or row["status"] != OperationStatus.PENDING:
        return None
    return Receipt(_said(command.operation_id, row["try_no"], row["try_status"]))


SPEC = HotCommand(
    name="end_attempt",
    dto=EndAttempt,
    guard=LEASE_ACTIVE,
    receipt=Fragment("try", _try, source=FENCE),
    effects=(
        Fragment("operation", _operation, source="try"),
        *events.hot("try", "operation.attempt_ended"),
    ),
    params=_params,
    lookup=_lookup,
    fingerprint=lambda command: _said(command.operation_id, command.try_no, command.status.value),
    refuse=lambda command, _: IllegalTransition(
        f"try {command.try_no} of operation {command.operation_id} is not the last one, or has ended",
        operation_id=command.operation_id,
    ),
)
