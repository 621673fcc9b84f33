"""How a call is journalled: flows over begin_operation, and what was stored about it before."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from langgraph.errors import GraphBubbleUp

from runtime_persist.commands.begin_operation import BeginOperation, begun_by
from runtime_persist.errors import CommandMismatch, InvalidInput, OperationFailed, OperationMismatch
from runtime_persist.journal import tickets, tries
from runtime_persist.journal.barrier import check_loop, wait_durable
from runtime_persist.journal.hiding import Hider
from runtime_persist.journal.leases import leased
from runtime_persist.journal.storing import Begun, raised, returned, saved_raw, serialized, stored
from runtime_persist.model import limits
from runtime_persist.model.ids import new_id
from runtime_persist.model.keys import fingerprint
from runtime_persist.model.text import storable
from runtime_persist.queries.operations import OperationKey
from runtime_persist.recovery import calls
from runtime_persist.recovery.rules import Act
from runtime_persist.telemetry import active

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from runtime_persist.coordinator import CommitReceipt
    from runtime_persist.engine import Flow, OwnedRun
    from runtime_persist.journal.place import Place
    from runtime_persist.model.budgets import Ticket, TicketKind
    from runtime_persist.recovery.rules import Rule

__all__ = ["Begun", "begin", "raised", "returned", "saved_raw", "spanned"]

_REQUEST_CHARS_MAX = 400
_NAMED_CHARS = 100


def begin(
    place: Place,
    name: str,
    ordinal: str,
    arguments: Mapping[str, Any],
    on_unknown: str,
    *,
    blocks: bool,
    redact: Iterable[str] = (),
    ticket: Ticket | TicketKind | None = None,
    hooked: bool = False,
) -> Flow[Begun]:
    """Commit that a call is about to be made, or find what is stored about it.

    Args:
        place: where it is made.
        name: its name.
        ordinal: its position (:class:`runtime_persist.journal.turns.Turn`), or its key.
        arguments: what is asked for.
        on_unknown: ``ask``, ``retry``, ``fail`` or ``reconcile``.
        blocks: the caller's thread waits meanwhile.
        redact: names of arguments that are stored as keyed hashes, as secrets are.
        ticket: what it takes of the run's budget, if that has one.
        hooked: what it answers, or a person says it did, is raw: whoever called it accepts it.

    """
    owned = place.owned
    owned.check()
    hider = Hider(redact, lambda value: _hash_of(owned, name, value))
    shown = hider.arguments(arguments)
    said = serialized(owned, name, "arguments", shown)
    if blocks and _on_loop_of(owned):
        yield from check_loop(owned, place.checkpoint_id, name)
    yield from wait_durable(owned, place.checkpoint_id, name)
    key = OperationKey(
        thread_id=owned.lease.thread_id,
        checkpoint_ns=place.checkpoint_ns,
        name=name,
        ordinal=ordinal,
    )
    _check_size(owned, key)
    command = BeginOperation(
        command_id=new_id(),
        key=key,
        operation_id=new_id(),
        request_fingerprint=fingerprint(said[0].encode(), said[1]),
        request=_text_of(shown),
        idempotency_key=_idempotency_key(owned, key),
        on_unknown=on_unknown,
        node_attempt=place.node_attempt,
        hooked=hooked,
        **leased(owned),
    )
    needs = tickets.of(owned, ticket)
    try:
        receipt: CommitReceipt
        if needs is None:
            receipt = yield owned.coordinator.commit(command)
        else:
            receipt = yield from tickets.begin(owned, command, needs)
    except CommandMismatch as error:
        stored = error.details["stored"]
        msg = (
            f"operation {name!r} ({ordinal}) was journalled in this task with {stored['request']}, and is now called "
            f"with {command.request}; calls must come in the same order, or be given a key"
        )
        raise OperationMismatch(msg, name=name, operation_id=stored["operation_id"]) from error
    row = receipt.result
    if begun_by(command, receipt):
        begun = Begun(place, name, command.operation_id, 1, command.idempotency_key, hidden=hider.texts, ticket=needs)
        return replace(begun, call=True)
    known = (row["operation_id"], row["try_no"], row["idempotency_key"])
    begun = Begun(place, name, *known, hidden=hider.texts, ticket=needs)
    return (yield from _again(begun, row, on_unknown))


def _check_size(owned: OwnedRun, key: OperationKey) -> None:
    """Raise InvalidInput when an operation's identity is longer than what both databases can look up."""
    size = sum(len(part.encode()) for part in (owned.lease.space, *key.params().values()))
    if size > limits.IDENTITY_BYTES_MAX:
        msg = (
            f"operation {key.name!r:.100} ({key.ordinal!r:.100}) has {size} bytes of identity with its thread and the "
            f"nodes it is in; at most {limits.IDENTITY_BYTES_MAX} are allowed: shorten its name or key"
        )
        raise InvalidInput(msg, name=key.name[:_NAMED_CHARS], size=size)


def _on_loop_of(owned: OwnedRun) -> bool:
    """Return whether this thread runs the event loop that stores a run's checkpoints."""
    try:
        return asyncio.get_running_loop() is owned.loop
    except RuntimeError:
        return False


def _again(begun: Begun, row: Mapping[str, Any], on_unknown: str) -> Flow[Begun]:
    """Do what the recovery table says about an operation that was begun before."""
    rule = calls.rule_of(row, on_unknown, begun.owned.lease.run_id, begun.place.node_attempt)
    return (yield from _DONE[rule.act](begun, row, rule))


def _returns(begun: Begun, row: Mapping[str, Any], _: Rule) -> Flow[Begun]:
    value = yield from stored(begun, row["result"])
    if begun.ticket is not None:
        yield from _settles(begun, row, begun.ticket.took(value))
    return replace(begun, value=value)


def _raises(begun: Begun, row: Mapping[str, Any], _: Rule) -> Flow[Begun]:
    if begun.ticket is not None:
        yield from _settles(begun, row, begun.ticket.takes())
    raise OperationFailed(
        f"operation {begun.name!r} failed: {row['error_type']}: {row['error_text']}",
        operation_id=begun.operation_id,
        error_type=row["error_type"],
        error_code=row["error_code"],
        error_text=row["error_text"],
    )


def _settles(begun: Begun, row: Mapping[str, Any], took: dict[str, int]) -> Flow[None]:
    """Settle the ticket of a call of this run: its process may have died between the outcome and the settlement."""
    if row["run_id"] == begun.owned.lease.run_id:
        yield from tickets.settle_again(begun.owned, begun.operation_id, took)


def _accepts(begun: Begun, row: Mapping[str, Any], _: Rule) -> Flow[Begun]:
    return replace(begun, raw=True, value=(yield from stored(begun, row["raw"])))


def _calls_again(begun: Begun, row: Mapping[str, Any], _: Rule) -> Flow[Begun]:
    return (yield from tries.following(begun, row))


_DONE: Final[Mapping[Act, Callable[[Begun, Mapping[str, Any], Rule], Flow[Begun]]]] = {
    Act.RETURN: _returns,
    Act.RAISE: _raises,
    Act.ACCEPT: _accepts,
    Act.START: _calls_again,  # its first try follows none
    Act.CALL_AGAIN: _calls_again,
    Act.FAIL: tries.unknown,
    Act.ASK_OUTSIDE: tries.unknown,
    Act.ASK_PERSON: tries.unknown,
}
"""How the journal does what the table says."""


def spanned(begun: Begun) -> AbstractContextManager[None]:
    """Span the call itself: what it calls belongs to it in a trace."""
    telemetry = active()
    if telemetry is None or not telemetry.tracing.heard:
        return nullcontext()
    lease = begun.owned.lease
    return telemetry.tracing.operation(
        {
            "operation_name": begun.name,
            "operation_id": begun.operation_id,
            "try_no": begun.try_no,
            "run_id": lease.run_id,
            "attempt_id": begun.owned.attempt_id,
            "epoch": lease.epoch,
        },
        GraphBubbleUp,
    )


def _hash_of(owned: OwnedRun, name: str, value: Any) -> str:
    kind, data = serialized(owned, name, "hidden argument", value)
    return owned.coordinator.keys.hidden(kind.encode() + b"\0" + data)


def _text_of(arguments: Mapping[str, Any]) -> str:
    text = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return storable(text, _REQUEST_CHARS_MAX)


def _idempotency_key(owned: OwnedRun, key: OperationKey) -> str:
    """Return a key that depends on the identity alone: the same over tries, runs and takeovers."""
    parts = (key.thread_id, key.checkpoint_ns, key.name, key.ordinal)
    return fingerprint(owned.coordinator.keys.secret, *(part.encode() for part in parts)).hex()
