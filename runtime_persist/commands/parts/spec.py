"""The shape of a command: a frozen DTO, its guard, and its parts in the order of the transaction path."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import ormsgpack

from runtime_persist.model.keys import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runtime_persist.errors import RuntimePersistError
    from runtime_persist.model.guards import Guard
    from runtime_persist.plan import Call, Fragment, Outcome, Plan, Query, Row

_NOT_SEMANTIC = frozenset({"command_id", "epoch", "actor"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What every command carries.

    Attributes:
        space: tenant.
        command_id: sending it again with the same content returns the stored receipt.
        actor: who asked, recorded with the events (``worker:…``, ``user``, ``runtime``).

    """

    space: str
    command_id: str
    actor: str = "runtime"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseCommand(Command):
    """A command of a lease holder."""

    run_id: str
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadCommand(Command):
    """A command on a thread."""

    thread_id: str
    thread_hash: bytes

    @property
    def named_id(self) -> str:
        """Return the smallest checkpoint id a write names: one that was deleted with its thread is refused."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a stored receipt says.

    Attributes:
        fingerprint: of the request that was committed.
        result: what the command answered.

    """

    fingerprint: bytes
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Event:
    """A fact to append: ``aggregate.past_tense`` and a few small fields."""

    type: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    attempt_id: str | None = None


@dataclass(frozen=True, slots=True)
class Locked:
    """The rows a command's guard locked, and the database clock read after the locks were held.

    Attributes:
        now_us: database clock.
        run: the run's row (None: the command locks none, or there is none).
        thread: the thread's row.
        owner: the run that owns the thread, when it is another one.
        instance: what the claimer's instance reported last.

    """

    now_us: int
    run: Row | None = None
    thread: Row | None = None
    owner: Row | None = None
    instance: Row | None = None


@dataclass(frozen=True, slots=True)
class RunChange:
    """A run's row before (None: it is new) and after, and the facts that this makes true."""

    before: Row | None
    after: Row
    events: Sequence[Event]


@dataclass(frozen=True, slots=True)
class Decision:
    """What a cold command will write, decided from locked rows alone.

    Attributes:
        result: the receipt's answer.
        runs: run rows to insert or to compare and set, with their events.
        effects: the other statements, in lock order.

    """

    result: Mapping[str, Any]
    runs: Sequence[RunChange] = ()
    effects: Sequence[Call] = ()


C = TypeVar("C", bound=Command)


@dataclass(frozen=True, slots=True, eq=False)
class HotCommand(Generic[C]):
    """A command that is one bundle: one round trip on PostgreSQL.

    Attributes:
        name: of the command.
        dto: its class.
        guard: the one check.
        expectations: compare-and-set on rows locked with the guard; tested before the first write.
        receipt: the fragment that writes the first row.
        effects: what follows from it, events included.
        params: the bundle's parameters, and the rows of the fragments that take some.
        lookup: finds the stored receipt in a new statement, after nothing was written.
        accepted: whether an outcome means committed (default: the receipt fragment wrote its row).
        refuse: the error when neither written nor found, for what the guard does not explain.
        conflict: the error when the row that is the receipt is of another request (default: CommandMismatch).
        answer: the result of a fresh commit.
        urgent: it must not wait behind commands that wait for locks.
        run_columns: of the locked run, what it decides on beside what the guard does.

    """

    name: str
    dto: type[C]
    guard: Guard
    receipt: Fragment
    params: Callable[[C], tuple[Mapping[str, Any], Mapping[str, Sequence[Mapping[str, Any]]]]]
    lookup: Callable[[C], Plan[Receipt | None]]
    fingerprint: Callable[[C], bytes]
    refuse: Callable[[C, Outcome], RuntimePersistError]
    expectations: tuple[Fragment, ...] = ()
    effects: tuple[Fragment, ...] = ()
    accepted: Callable[[Outcome], bool] | None = None
    conflict: Callable[[C], RuntimePersistError] | None = None
    answer: Callable[[C, Outcome], Mapping[str, Any]] = lambda _command, _outcome: {}
    urgent: bool = False
    run_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ColdCommand(Generic[C]):
    """A command of several statements in one transaction.

    Attributes:
        name: of the command.
        dto: its class.
        guard: the one check.
        decide: reads under the locks and returns what will be written, or raises the refusal.
        statements: every statement it may run beside guard and receipt: the fault cuts are generated from them.
        locks_thread: whether the thread row is locked first (start, claim, finalize, delete).
        locks_run: whether the DTO names a run that is locked.
        locks_instance: whether the DTO names an instance (or None), whose row is locked first of all.
        fingerprint: of the request, where it is not simply all fields of the DTO.

    """

    name: str
    dto: type[C]
    guard: Guard
    decide: Callable[[C, Locked], Plan[Decision]]
    statements: tuple[Query, ...] = ()
    locks_thread: bool = False
    locks_run: bool = True
    locks_instance: bool = False
    fingerprint: Callable[[C], bytes] | None = None


def semantic_fingerprint(command: Command) -> bytes:
    """Return the fingerprint of a command's meaning: all fields but its id, its epoch and its actor."""
    body = {
        part.name: getattr(command, part.name) for part in dataclasses.fields(command) if part.name not in _NOT_SEMANTIC
    }
    data = ormsgpack.packb(body, default=_brought, option=ormsgpack.OPT_SORT_KEYS)
    return fingerprint(type(command).__name__.encode(), data)


def _brought(found: object) -> None:
    """Leave the content out that a command brings along: what refers to it says the same, whatever was sent before."""
    if not isinstance(found, Sequence):
        raise TypeError
