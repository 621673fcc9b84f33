"""What begins an operation: its row with its first try, and how it is found again. Three commands begin one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime_persist.commands.parts import events
from runtime_persist.commands.parts.spec import LeaseCommand, Receipt
from runtime_persist.dialects.sql import bind, constant, insert, now_us
from runtime_persist.errors import OperationMismatch, RuntimePersistError
from runtime_persist.model.states import OperationStatus, TryStatus
from runtime_persist.plan import Call, Query
from runtime_persist.queries import operations as operation_rows
from runtime_persist.schema import operation_tries, operations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Executable

    from runtime_persist.plan import Inputs, Outcome, Plan
    from runtime_persist.queries.operations import OperationKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Begins(LeaseCommand):
    """The fields of a command that begins an operation.

    Attributes:
        key: the operation's identity.
        operation_id: id for a new one.
        request_fingerprint: of the arguments; must match on every later call with the same identity.
        request: the arguments as short text, for people.
        idempotency_key: what is handed to the outside; stable over tries, runs and takeovers.
        on_unknown: ask, fail, retry or reconcile.
        node_attempt: LangGraph's number of the node's try inside one execution.
        hooked: response hooks are asked about its answer before that counts.

    """

    key: OperationKey
    operation_id: str
    request_fingerprint: bytes
    request: str
    idempotency_key: str
    on_unknown: str
    node_attempt: int
    hooked: bool = False

    @property
    def thread_id(self) -> str:
        """Return the thread the guard compares with the run's."""
        return self.key.thread_id


_NAMES = [
    "space", "thread_id", "checkpoint_ns", "name", "ordinal", "operation_id", "status", "on_unknown",
    "request_fingerprint", "request", "idempotency_key", "run_id", "epoch", "node_attempt", "try_no", "created_us",
    "hooked",
]  # fmt: skip
_BEGUN = {"status": constant(OperationStatus.PENDING.value), "try_no": constant(1), "created_us": now_us()}


def operation(inputs: Inputs) -> Executable:
    """Write the operation, unless there is one of its identity."""
    values = inputs.select(*(_BEGUN[n] if n in _BEGUN else bind(operations.c[n]) for n in _NAMES))
    return insert(operations).from_select(_NAMES, values).on_conflict_do_nothing()


def first_try(inputs: Inputs) -> Executable:
    """Write its first try, started."""
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


INSERT_OPERATION = Query(
    "insert_operation",
    insert(operations).values(**{n: _BEGUN[n] if n in _BEGUN else bind(operations.c[n]) for n in _NAMES}),
)
INSERT_TRY = Query(
    "insert_try",
    insert(operation_tries).values(
        space=bind(operation_tries.c.space),
        operation_id=bind(operation_tries.c.operation_id),
        try_no=constant(1),
        status=constant(TryStatus.STARTED.value),
        run_id=bind(operation_tries.c.run_id),
        attempt_id=bind(operation_tries.c.attempt_id),
        epoch=bind(operation_tries.c.epoch),
        started_us=now_us(),
    ),
)


def rows(command: Begins, attempt_id: str) -> list[Call]:
    """Return the statements that write the operation and its first try, of which there is none (a cold command)."""
    said, _ = params(command)
    mine = {"space": command.space, "operation_id": command.operation_id, "run_id": command.run_id}
    started = {**mine, "attempt_id": attempt_id, "epoch": command.epoch}
    written = {name: said[name] for name in _NAMES if name not in _BEGUN}
    return [Call(INSERT_OPERATION, written), Call(INSERT_TRY, started)]


def params(command: Begins) -> tuple[Mapping[str, Any], Mapping[str, Sequence[Mapping[str, Any]]]]:
    """Return the parameters of both fragments and of the event."""
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
        "hooked": int(command.hooked),
        "actor": command.actor,
        "event_payload": events.packed(
            "operation.started",
            {"operation_id": command.operation_id, "name": command.key.name, "try_no": 1},
        ),
    }, {}


def lookup(command: Begins) -> Plan[Receipt | None]:
    """Find the operation of its identity."""
    row = yield from operation_rows.by_key(command.space, command.key)
    return None if row is None else Receipt(row["request_fingerprint"], operation_rows.shown(row))


def refuse(command: Begins, _: Outcome) -> RuntimePersistError:
    """Return why nothing was begun, though nothing is known that is in the way."""
    return OperationMismatch(
        f"operation {command.key.name} ({command.key.ordinal}) could not be begun",
        name=command.key.name,
    )
