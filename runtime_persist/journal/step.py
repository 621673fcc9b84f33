"""``step``: a block of code that is journalled like a call: begin and complete apart, for streams and clients."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from runtime_persist.commands.note_attempt import NoteAttempt
from runtime_persist.engine import Flow, arun, run
from runtime_persist.errors import InvalidInput, OperationUnsupported
from runtime_persist.journal import record, tries
from runtime_persist.journal.leases import leased
from runtime_persist.journal.operation import (
    OnUnknown,
    asked,
    checked_key,
    checked_name,
    checked_policy,
    guarded,
    turned,
    word_of,
)
from runtime_persist.journal.place import current_place
from runtime_persist.model import limits
from runtime_persist.model.budgets import Ticket, TicketKind
from runtime_persist.model.ids import is_name, new_id

if TYPE_CHECKING:
    from collections.abc import Collection
    from concurrent.futures import Future
    from contextlib import AbstractContextManager
    from types import TracebackType

    from runtime_persist.journal.outcomes import Reconcile
    from runtime_persist.journal.turns import Turn


class step:  # noqa: N801 (it is used like a function)
    """Journal a block inside a node or tool of a graph that is bound to a run.

    ::

        with step("charge", {"order": order, "cents": cents}) as s:
            if not s.replayed:
                s.complete(client.charge(order, cents, idempotency_key=s.idempotency_key))
        receipt = s.result

    Entering it commits that the call is about to be made, or finds what is stored about it, by the rules of
    :func:`runtime_persist.operation`. A block that is left with an exception has failed with it; one that is left
    without a result has returned None. One that is left by what is no :class:`Exception` (its task was cancelled, the
    process is told to end) has an unknown outcome. ``async with`` is the same, with ``await s.acomplete(…)``.

    Outside of any graph nothing is journalled, and the block runs.

    Raises (on entering): what :func:`runtime_persist.operation` raises.
    """

    def __init__(
        self,
        name: str,
        request: Any = None,
        *,
        key: str | None = None,
        on_unknown: OnUnknown | Reconcile = "ask",
        redact: Collection[str] = (),
        ticket: Ticket | TicketKind | None = None,
    ) -> None:
        """Describe the call.

        Args:
            name: explicit name, stable over code changes.
            request: what is asked for: a mapping, or one value. It must be the same whenever the block runs again.
            key: gives the identity instead of the position among the task's calls of that name.
            on_unknown: what to do when nothing proves what became of an earlier try: ``ask``, ``retry``, ``fail`` or a
                function that asks the outside.
            redact: keys of the request, at any depth, that are stored as keyed hashes.
            ticket: what it takes of the run's budget, as for :func:`runtime_persist.operation`.

        Raises:
            InvalidInput: a name or key that is empty or too long, an unknown policy, a redacted key that the request
                has not.

        """
        checked_name(name)
        checked_policy(on_unknown)
        if key is not None:
            checked_key(name, key)
        self._request = dict(request) if isinstance(request, Mapping) else {"request": request}
        missing = sorted(set(redact) - _keys_of(self._request))
        if missing:
            msg = f"the request of step {name!r} has no {', '.join(missing)} to redact"
            raise InvalidInput(msg, name=name)
        self._name = name
        self._key = key
        self._ask = on_unknown if callable(on_unknown) else None
        self._on_unknown = word_of(on_unknown)
        self._redact = redact
        self._ticket = Ticket(ticket) if isinstance(ticket, str) else ticket
        self._turn: Turn | None = None
        self._begun: record.Begun | None = None
        self._span: AbstractContextManager[None] | None = None
        self._notes: list[Future[Any]] = []
        self._entered = self._has_result = self._inside = False
        self._result: Any = None
        self._plain_key = ""
        self._request_id: str | None = None

    # --- what the block is told -------------------------------------------------------------------------------------

    @property
    def replayed(self) -> bool:
        """Return whether the call was made before: :attr:`result` is what it returned, and it is not made again."""
        self._in_use()
        return self._begun is not None and not self._begun.call

    @property
    def result(self) -> Any:
        """Return what the call returned, now or before (raises InvalidInput while there is no result)."""
        if not self._has_result:
            msg = f"step {self._name!r} has no result yet"
            raise InvalidInput(msg)
        return self._result

    @property
    def idempotency_key(self) -> str:
        """Return what is handed to the outside: the same over tries, takeovers and resumes."""
        self._in_use()
        return self._plain_key if self._begun is None else self._begun.idempotency_key

    @property
    def try_no(self) -> int:
        """Return the number of the try, from 1."""
        self._in_use()
        return 1 if self._begun is None else self._begun.try_no

    # --- what the block says ----------------------------------------------------------------------------------------

    @property
    def provider_request_id(self) -> str | None:
        """What the outside calls the request. Once set it is sent to the journal, for who has to ask about it later."""
        return self._request_id

    @provider_request_id.setter
    def provider_request_id(self, value: str) -> None:
        if not is_name(value) or len(value) > limits.PROVIDER_ID_CHARS_MAX:
            msg = f"provider_request_id is a text of 1 to {limits.PROVIDER_ID_CHARS_MAX} characters, not {value!r}"
            raise InvalidInput(msg)
        self._request_id = value
        self._note(provider_request_id=value)

    def first_output(self, kind: str = "text") -> None:
        """Note that the first output came: its kind, and when, by the database's clock. The first one counts."""
        if not is_name(kind) or len(kind) > limits.PROVIDER_ID_CHARS_MAX:
            msg = f"the kind of an output is a short text, not {kind!r}"
            raise InvalidInput(msg)
        self._note(first_output_kind=kind)

    def complete(self, result: Any = None) -> Any:
        """Commit what the call returned; return it as a later call would get it.

        Raises:
            InvalidInput: the step has a result already.
            OperationUnsupported: the result cannot be stored.
            LeaseLost, LeaseExpired: the run is not this process's any more; the result does not count.

        """
        self._completing()
        return self._completed(run(self._stored(result)))

    async def acomplete(self, result: Any = None) -> Any:
        """Do :meth:`complete` from an event loop."""
        self._completing()
        return self._completed(await arun(self._stored(result)))

    # --- entering and leaving ---------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Begin the call, or find what is stored about it."""
        if self._ask is not None and inspect.iscoroutinefunction(self._ask):
            msg = f"step {self._name!r} is entered by a plain with, so what asks the outside must be a sync function"
            raise OperationUnsupported(msg, name=self._name)
        turn = self._entering()
        if turn is None:
            return self
        try:
            begun = run(guarded(self._begin(turn, blocks=True)))
            if begun.reconcile and self._ask is not None:
                answer = self._ask(self._request, begun.idempotency_key, run(tries.known_of(begun)))
                begun = run(guarded(tries.reconciled(begun, answer)))
            if begun.raw:
                begun = run(guarded(_accepted(begun)))
        except BaseException:
            turn.over()
            raise
        self._go_in(turn, begun)
        return self

    async def __aenter__(self) -> Self:
        """Begin the call, or find what is stored about it."""
        turn = self._entering()
        if turn is None:
            return self
        try:
            begun = await arun(guarded(self._begin(turn, blocks=False)))
            if begun.reconcile:
                known = await arun(tries.known_of(begun))
                answer = await asked(self._ask, self._request, begun.idempotency_key, known)
                begun = await arun(guarded(tries.reconciled(begun, answer)))
            if begun.raw:
                begun = await arun(guarded(_accepted(begun)))
        except BaseException:
            turn.over()
            raise
        self._go_in(turn, begun)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit how the block was left, unless it has its result."""
        self._go_out(kind, error, trace)
        run(guarded(self._left(error)))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit how the block was left, unless it has its result."""
        self._go_out(kind, error, trace)
        if error is None or isinstance(error, Exception):
            await arun(guarded(self._left(error)))

    def _entering(self) -> Turn | None:
        if self._entered:
            msg = f"step {self._name!r} was entered before; make another one"
            raise InvalidInput(msg)
        place = current_place(self._name)
        if place is None:
            self._entered, self._plain_key = True, new_id()
            return None
        return turned(place, self._name, self._key)

    def _begin(self, turn: Turn, *, blocks: bool) -> Flow[record.Begun]:
        more: Any = {"redact": self._redact, "ticket": self._ticket}
        return record.begin(
            turn.place, self._name, turn.ordinal, self._request, self._on_unknown, blocks=blocks, **more
        )

    def _go_in(self, turn: Turn, begun: record.Begun) -> None:
        self._turn, self._begun, self._entered = turn, begun, True
        if begun.call:
            self._span = record.spanned(begun)
            self._span.__enter__()
            turn.go_in()
            self._inside = True
        else:
            self._result, self._has_result = begun.value, True

    def _go_out(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        turn, self._turn = self._turn, None
        if turn is None:
            return
        if self._inside:
            self._inside = False
            turn.go_out()
        if self._span is not None:
            self._span.__exit__(kind, error, trace)
        turn.over()

    def _left(self, error: BaseException | None) -> Flow[None]:
        begun = self._begun
        if begun is None or not begun.call:
            if error is None:
                self._has_result = True
            return
        if error is not None and not isinstance(error, Exception):
            return
        yield from self._noted()
        if self._has_result:
            return
        if error is None:
            self._completed((yield from record.returned(begun, None)))
        else:
            yield from record.raised(begun, error)

    # --- the journal ------------------------------------------------------------------------------------------------

    def _in_use(self) -> None:
        if not self._entered:
            msg = f"step {self._name!r} is not in use; enter it with a with block"
            raise InvalidInput(msg)

    def _completing(self) -> None:
        self._in_use()
        if self._has_result:
            msg = f"step {self._name!r} has its result already; do nothing in the block when s.replayed says so"
            raise InvalidInput(msg, name=self._name)

    def _stored(self, result: Any) -> Flow[Any]:
        if self._begun is None:
            return result
        yield from guarded(self._noted())
        return (yield from guarded(record.returned(self._begun, result)))

    def _completed(self, result: Any) -> Any:
        self._result, self._has_result = result, True
        return result

    def _note(self, **said: Any) -> None:
        self._in_use()
        begun = self._begun
        if begun is None or not begun.call or self._has_result:
            return
        command = NoteAttempt(
            command_id=new_id(), operation_id=begun.operation_id, try_no=begun.try_no, **said, **leased(begun.owned)
        )
        # Nobody waits here: what streams goes on. What comes after it in this run is committed after it.
        self._notes.append(begun.owned.coordinator.commit(command))

    def _noted(self) -> Flow[None]:
        while self._notes:
            yield self._notes.pop(0)


def _accepted(begun: record.Begun) -> Flow[record.Begun]:
    """Accept what the outside said to a process that died before it could."""
    return replace(begun, raw=False, value=(yield from record.returned(begun, begun.value)))


def _keys_of(value: Any) -> set[Any]:
    if isinstance(value, Mapping):
        return set(value).union(*(_keys_of(found) for found in value.values()))
    if isinstance(value, list | tuple):
        return set().union(*(_keys_of(found) for found in value))
    return set()
