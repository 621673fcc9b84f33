"""One implementation of a journalled call for sync and async agents: steps that are flows of the engine or calls.

A generator yields a :class:`Commit` for what the journal does and a :class:`Call` for what is the user's (a model, a
tool, a hook); :func:`drive` and :func:`adrive` differ only in how they wait.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from runtime_persist.engine import Flow, arun, run
from runtime_persist.errors import InvalidInput, OperationFailed
from runtime_persist.journal import Happened, record, storing, tries
from runtime_persist.journal.operation import guarded
from runtime_persist.model.states import TryStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runtime_persist.journal.turns import Turn
    from runtime_persist.model.budgets import Ticket

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Commit:
    """A step of the journal."""

    flow: Flow[Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the user's code; what it returns is awaited in async agents."""

    function: Callable[..., Any]
    argument: Any


Steps: TypeAlias = Generator[Commit | Call, Any, R]


@dataclass(frozen=True, slots=True)
class Site:
    """Where one operation of an agent stands in the journal.

    Attributes:
        turn: the task, and the position in it.
        name: the operation's name: ``model``, the tool's name, or ``hook:`` and the hook's.
        ordinal: which one of that name.
        blocks: whether the caller's thread waits (sync agents).

    """

    turn: Turn
    name: str
    ordinal: str
    blocks: bool


_key: ContextVar[str | None] = ContextVar("runtime_persist_idempotency_key", default=None)


def idempotency_key() -> str:
    """Return the idempotency key of the journalled tool or model call that is running: hand it to the outside.

    It is the same over tries, takeovers and resumes.

    Raises:
        InvalidInput: called outside of a call that JournalMiddleware journals.

    """
    found = _key.get()
    if found is None:
        msg = "idempotency_key() is only known inside a tool or model call that JournalMiddleware journals"
        raise InvalidInput(msg)
    return found


@dataclass(frozen=True, slots=True)
class Making:
    """How a call is made that is journalled.

    Attributes:
        arguments: what it asks for: the same on every later call with its identity.
        on_unknown: ``ask``, ``retry``, ``fail`` or ``reconcile``.
        call: given the idempotency key, the call.
        stored: what is stored of what it returned.
        ask: the call that asks the outside (``reconcile``): given ``(arguments, key, tries)``.
        answer: what that said: Happened, DidNotHappen, StillUnknown, or None: the operation fails as unknown.
        ticket: what it takes of the run's budget, if that has one.
        accept: what is made of a raw answer before it is the operation's result. With it the answer is stored first,
            so that whoever takes over goes on from there.

    """

    arguments: Mapping[str, Any]
    on_unknown: str
    call: Callable[[str], Call]
    stored: Callable[[Any], Any]
    ask: Callable[[Any], Any] | None = None
    answer: Callable[[Any], object] = lambda said: said
    ticket: Ticket | None = None
    accept: Callable[[Any], Steps[Any]] | None = None


def journalled(site: Site, making: Making) -> Steps[Any]:
    """Make a call once: begin it, call, and commit what it came to. Return what is stored, now or from before."""
    begun = yield Commit(
        record.begin(
            site.turn.place,
            site.name,
            site.ordinal,
            making.arguments,
            making.on_unknown,
            blocks=site.blocks,
            ticket=making.ticket,
            hooked=making.accept is not None,
        )
    )
    if begun.reconcile and making.ask is not None:
        known = yield Commit(tries.known_of(begun))
        answer = making.answer((yield Call(making.ask, (making.arguments, begun.idempotency_key, known))))
        if making.accept is not None and isinstance(answer, Happened):
            raw = yield Commit(record.saved_raw(begun, answer.result))
            return (yield from _accepted(making, begun, raw, reconciled=True))
        begun = yield Commit(_given_up(begun) if answer is None else tries.reconciled(begun, answer))
    if not begun.call:
        return (yield from _accepted(making, begun, begun.value)) if begun.raw else begun.value
    try:
        with record.spanned(begun), site.turn.inside(), _known(begun.idempotency_key):
            result = making.stored((yield making.call(begun.idempotency_key)))
    except Exception as error:
        yield Commit(record.raised(begun, error))
        raise
    if making.accept is None:
        return (yield Commit(record.returned(begun, result)))
    return (yield from _accepted(making, begun, (yield Commit(record.saved_raw(begun, result)))))


def _given_up(begun: record.Begun) -> Flow[record.Begun]:
    text = "a try started, and nobody knows what became of it"
    yield from storing.gave_up(begun, tries.UNKNOWN, text, reconciled=True, try_status=TryStatus.UNKNOWN.value)
    msg = f"operation {begun.name!r} failed: {text}"
    raise OperationFailed(msg, operation_id=begun.operation_id, error_type=tries.UNKNOWN)


def _accepted(making: Making, begun: record.Begun, raw: Any, *, reconciled: bool = False) -> Steps[Any]:
    result = raw if making.accept is None else (yield from making.accept(raw))
    return (yield Commit(record.returned(begun, result, reconciled=reconciled)))


@contextmanager
def _known(key: str) -> Iterator[None]:
    token = _key.set(key)
    try:
        yield
    finally:
        _key.reset(token)


def drive(steps: Steps[R]) -> R:
    """Make a call's steps on this thread.

    Raises:
        InvalidInput: something it calls is async, and the agent is not.

    """
    step = _first(steps)
    while not isinstance(step, _Done):
        try:
            value = run(guarded(step.flow)) if isinstance(step, Commit) else _called(step)
        except BaseException as error:  # noqa: BLE001 (the steps decide, and raise it again)
            step = _next(steps.throw, error)
        else:
            step = _next(steps.send, value)
    return step.value  # type: ignore[no-any-return]


async def adrive(steps: Steps[R]) -> R:
    """Make a call's steps on this event loop."""
    step = _first(steps)
    while not isinstance(step, _Done):
        try:
            if isinstance(step, Commit):
                value = await arun(guarded(step.flow))
            else:
                value = step.function(step.argument)
                if inspect.isawaitable(value):
                    value = await value
        except BaseException as error:  # noqa: BLE001 (the steps decide, and raise it again)
            step = _next(steps.throw, error)
        else:
            step = _next(steps.send, value)
    return step.value  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class _Done:
    value: Any


def _first(steps: Steps[Any]) -> Commit | Call | _Done:
    return _next(steps.send, None)


def _next(goes_on: Callable[[Any], Commit | Call], value: Any) -> Commit | Call | _Done:
    try:
        return goes_on(value)
    except StopIteration as end:
        return _Done(end.value)


def _called(call: Call) -> Any:
    value = call.function(call.argument)
    if not inspect.isawaitable(value):
        return value
    if inspect.iscoroutine(value):
        value.close()
    msg = f"{call.function!r} is async; call the agent by ainvoke or astream"
    raise InvalidInput(msg)
