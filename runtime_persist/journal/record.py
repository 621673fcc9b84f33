"""How a call is journalled: flows over the commands begin_operation, start_attempt and complete_operation."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langgraph.errors import GraphBubbleUp

from runtime_persist.commands.begin_operation import BeginOperation, begun_by
from runtime_persist.commands.complete_operation import CompleteOperation
from runtime_persist.commands.start_attempt import StartAttempt
from runtime_persist.engine.payloads import dumped, loaded
from runtime_persist.errors import (
    CommandMismatch,
    InvalidInput,
    OperationFailed,
    OperationMismatch,
    OperationUnknown,
    OperationUnsupported,
    RuntimePersistError,
)
from runtime_persist.journal.barrier import check_loop, wait_durable
from runtime_persist.model import limits
from runtime_persist.model.ids import new_id
from runtime_persist.model.keys import fingerprint
from runtime_persist.model.payload import PayloadRef
from runtime_persist.model.states import OperationStatus
from runtime_persist.model.text import said_by, storable
from runtime_persist.queries import checkpoints as checkpoint_queries
from runtime_persist.queries.operations import OperationKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime_persist.coordinator import CommitReceipt
    from runtime_persist.engine import Flow, OwnedRun
    from runtime_persist.journal.place import Place

_REQUEST_CHARS_MAX = 400
_UNKNOWN = "OutcomeUnknown"
_TRY_AGAIN = frozenset({"DidNotHappen", "Interrupted"})
"""Stored failures that are no answer: a person stated that it did not happen, or LangGraph interrupted the call."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What the journal said: call the function (and how), or here is what it returned before."""

    owned: OwnedRun
    name: str
    operation_id: str
    try_no: int
    idempotency_key: str
    call: bool
    value: Any = None


def begin(
    place: Place,
    name: str,
    ordinal: str,
    arguments: Mapping[str, Any],
    on_unknown: str,
    *,
    blocks: bool,
) -> Flow[Begun]:
    """Commit that a call is about to be made, or find what is stored about it; ``blocks`` the caller's thread."""
    owned = place.owned
    owned.check()
    said = _serialized(owned, name, "arguments", dict(arguments))
    if blocks and _on_loop_of(owned):
        yield from check_loop(owned, place.checkpoint_id, name)
    yield from wait_durable(owned, place.checkpoint_id, name)
    key = OperationKey(
        thread_id=owned.lease.thread_id,
        checkpoint_ns=place.checkpoint_ns,
        name=name,
        ordinal=ordinal,
    )
    command = BeginOperation(
        command_id=new_id(),
        key=key,
        operation_id=new_id(),
        request_fingerprint=fingerprint(said[0].encode(), said[1]),
        request=_shown(arguments),
        idempotency_key=_idempotency_key(owned, key),
        on_unknown=on_unknown,
        node_attempt=place.node_attempt,
        **_leased(owned),
    )
    try:
        receipt: CommitReceipt = yield owned.coordinator.commit(command)
    except CommandMismatch as error:
        stored = error.details["stored"]
        msg = (
            f"operation {name!r} ({ordinal}) was journalled in this task with {stored['request']}, and is now called "
            f"with {command.request}; calls must come in the same order, or be given a key"
        )
        raise OperationMismatch(msg, name=name, operation_id=stored["operation_id"]) from error
    if begun_by(command, receipt):
        return Begun(owned, name, command.operation_id, 1, command.idempotency_key, call=True)
    return (yield from _again(place, receipt.result, on_unknown))


def _on_loop_of(owned: OwnedRun) -> bool:
    """Return whether this thread runs the event loop that stores a run's checkpoints."""
    try:
        return asyncio.get_running_loop() is owned.loop
    except RuntimeError:
        return False


def _again(place: Place, row: Mapping[str, Any], on_unknown: str) -> Flow[Begun]:
    """Decide about an operation that was begun before."""
    owned, name = place.owned, row["name"]
    begun = Begun(owned, name, row["operation_id"], row["try_no"], row["idempotency_key"], call=False)
    if row["status"] == OperationStatus.SUCCEEDED:
        value = yield from _result(owned, row)
        return Begun(
            owned,
            name,
            begun.operation_id,
            begun.try_no,
            begun.idempotency_key,
            call=False,
            value=value,
        )
    if row["status"] == OperationStatus.FAILED:
        if _replay_failure(place, row):
            msg = f"operation {name!r} failed: {row['error_type']}: {row['error_text']}"
            raise OperationFailed(msg, operation_id=begun.operation_id, error_type=row["error_type"])
        return (yield from _next_try(place, begun))
    if on_unknown == "retry":
        return (yield from _next_try(place, begun))
    if on_unknown == "fail":
        text = "a try started and nothing proves what became of it"
        yield owned.coordinator.commit(
            CompleteOperation.failed(
                error_type=_UNKNOWN,
                error_text=text,
                outcome=fingerprint(_UNKNOWN.encode()),
                try_status="unknown",
                **_completing(begun),
            ),
        )
        msg = f"operation {name!r} failed: {text}"
        raise OperationFailed(msg, operation_id=begun.operation_id, error_type=_UNKNOWN)
    msg = (
        f"operation {name!r} with {row['request']} was started (try {row['try_no']}) and nothing proves what became "
        f"of it; say what happened: runtime.runs.resolve({begun.operation_id!r}, happened=…)"
    )
    raise OperationUnknown(
        msg,
        operation_id=begun.operation_id,
        name=name,
        request=row["request"],
        idempotency_key=row["idempotency_key"],
        try_no=row["try_no"],
        started_us=row["try_started_us"],
    )


def _replay_failure(place: Place, row: Mapping[str, Any]) -> bool:
    """Return whether a stored failure is the answer to this call.

    It is in the run that saw it (the node may have gone on from it); a later run, or a later try of the node by
    LangGraph's RetryPolicy, is there to try again. An unknown outcome that was given up stays given up.
    """
    if row["error_type"] == _UNKNOWN:
        return True
    if row["error_type"] in _TRY_AGAIN:
        return False
    same_run = bool(row["run_id"] == place.owned.lease.run_id)
    return same_run and row["node_attempt"] >= place.node_attempt


def _next_try(place: Place, begun: Begun) -> Flow[Begun]:
    owned = begun.owned
    yield owned.coordinator.commit(
        StartAttempt(
            command_id=new_id(),
            operation_id=begun.operation_id,
            name=begun.name,
            try_no=begun.try_no + 1,
            node_attempt=place.node_attempt,
            **_leased(owned),
        ),
    )
    return Begun(owned, begun.name, begun.operation_id, begun.try_no + 1, begun.idempotency_key, call=True)


def returned(begun: Begun, value: Any) -> Flow[Any]:
    """Commit what a call returned, and return it as a later call would get it."""
    owned = begun.owned
    kind, data = _serialized(owned, begun.name, "result", value)
    writer = owned.content.writer(everything=True)
    ref = writer.put(kind, data, limits.INLINE_ROW_BYTES_MAX)
    yield from _commit(
        begun,
        CompleteOperation.succeeded(
            result=ref.encoded(),
            outcome=fingerprint(kind.encode(), data),
            owner=writer.owner,
            blobs=tuple(writer.blobs()),
            **_completing(begun),
        ),
    )
    # The serializer's own reading of it: the first call and every later one give the same value.
    return loaded(owned.serde, kind, data, f"the result of operation {begun.name!r}", operation_id=begun.operation_id)


def raised(begun: Begun, error: Exception) -> Flow[None]:
    """Commit that a call raised. The exception is stored as type and text, never pickled."""
    kind = "Interrupted" if isinstance(error, GraphBubbleUp) else type(error).__qualname__
    text = _said(error)
    yield from _commit(
        begun,
        CompleteOperation.failed(
            error_type=kind,
            error_text=text,
            outcome=fingerprint(kind.encode(), text.encode()),
            **_completing(begun),
        ),
    )


def _said(error: Exception) -> str:
    """Return what an exception says, and its ``code`` when it has one and does not say it."""
    text = said_by(error)
    code = getattr(error, "code", None)
    known = not isinstance(code, str | int) or str(code) in text
    return storable(text if known else f"{text} (code {code})", limits.ERROR_TEXT_CHARS_MAX)


def _commit(begun: Begun, command: CompleteOperation) -> Flow[None]:
    """Commit an outcome; when the lease is gone the run hears of it at once."""
    try:
        yield begun.owned.coordinator.commit(command)
    except RuntimePersistError as error:
        raise begun.owned.fail(error) from error


def _result(owned: OwnedRun, row: Mapping[str, Any]) -> Flow[Any]:
    ref = PayloadRef.decoded(row["result"])
    content = owned.content.reader()
    content.want([ref])
    if content.missing():
        space = owned.lease.space
        yield owned.coordinator.read("read_content", lambda: checkpoint_queries.fill(space, content))
    where = f"the result of operation {row['name']!r} ({row['operation_id']})"
    return loaded(owned.serde, ref.type, content.content(ref, where), where, operation_id=row["operation_id"])


def _serialized(owned: OwnedRun, name: str, what: str, value: Any) -> tuple[str, bytes]:
    try:
        return dumped(owned.serde, value, what, owned.max_value_bytes)
    except InvalidInput as error:
        msg = f"the {what} of operation {name!r} cannot be stored: {error.message}"
        raise OperationUnsupported(msg, **{**error.details, "name": name}) from error


def _shown(arguments: Mapping[str, Any]) -> str:
    text = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return storable(text, _REQUEST_CHARS_MAX)


def _idempotency_key(owned: OwnedRun, key: OperationKey) -> str:
    """Return a key that depends on the identity alone: the same over tries, runs and takeovers."""
    parts = (key.thread_id, key.checkpoint_ns, key.name, key.ordinal)
    return fingerprint(owned.coordinator.keys.secret, *(part.encode() for part in parts)).hex()


def _leased(owned: OwnedRun) -> dict[str, Any]:
    lease = owned.lease
    return {
        "space": lease.space,
        "run_id": lease.run_id,
        "epoch": lease.epoch,
        "actor": f"worker:{lease.worker_id}",
    }


def _completing(begun: Begun) -> dict[str, Any]:
    return {
        "command_id": new_id(),
        "operation_id": begun.operation_id,
        "name": begun.name,
        "try_no": begun.try_no,
        **_leased(begun.owned),
    }
