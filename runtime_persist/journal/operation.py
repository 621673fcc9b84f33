"""@operation: a call of the outside world that is journalled before and after."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, get_args

from langgraph.errors import GraphBubbleUp

from runtime_persist.engine import Flow, arun, run
from runtime_persist.errors import InvalidInput, RuntimePersistError
from runtime_persist.journal import record
from runtime_persist.journal.bubble import bubbling
from runtime_persist.journal.place import Place, current_place
from runtime_persist.model.ids import is_name, new_id

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")
OnUnknown = Literal["ask", "fail", "retry"]

_KEY = "idempotency_key"


def operation(
    *,
    name: str,
    on_unknown: OnUnknown = "ask",
    key: Callable[..., str] | None = None,
) -> Callable[[Callable[P, R]], Callable[..., R]]:
    """Journal a function's calls inside the nodes and tools of a graph that is bound to a run.

    The first call with an identity commits that it is about to be made, calls the function, and commits what it
    returned; a later call with the same identity (the node runs again after a crash, an interrupt or a retry)
    returns the stored result and calls nothing. The identity is (space, thread, checkpoint namespace with the
    task's id, ``name``, position among the task's calls of that name or ``key``).

    When an earlier try started and nothing proves what became of it, ``on_unknown`` decides:

    * ``ask`` (default): the run waits for a person, with the question (:class:`OperationUnknown`).
    * ``retry``: the function is called again with the same idempotency key; declare this only when the outside
      recognises the key.
    * ``fail``: :class:`OperationFailed` is raised, now and on every later call.

    A function with a parameter ``idempotency_key`` is given one that is stable over tries, takeovers and resumes.
    Outside of any graph the function is simply called.

    Args:
        name: explicit name, stable over code changes.
        on_unknown: see above.
        key: called with the function's arguments; gives the identity instead of the position (needed where the
            order of calls is not deterministic).

    Raises:
        InvalidInput: an empty name or an unknown policy (when decorating).
        OperationNeedsRun: called inside a graph that is not bound to a run.
        OperationUnsupported: durability="exit", or arguments or a result that the serializer cannot store.
        OperationMismatch: journalled under this identity with other arguments.
        OperationUnknown, OperationFailed: see above.
        CheckpointNotDurable: the task's checkpoint was not stored in time, or cannot be while a sync operation
            blocks the event loop that stores it; the function was not called.
        LeaseLost, LeaseExpired, RunStopping: the run is not this process's any more, or is being stopped.

    """
    if not is_name(name):
        msg = f"an operation needs a non-empty text as name, not {name!r}"
        raise InvalidInput(msg)
    if on_unknown not in get_args(OnUnknown):
        msg = f"on_unknown must be one of {', '.join(get_args(OnUnknown))}, not {on_unknown!r}"
        raise InvalidInput(msg, on_unknown=repr(on_unknown))

    def decorate(function: Callable[P, R]) -> Callable[..., R]:
        call = _Operation(function, name, on_unknown, key)
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def asynchronous(*args: Any, **kwargs: Any) -> Any:
                return await call.acall(args, kwargs)

            return asynchronous  # type: ignore[return-value]  # R is the coroutine of the wrapped function

        @functools.wraps(function)
        def synchronous(*args: Any, **kwargs: Any) -> R:
            result: R = call.call(args, kwargs)
            return result

        return synchronous

    return decorate


class _Operation:
    """A decorated function: sync and async calls differ only in how they wait and how they call it."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        on_unknown: str,
        key: Callable[..., str] | None,
    ) -> None:
        self.function = function
        self.name = name
        self.on_unknown = on_unknown
        self.key = key
        self.signature = inspect.signature(function)
        self.wants_key = _KEY in self.signature.parameters

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        place = current_place(self.name)
        if place is None:
            return self.function(*args, **self._given(kwargs, None))
        begun = run(self._guarded(self._begin(place, args, kwargs, blocks=True)))
        if not begun.call:
            return begun.value
        try:
            result = self.function(*args, **self._given(kwargs, begun.idempotency_key))
        except Exception as error:
            run(self._guarded(record.raised(begun, error)))
            raise
        return run(self._guarded(record.returned(begun, result)))

    async def acall(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        place = current_place(self.name)
        if place is None:
            return await self.function(*args, **self._given(kwargs, None))
        begun = await arun(self._guarded(self._begin(place, args, kwargs, blocks=False)))
        if not begun.call:
            return begun.value
        try:
            result = await self.function(*args, **self._given(kwargs, begun.idempotency_key))
        except Exception as error:
            await arun(self._guarded(record.raised(begun, error)))
            raise
        return await arun(self._guarded(record.returned(begun, result)))

    def _given(self, kwargs: dict[str, Any], key: str | None) -> dict[str, Any]:
        if not self.wants_key or _KEY in kwargs:
            return kwargs
        return {**kwargs, _KEY: key or new_id()}

    def _begin(
        self, place: Place, args: tuple[Any, ...], kwargs: dict[str, Any], *, blocks: bool
    ) -> Flow[record.Begun]:
        bound = self.signature.bind_partial(*args, **kwargs)
        bound.apply_defaults()
        arguments = {name: value for name, value in bound.arguments.items() if name != _KEY}
        ordinal = self.key(*args, **kwargs) if self.key is not None else place.ordinal(self.name)
        return (yield from record.begin(place, self.name, str(ordinal), arguments, self.on_unknown, blocks=blocks))

    def _guarded(self, flow: Flow[R]) -> Flow[R]:
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
