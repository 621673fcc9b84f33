"""save_attempt_raw: what the outside said, before anybody has accepted it. Hot: one bundle.

From here the call is never made again: whoever takes over goes on from the stored raw result. Accepted while the run is
stopping.
"""

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
class SaveAttemptRaw(OfTry):
    """Store what the last try returned; the try succeeded, its operation stays pending.

    Attributes:
        raw: encoded payload reference.
        outcome: fingerprint of what was returned.
        owner: owner of the content.
        blobs: content that it refers to.

    Refused: the lease is lost, released or expired; the operation is at another try, or not executing any more
    (IllegalTransition), or has another raw result (CommandMismatch).

    """

    raw: bytes
    outcome: bytes
    owner: str
    blobs: tuple[Blob, ...]


def _operation(inputs: Inputs) -> Executable:
    return (
        update(operations)
        .values(
            raw=bind(operations.c.raw),
            raw_fingerprint=bind(operations.c.raw_fingerprint),
            phase=constant(OperationPhase.RAW_SAVED.value),
            next_attempt_us=null(),
        )
        .where(
            *tries.is_operation(),
            operations.c.try_no == bind(operations.c.try_no),
            operations.c.status == constant(OperationStatus.PENDING.value),
            operations.c.phase == constant(OperationPhase.EXECUTING.value),
            inputs.gate(),
        )
    )


def _try(inputs: Inputs) -> Executable:
    return (
        update(operation_tries)
        .values(status=constant(TryStatus.SUCCEEDED.value), ended_us=now_us())
        .where(
            *tries.is_try(),
            inputs.gate(),
        )
    )


def _params(command: SaveAttemptRaw) -> tuple[Mapping[str, Any], Mapping[str, Sequence[Mapping[str, Any]]]]:
    return tries.params(command, "operation.raw_saved") | {
        "raw": command.raw,
        "raw_fingerprint": command.outcome,
        "owner": command.owner,
    }, {"blobs": content.rows(command.blobs)}


def _lookup(command: SaveAttemptRaw) -> Plan[Receipt | None]:
    row = yield from operation_rows.by_id(command.space, command.operation_id)
    if row is None or row["raw_fingerprint"] is None or row["try_no"] != command.try_no:
        return None
    return Receipt(row["raw_fingerprint"])


SPEC = HotCommand(
    name="save_attempt_raw",
    dto=SaveAttemptRaw,
    guard=LEASE_ACTIVE,
    receipt=Fragment("operation", _operation, source=FENCE),
    effects=(
        Fragment("try", _try, source="operation"),
        content.fragment("operation"),
        *events.hot("operation", "operation.raw_saved"),
    ),
    params=_params,
    lookup=_lookup,
    fingerprint=lambda command: command.outcome,
    refuse=lambda command, _: IllegalTransition(
        f"operation {command.operation_id} is not executing try {command.try_no} any more",
        operation_id=command.operation_id,
    ),
)
