"""What a call came to, committed: flows over the commands complete_operation and save_attempt_raw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langgraph.errors import GraphBubbleUp

from runtime_persist.commands.complete_operation import CompleteOperation
from runtime_persist.commands.save_attempt_raw import SaveAttemptRaw
from runtime_persist.engine.payloads import dumped, loaded
from runtime_persist.errors import InvalidInput, OperationUnsupported, RuntimePersistError
from runtime_persist.journal import tickets
from runtime_persist.journal.hiding import scrubbed
from runtime_persist.journal.leases import leased
from runtime_persist.model import limits
from runtime_persist.model.ids import new_id
from runtime_persist.model.keys import fingerprint
from runtime_persist.model.payload import PayloadRef
from runtime_persist.model.text import said_by, storable
from runtime_persist.queries import checkpoints as checkpoint_queries

if TYPE_CHECKING:
    from runtime_persist.commands.parts.spec import LeaseCommand
    from runtime_persist.engine import Flow, OwnedRun
    from runtime_persist.journal.place import Place
    from runtime_persist.model.budgets import Ticket


@dataclass(frozen=True, slots=True)
class Begun:
    """What the journal said: call the function (and how), or here is what it returned before.

    Attributes:
        place: where the operation was called.
        name: its name.
        operation_id: its id.
        try_no: the try that runs, or ran last.
        idempotency_key: what is handed to the outside; the same over tries, takeovers and resumes.
        call: the call is to be made, as try ``try_no``.
        value: what was returned before (without ``call``).
        raw: ``value`` is what the outside said, and was never accepted: nothing is called, :func:`returned` accepts it.
        reconcile: nothing proves what became of the last try, and the outside is to be asked
            (:func:`runtime_persist.journal.tries.reconciled`).
        hidden: texts that must not be stored in clear.
        ticket: what the call takes of the run's budget (None: nothing).

    """

    place: Place
    name: str
    operation_id: str
    try_no: int
    idempotency_key: str
    call: bool = False
    value: Any = None
    raw: bool = False
    reconcile: bool = False
    hidden: tuple[str, ...] = ()
    ticket: Ticket | None = None

    @property
    def owned(self) -> OwnedRun:
        """Return the run."""
        return self.place.owned


def returned(begun: Begun, value: Any, *, reconciled: bool = False) -> Flow[Any]:
    """Commit what a call returned, and return it as a later call would get it.

    ``reconciled``: the outside was asked for it.
    """
    kind, data, stored = _content_of(begun, value)
    yield from committed(
        begun,
        CompleteOperation.succeeded(reconciled=reconciled, result=stored.pop("ref"), **stored, **_completing(begun)),
    )
    found = _read_again(begun, kind, data)
    if begun.ticket is not None:
        yield from tickets.consume(begun.owned, begun.operation_id, begun.ticket, found)
    return found


def saved_raw(begun: Begun, value: Any) -> Flow[Any]:
    """Commit what the outside said, before it is accepted: it is not called again. Return it as it was stored."""
    kind, data, stored = _content_of(begun, value)
    yield from committed(begun, SaveAttemptRaw(raw=stored.pop("ref"), **stored, **_completing(begun)))
    return _read_again(begun, kind, data)


def _content_of(begun: Begun, value: Any) -> tuple[str, bytes, dict[str, Any]]:
    kind, data = serialized(begun.owned, begun.name, "result", value)
    writer = begun.owned.content.writer(everything=True)
    ref = writer.put(kind, data, limits.INLINE_ROW_BYTES_MAX)
    return (
        kind,
        data,
        {
            "ref": ref.encoded(),
            "outcome": fingerprint(kind.encode(), data),
            "owner": writer.owner,
            "blobs": tuple(writer.blobs()),
        },
    )


def _read_again(begun: Begun, kind: str, data: bytes) -> Any:
    """Return the serializer's own reading of a value: the first call and every later one give the same."""
    what = f"the result of operation {begun.name!r}"
    return loaded(begun.owned.serde, kind, data, what, operation_id=begun.operation_id)


def raised(begun: Begun, error: Exception) -> Flow[None]:
    """Commit that a call raised. The exception is stored as type, code and text, never pickled."""
    said = raising(begun, error)
    outcome = fingerprint(said["error_type"].encode(), said["error_text"].encode())
    yield from committed(begun, CompleteOperation.failed(outcome=outcome, **said, **_completing(begun)))
    if begun.ticket is not None and isinstance(error, GraphBubbleUp):  # interrupted: it is called again
        yield from tickets.release(begun.owned, begun.operation_id)
    elif begun.ticket is not None:
        yield from tickets.consume_reserved(begun.owned, begun.operation_id, begun.ticket)


def gave_up(begun: Begun, kind: str, text: str, *, reconciled: bool = False, try_status: str = "failed") -> Flow[None]:
    """Commit that an operation failed without an exception of its call."""
    outcome = fingerprint(kind.encode(), text.encode())
    said: dict[str, Any] = {"error_type": kind, "error_text": text, "outcome": outcome, "try_status": try_status}
    yield from committed(begun, CompleteOperation.failed(reconciled=reconciled, **said, **_completing(begun)))
    if begun.ticket is not None and not reconciled:  # what did not happen is called again, with the same ticket
        yield from tickets.consume_reserved(begun.owned, begun.operation_id, begun.ticket)


def raising(begun: Begun, error: Exception) -> dict[str, Any]:
    """Return an exception as it is stored: its type, what it says, and its ``code`` if it has one."""
    kind = "Interrupted" if isinstance(error, GraphBubbleUp) else type(error).__qualname__
    text = scrubbed(said_by(error), begun.hidden)
    code = getattr(error, "code", None)
    code = scrubbed(str(code), begun.hidden) if isinstance(code, str | int) else None
    if code is not None and code not in text:
        text = f"{text} (code {code})"
    return {
        "error_type": kind,
        "error_code": None if code is None else storable(code, limits.ERROR_CODE_CHARS_MAX),
        "error_text": storable(text, limits.ERROR_TEXT_CHARS_MAX),
    }


def committed(begun: Begun, command: LeaseCommand) -> Flow[None]:
    """Commit how a try went; when the lease is gone the run hears of it at once."""
    try:
        yield begun.owned.coordinator.commit(command)
    except RuntimePersistError as error:
        raise begun.owned.fail(error) from error


def stored(begun: Begun, data: bytes) -> Flow[Any]:
    """Read what a payload reference in an operation's row refers to."""
    owned = begun.owned
    ref = PayloadRef.decoded(data)
    content = owned.content.reader()
    content.want([ref])
    if content.missing():
        space = owned.lease.space
        yield owned.coordinator.read("read_content", lambda: checkpoint_queries.fill(space, content))
    where = f"the result of operation {begun.name!r} ({begun.operation_id})"
    return loaded(owned.serde, ref.type, content.content(ref, where), where, operation_id=begun.operation_id)


def serialized(owned: OwnedRun, name: str, what: str, value: Any) -> tuple[str, bytes]:
    """Return a value as bytes (raises OperationUnsupported: it cannot be stored)."""
    try:
        return dumped(owned.serde, value, what, owned.max_value_bytes)
    except InvalidInput as error:
        msg = f"the {what} of operation {name!r} cannot be stored: {error.message}"
        raise OperationUnsupported(msg, **{**error.details, "name": name}) from error


def _completing(begun: Begun) -> dict[str, Any]:
    return {
        "command_id": new_id(),
        "operation_id": begun.operation_id,
        "name": begun.name,
        "try_no": begun.try_no,
        **leased(begun.owned),
    }
