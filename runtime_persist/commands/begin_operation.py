"""begin_operation: the start fence of a call of the outside world. Hot: one bundle.

It commits before anything is sent, with the operation's first try; found again, it answers what is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime_persist.commands.parts import events
from runtime_persist.commands.parts.guards import FENCE
from runtime_persist.commands.parts.spec import HotCommand, LeaseCommand, Receipt
from runtime_persist.dialects.sql import bind, constant, insert, now_us
from runtime_persist.errors import OperationMismatch, RuntimePersistError
from runtime_persist.model.guards import LEASE_ACTIVE_OPEN
from runtime_persist.model.states import OperationStatus, TryStatus
from runtime_persist.plan import Fragment, Inputs, Outcome, Plan
from runtime_persist.queries import operations as operation_rows
from runtime_persist.schema import operation_tries, operations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Executable

    from runtime_persist.queries.operations import OperationKey


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginOperation(LeaseCommand):
    """Write the operation and its first try, before the call.

    Attributes:
        key: the operation's identity.
        operation_id: id for a new one.
        request_fingerprint: of the arguments; must match on every later call with the same identity.
        request: the arguments as short text, for people.
        idempotency_key: what is handed to the outside; stable over tries, runs and takeovers.
        on_unknown: ask, fail or retry.
        node_attempt: LangGraph's number of the node's try inside one execution.

    Answer: ``{}`` when it was begun now; else the stored operation (receipt.replayed).
    Refused: no live lease, run stopping; other arguments under this identity (CommandMismatch).

    """

    key: OperationKey
    operation_id: str
    request_fingerprint: bytes
    request: str
    idempotency_key: str
    on_unknown: str
    node_attempt: int

    @property
    def thread_id(self) -> str:
        """Return the thread the guard compares with the run's."""
        return self.key.thread_id


_NAMES = [
    "space", "thread_id", "checkpoint_ns", "name", "ordinal", "operation_id", "status", "on_unknown",
    "request_fingerprint", "request", "idempotency_key", "run_id", "epoch", "node_attempt", "try_no", "created_us",
]  # fmt: skip


def _operation(inputs: Inputs) -> Executable:
    fixed = {
        "status": constant(OperationStatus.PENDING.value),
        "try_no": constant(1),
        "created_us": now_us(),
    }
    values = inputs.select(*(fixed[n] if n in fixed else bind(operations.c[n]) for n in _NAMES))
    return insert(operations).from_select(_NAMES, values).on_conflict_do_nothing()


def _first_try(inputs: Inputs) -> Executable:
    values = inputs.select(
        bind(operation_tries.c.space),
        bind(operation_tries.c.operation_id),
        constant(1),
        constant(TryStatus.STARTED.value),
        bind(operation_tries.c.run_id),
        inputs.value("run", "attempt_id"),
        bind(operation_tries.c.epoch),
        now_us(),
    )
    names = ["space", "operation_id", "try_no", "status", "run_id", "attempt_id", "epoch", "started_us"]
    return insert(operation_tries).from_select(names, values)


def _params(command: BeginOperation) -> tuple[Mapping[str, Any], Mapping[str, Sequence[Mapping[str, Any]]]]:
    return {
        "space": command.space,
        **command.key.params(),
        "operation_id": command.operation_id,
        "on_unknown": command.on_unknown,
        "request_fingerprint": command.request_fingerprint,
        "request": command.request,
        "idempotency_key": command.idempotency_key,
        "run_id": command.run_id,
        "epoch": command.epoch,
        "node_attempt": command.node_attempt,
        "actor": command.actor,
        "event_payload": events.packed(
            {"operation_id": command.operation_id, "name": command.key.name, "try_no": 1},
        ),
    }, {}


def _lookup(command: BeginOperation) -> Plan[Receipt | None]:
    row = yield from operation_rows.by_key(command.space, command.key)
    return None if row is None else Receipt(row["request_fingerprint"], operation_rows.shown(row))


def _refuse(command: BeginOperation, _: Outcome) -> RuntimePersistError:
    return OperationMismatch(
        f"operation {command.key.name} ({command.key.ordinal}) could not be begun",
        name=command.key.name,
    )


SPEC = HotCommand(
    name="begin_operation",
    dto=BeginOperation,
    guard=LEASE_ACTIVE_OPEN,
    receipt=Fragment("operation", _operation, source=FENCE),
    effects=(Fragment("try", _first_try, source="operation"), *events.hot("operation", "operation.started")),
    params=_params,
    lookup=_lookup,
    fingerprint=lambda command: command.request_fingerprint,
    refuse=_refuse,
)


def begun_by(command: BeginOperation, receipt: Any) -> bool:
    """Return whether a receipt says that this very command began the operation, so that its caller may call.

    A reply that was lost is looked up by the coordinator: the receipt is then a replayed one, of the command's own
    first try. Only the try's status tells it from one that a takeover has given up since.
    """
    row: Mapping[str, Any] = receipt.result
    return not receipt.replayed or (
        row["operation_id"] == command.operation_id
        and row["try_status"] == TryStatus.STARTED
        and row["try_epoch"] == command.epoch
        and row["status"] == OperationStatus.PENDING
    )
