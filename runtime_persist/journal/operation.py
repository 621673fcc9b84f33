"""@operation: a call of the outside world that is journalled before and after."""

from __future__ import annotations

import asyncio
import functools
import inspect
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, get_args

from langgraph.errors import GraphBubbleUp

from runtime_persist.engine import Flow, arun, run
from runtime_persist.errors import InvalidInput, OperationUnsupported, RuntimePersistError
from runtime_persist.journal import record, tries
from runtime_persist.journal.bubble import bubbling
from runtime_persist.journal.place import Place, current_place
from runtime_persist.journal.turns import Turn
from runtime_persist.model import limits
from runtime_persist.model.budgets import Ticket, TicketKind
from runtime_persist.model.ids import is_short_name, new_id

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from runtime_persist.journal.outcomes import Reconcile
    from runtime_persist.model.retry import RetryPolicy

P = ParamSpec("P")
R = TypeVar("R")
OnUnknown = Literal["ask", "fail", "retry"]

_KEY = "idempotency_key"
_BOUND = ("self", "cls")


def operation(
    *,
    name: str,
    on_unknown: OnUnknown | Reconcile = "ask",
    key: Callable[..., str] | None = None,
    redact: Collection[str] = (),
    retry: RetryPolicy | None = None,
    timeout: float | None = None,
    ticket: Ticket | TicketKind | None = None,
    include_self: bool = False,
) -> Callable[[Callable[P, R]], Callable[..., R]]:
    """Journal a function's calls inside the nodes and tools of a graph that is bound to a run.

    The first call with an identity commits that it is about to be made, calls the function, and commits what it
    returned; a later call with the same identity (the node runs again after a crash, an interrupt or a retry)
    returns the stored result and calls nothing. The identity is (space, thread, checkpoint namespace with the
    task's id, ``name``, position among the task's calls of that name or ``key``). Calls that are made inside another
    operation are counted there.

    When an earlier try started and nothing proves what became of it, ``on_unknown`` decides:

    * ``ask`` (default): the run waits for a person, with the question (:class:`OperationUnknown`).
    * ``retry``: the function is called again with the same idempotency key; declare this only when the outside
      recognises the key.
    * ``fail``: :class:`OperationFailed` is raised, now and on every later call.
    * a function ``(request, idempotency_key, tries)`` that asks the outside, and returns ``Happened(result)``,
      ``DidNotHappen()`` (it is called again) or ``StillUnknown(reason)`` (a person is asked). What it says is
      journalled. What it raises is raised here, and it is asked again by the next call.

    A function with a parameter ``idempotency_key`` is given one that is stable over tries, takeovers and resumes.
    Outside of any graph the function is simply called.

    Args:
        name: explicit name, stable over code changes.
        on_unknown: see above.
        key: called with the function's arguments; gives the identity instead of the position (needed where the
            order of calls is not deterministic).
        redact: names of arguments, and of keys in them, that are stored as keyed hashes; ``SecretStr`` and
            ``SecretBytes`` always are. Their texts are taken out of what errors say, too.
        retry: an exception is tried again as it says, under the same idempotency key; each try is journalled, the
            waiting is by the database's clock, and a crash in between goes on with the count.
        timeout: seconds that a try of an async function may take. Then it is cancelled, and is unknown: ``on_unknown``
            decides (with ``retry``, as long as ``retry=`` has tries left).
        ticket: what a call takes of its run's budget, if that has one: ``loop`` (a call of a model), ``tool_call``, or
            a :class:`runtime_persist.Ticket` that also says how many tokens and what cost. It is reserved with the
            start of the call, and settled with what it came to.
        include_self: the first parameter of a method counts as an argument. It does not when it is called ``self`` or
            ``cls``: two objects that ask for the same have the same request.

    Raises:
        InvalidInput: a name that is empty or too long, an unknown policy, a redacted argument that there is not (when
            decorating); a key that is empty or too long.
        OperationNeedsRun: called inside a graph that is not bound to a run.
        OperationUnsupported: durability="exit", or arguments or a result that the serializer cannot store; when
            decorating: ``timeout`` of a function that is not async.
        OperationOrder: two calls of it are in flight at once in one task, and have no ``key``.
        OperationMismatch: journalled under this identity with other arguments.
        OperationUnknown, OperationFailed: see above.
        BudgetExhausted: the run's budget is spent; it waits for a person.
        CheckpointNotDurable: the task's checkpoint was not stored in time, or cannot be while a sync operation
            blocks the event loop that stores it; the function was not called.
        LeaseLost, LeaseExpired, RunStopping: the run is not this process's any more, or is being stopped.

    """
    checked_name(name)
    checked_policy(on_unknown)
    needed = Ticket(ticket) if isinstance(ticket, str) else ticket
    if timeout is not None and not timeout > 0:
        msg = f"timeout is a number of seconds above 0, not {timeout!r}"
        raise InvalidInput(msg)

    def decorate(function: Callable[P, R]) -> Callable[..., R]:
        call = _Operation(function, name, on_unknown, key, redact, retry, timeout, needed, include_self=include_self)
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def asynchronous(*args: Any, **kwargs: Any) -> Any:
                return await call.acall(args, kwargs)

            return asynchronous  # type: ignore[return-value]  # R is the coroutine of the wrapped function
        call.check_sync()

        @functools.wraps(function)
        def synchronous(*args: Any, **kwargs: Any) -> R:
            result: R = call.call(args, kwargs)
            return result

        return synchronous

    return decorate


def checked_name(name: object) -> None:
    """Raise InvalidInput unless an operation can be called so."""
    if not is_short_name(name):
        msg = f"an operation needs a non-empty text of at most {limits.NAME_BYTES_MAX} bytes as name, not {name!r:.100}"
        raise InvalidInput(msg)


def checked_key(name: str, key: object) -> None:
    """Raise InvalidInput unless a call of an operation can be told apart by it."""
    if not is_short_name(key):
        msg = f"the key of {name!r} is a non-empty text of at most {limits.NAME_BYTES_MAX} bytes, not {key!r:.100}"
        raise InvalidInput(msg, name=name)


def checked_policy(on_unknown: object) -> None:
    """Raise InvalidInput unless it is a word for what to do about an unknown outcome, or a function."""
    if on_unknown not in get_args(OnUnknown) and not callable(on_unknown):
        words = ", ".join(get_args(OnUnknown))
        msg = f"on_unknown must be one of {words}, or a function that asks the outside, not {on_unknown!r}"
        raise InvalidInput(msg, on_unknown=repr(on_unknown))


def word_of(on_unknown: OnUnknown | Reconcile) -> str:
    """Return what is stored about a policy."""
    return "reconcile" if callable(on_unknown) else on_unknown


class _Operation:
    """A decorated function: sync and async calls differ only in how they wait and how they call it."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        on_unknown: OnUnknown | Reconcile,
        key: Callable[..., str] | None,
        redact: Collection[str],
        retry: RetryPolicy | None,
        timeout: float | None,
        ticket: Ticket | None,
        *,
        include_self: bool,
    ) -> None:
        self.function = function
        self.name = name
        self.ask = on_unknown if callable(on_unknown) else None
        self.on_unknown = word_of(on_unknown)
        self.key = key
        self.redact = frozenset(redact)
        self.retry = retry
        self.timeout = timeout
        self.ticket = ticket
        self.signature = inspect.signature(function)
        parameters = self.signature.parameters
        self.wants_key = _KEY in parameters
        self.bound = not include_self and next(iter(parameters), None) in _BOUND
        open_ended = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
        missing = sorted(self.redact - set(parameters))
        if missing and not open_ended:
            msg = f"operation {name!r} has no argument {', '.join(missing)} to redact"
            raise InvalidInput(msg, name=name)

    def check_sync(self) -> None:
        """Raise OperationUnsupported when only an async function could be what is declared."""
        if self.timeout is not None:
            msg = (
                f"operation {self.name!r}: a sync call cannot be stopped, so timeout= needs an async function; give "
                "the client that it calls a timeout, or make it async"
            )
            raise OperationUnsupported(msg, name=self.name)
        if self.ask is not None and inspect.iscoroutinefunction(self.ask):
            msg = f"operation {self.name!r} is a sync function, so what asks the outside must be one too"
            raise OperationUnsupported(msg, name=self.name)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        place = current_place(self.name)
        if place is None:
            return self.function(*args, **self._given(kwargs, None))
        turn = self._turn(place, args, kwargs)
        try:
            begun = run(guarded(self._begin(turn, args, kwargs, blocks=True)))
            if begun.reconcile and self.ask is not None:
                answer = self.ask(self._arguments(args, kwargs), begun.idempotency_key, run(tries.known_of(begun)))
                begun = run(guarded(tries.reconciled(begun, answer)))
            while begun.call:
                try:
                    with record.spanned(begun), turn.inside():
                        result = self.function(*args, **self._given(kwargs, begun.idempotency_key))
                except Exception as error:
                    following = run(guarded(tries.failed(begun, error, self.retry)))
                    if following is None:
                        raise
                    begun = following
                else:
                    return run(guarded(record.returned(begun, result)))
            return run(guarded(record.returned(begun, begun.value))) if begun.raw else begun.value
        finally:
            turn.over()

    async def acall(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        place = current_place(self.name)
        if place is None:
            return await self._timed(self.function(*args, **self._given(kwargs, None)))
        turn = self._turn(place, args, kwargs)
        try:
            begun = await arun(guarded(self._begin(turn, args, kwargs, blocks=False)))
            while begun.call or begun.reconcile:
                if begun.reconcile:
                    begun = await self._asked(begun, args, kwargs)
                    continue
                timer = asyncio.timeout(self.timeout)
                try:
                    with record.spanned(begun), turn.inside():
                        async with timer:
                            result = await self.function(*args, **self._given(kwargs, begun.idempotency_key))
                except Exception as error:
                    if timer.expired() and isinstance(error, TimeoutError):
                        begun = await arun(guarded(self._timed_out(begun)))
                        continue
                    following = await arun(guarded(tries.failed(begun, error, self.retry)))
                    if following is None:
                        raise
                    begun = following
                else:
                    return await arun(guarded(record.returned(begun, result)))
            return await arun(guarded(record.returned(begun, begun.value))) if begun.raw else begun.value
        finally:
            turn.over()

    async def _timed(self, call: Any) -> Any:
        async with asyncio.timeout(self.timeout):
            return await call

    def _timed_out(self, begun: record.Begun) -> Flow[record.Begun]:
        return tries.timed_out(begun, self.timeout or 0.0, self.on_unknown, self.retry)

    async def _asked(self, begun: record.Begun, args: tuple[Any, ...], kwargs: dict[str, Any]) -> record.Begun:
        known = await arun(tries.known_of(begun))
        answer = await asked(self.ask, self._arguments(args, kwargs), begun.idempotency_key, known)
        return await arun(guarded(tries.reconciled(begun, answer)))

    def _given(self, kwargs: dict[str, Any], key: str | None) -> dict[str, Any]:
        if not self.wants_key or _KEY in kwargs:
            return kwargs
        return {**kwargs, _KEY: key or new_id()}

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Mapping[str, Any]:
        bound = self.signature.bind_partial(*args, **kwargs)
        bound.apply_defaults()
        arguments = {name: value for name, value in bound.arguments.items() if name != _KEY}
        if self.bound:
            arguments.pop(next(iter(self.signature.parameters)), None)
        return arguments

    def _turn(self, place: Place, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Turn:
        key = None if self.key is None else str(self.key(*(args[1:] if self.bound else args), **kwargs))
        if key is not None:
            checked_key(self.name, key)
        return turned(place, self.name, key)

    def _begin(self, turn: Turn, args: tuple[Any, ...], kwargs: dict[str, Any], *, blocks: bool) -> Flow[record.Begun]:
        arguments = self._arguments(args, kwargs)
        more: Any = {"redact": self.redact, "ticket": self.ticket}
        return record.begin(turn.place, self.name, turn.ordinal, arguments, self.on_unknown, blocks=blocks, **more)


async def asked(ask: Reconcile | None, request: Mapping[str, Any], key: str, known: Any) -> Any:
    """Return what a function says that asks the outside; a sync one asks on a thread of its own."""
    if ask is None:
        msg = "nobody asks the outside"
        raise InvalidInput(msg)
    if inspect.iscoroutinefunction(ask):
        return await ask(request, key, known)
    return await asyncio.to_thread(ask, request, key, known)


def turned(place: Place, name: str, key: str | None) -> Turn:
    """Take a turn; what chance would decide passes through nodes and tools untouched."""
    try:
        return Turn(place, name, key)
    except RuntimePersistError as error:
        raise bubbling(error) from None


def guarded(flow: Flow[R]) -> Flow[R]:
    """Run a flow of the journal; its errors pass through nodes and tools untouched."""
    try:
        return (yield from flow)
    except GraphBubbleUp:
        raise
    except RuntimePersistError as error:
        raise _passing(error) from error.__cause__


def _passing(error: RuntimePersistError) -> RuntimePersistError:
    """Failures of the operation itself are the node's to handle; everything else must reach whoever runs the graph."""
    return error if error.kind == "failed" else bubbling(error)
