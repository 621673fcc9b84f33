"""The tries of an operation: what becomes of one that failed or is unknown, and when the next one starts."""

from __future__ import annotations

import random
import threading
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langgraph.errors import GraphBubbleUp

from runtime_persist.commands.end_attempt import EndAttempt
from runtime_persist.commands.start_attempt import StartAttempt
from runtime_persist.engine.notifications import of_run
from runtime_persist.errors import InvalidInput, OperationFailed, OperationUnknown, RuntimePersistError
from runtime_persist.journal import storing, tickets
from runtime_persist.journal.leases import leased
from runtime_persist.journal.outcomes import DidNotHappen, Happened, StillUnknown, Try
from runtime_persist.model.ids import new_id
from runtime_persist.model.states import TryStatus
from runtime_persist.model.text import storable
from runtime_persist.queries import operation_list
from runtime_persist.queries import operations as operation_queries
from runtime_persist.recovery import calls
from runtime_persist.recovery.rules import Act

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime_persist.engine import Flow
    from runtime_persist.journal.storing import Begun
    from runtime_persist.model.retry import RetryPolicy
    from runtime_persist.plan import Row
    from runtime_persist.recovery.rules import Rule

UNKNOWN = calls.UNKNOWN
_REASON_CHARS_MAX = 400
_DATABASE_SECONDS_MIN = 0.001


def following(begun: Begun, row: Mapping[str, Any]) -> Flow[Begun]:
    """Start the try behind the last one, once it is due by the database's clock."""
    owned = begun.owned
    yield from _until_due(begun, row)
    if begun.ticket is not None:
        yield from tickets.reserve(owned, begun.operation_id, begun.ticket, begun.place.checkpoint_ns)
    number = row["try_no"] + 1
    yield owned.coordinator.commit(
        StartAttempt(
            command_id=new_id(),
            operation_id=begun.operation_id,
            name=begun.name,
            try_no=number,
            node_attempt=begun.place.node_attempt,
            **leased(owned),
        ),
    )
    return replace(begun, try_no=number, call=True)


def unknown(begun: Begun, row: Mapping[str, Any], rule: Rule, **known: Any) -> Flow[Begun]:
    """Do what the recovery table says about an operation of whose last try nothing proves what became of it.

    ``known``: what the person who is asked is told besides.
    """
    if rule.act is Act.CALL_AGAIN:
        return (yield from following(begun, row))
    if rule.act is Act.FAIL:
        text = "a try started and nothing proves what became of it"
        yield from storing.gave_up(begun, UNKNOWN, text, try_status=TryStatus.UNKNOWN.value)
        msg = f"operation {begun.name!r} failed: {text}"
        raise OperationFailed(msg, operation_id=begun.operation_id, error_type=UNKNOWN)
    if row["try_status"] == TryStatus.STARTED:  # of this very epoch: its caller was cancelled
        yield from _ended(begun, TryStatus.UNKNOWN)
    if rule.act is Act.ASK_OUTSIDE:
        return replace(begun, call=False, reconcile=True)
    msg = (
        f"operation {begun.name!r} with {row['request']} was started (try {row['try_no']}) and nothing proves what "
        f"became of it; say what happened: runtime.runs.resolve({begun.operation_id!r}, happened=…)"
    )
    owned = begun.owned
    owned.asks = True
    owned.notifications.publish_here(of_run(owned.lease.run_id))  # calls that wait for its ticket wait in vain
    raise OperationUnknown(
        msg,
        operation_id=begun.operation_id,
        name=begun.name,
        request=row["request"],
        idempotency_key=row["idempotency_key"],
        try_no=row["try_no"],
        started_us=row["try_started_us"],
        **known,
    )


# --- a call that raised, or took too long ---------------------------------------------------------------------------


def failed(begun: Begun, error: Exception, retry: RetryPolicy | None) -> Flow[Begun | None]:
    """Commit that a call raised; return the next try when it is time for it, None when there is none.

    What LangGraph raises to interrupt a node, and what is wrong with the run itself, is never tried again here.
    """
    final = isinstance(error, GraphBubbleUp | RuntimePersistError)
    if retry is None or final or begun.try_no >= retry.max_attempts:
        yield from storing.raised(begun, error)
        return None
    yield from _ended(begun, TryStatus.FAILED, _delay_us(retry, begun), **storing.raising(begun, error))
    return (yield from following(begun, (yield from _read(begun))))


def timed_out(begun: Begun, seconds: float, on_unknown: str, retry: RetryPolicy | None) -> Flow[Begun]:
    """Commit that the caller stopped waiting: it was sent, and nothing proves what became of it.

    Raises:
        OperationFailed: it may be repeated, but ``retry`` gives it no further try.
        OperationUnknown: a person is to say.

    """
    text = f"no answer within {seconds:g} s"
    said = {"error_type": TimeoutError.__name__, "error_text": text}
    again = on_unknown == "retry" and retry is not None and begun.try_no < retry.max_attempts
    delay = _delay_us(retry, begun) if retry is not None and again else None
    yield from _ended(begun, TryStatus.UNKNOWN, delay, **said)
    if on_unknown == "retry" and not again:
        yield from storing.gave_up(begun, TimeoutError.__name__, text, try_status=TryStatus.UNKNOWN.value)
        msg = f"operation {begun.name!r} failed: {text}"
        raise OperationFailed(msg, operation_id=begun.operation_id, error_type=TimeoutError.__name__)
    return (yield from unknown(begun, (yield from _read(begun)), calls.unknown(on_unknown, begun.name)))


def _delay_us(retry: RetryPolicy, begun: Begun) -> int:
    return retry.delay_us(begun.try_no, random.random())  # noqa: S311 (spreads retries, no secret)


def _ended(begun: Begun, status: TryStatus, retry_in_us: int | None = None, **said: Any) -> Flow[None]:
    command = EndAttempt(
        command_id=new_id(),
        operation_id=begun.operation_id,
        name=begun.name,
        try_no=begun.try_no,
        status=status,
        retry_in_us=retry_in_us,
        **said,
        **leased(begun.owned),
    )
    yield from storing.committed(begun, command)


def _read(begun: Begun) -> Flow[Mapping[str, Any]]:
    space = begun.owned.lease.space
    row: Mapping[str, Any] = yield begun.owned.coordinator.read(
        "read_operation", lambda: operation_queries.by_id(space, begun.operation_id)
    )
    return row


def _until_due(begun: Begun, row: Mapping[str, Any]) -> Flow[None]:
    """Wait until the next try is due. A run that is lost or stopped meanwhile is told so when it starts it."""
    owned = begun.owned
    while row["next_attempt_us"] is not None and row["next_attempt_us"] > row["now_us"]:
        owned.check()
        if owned.stop_reason is not None:
            return
        left = (row["next_attempt_us"] - row["now_us"]) / 1_000_000
        future: Future[None] = Future()
        timer = threading.Timer(max(left, _DATABASE_SECONDS_MIN), _finish, (future,))
        timer.daemon = True
        timer.start()
        owned.on_stop(lambda _, future=future: _finish(future))  # type: ignore[misc]
        if owned.error is not None or owned.stop_reason is not None:  # between the look above and this
            _finish(future)
        try:
            yield future
        finally:
            timer.cancel()
        row = yield from _read(begun)


def _finish(future: Future[None]) -> None:
    with suppress(InvalidStateError):  # somebody was quicker
        future.set_result(None)


# --- asking the outside ----------------------------------------------------------------------------------------------


def known_of(begun: Begun) -> Flow[tuple[Try, ...]]:
    """Read what is known of an operation's tries."""
    space = begun.owned.lease.space
    found: tuple[Row, Sequence[Row]] | None = yield begun.owned.coordinator.read(
        "read_operation_with_tries", lambda: operation_list.with_tries(space, begun.operation_id)
    )
    rows = () if found is None else found[1]
    return tuple(
        Try(
            row["try_no"],
            row["status"],
            row["started_us"],
            row["ended_us"],
            row["provider_request_id"],
            row["first_output_us"],
            row["error_type"],
        )
        for row in rows
    )


def reconciled(begun: Begun, answer: object) -> Flow[Begun]:
    """Commit what the outside said about a call whose outcome nothing proved.

    Raises:
        OperationUnknown: it could not say; a person is asked.
        InvalidInput: ``answer`` is none of the three.

    """
    if isinstance(answer, Happened):
        value = yield from storing.returned(begun, answer.result, reconciled=True)
        return replace(begun, call=False, reconcile=False, value=value)
    if isinstance(answer, DidNotHappen):
        text = "the outside was asked: it did not happen"
        yield from storing.gave_up(begun, DidNotHappen.__name__, text, reconciled=True)
        return (yield from following(replace(begun, reconcile=False), (yield from _read(begun))))
    if isinstance(answer, StillUnknown):
        reason = storable(answer.reason, _REASON_CHARS_MAX)
        return (yield from unknown(begun, (yield from _read(begun)), calls.UNKNOWN_ASK, reconciled=reason))
    msg = f"a reconcile function returns Happened, DidNotHappen or StillUnknown, not {type(answer).__qualname__}"
    raise InvalidInput(msg, name=begun.name)
