"""The fence, written once for hot bundles and once for cold transactions.

Rules (design: architecture §3): rows are locked by key only; epoch, phase, control and expiry are tested above the
lock, against the database clock read after it; what the test needs is a column of a locked row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Executable, and_, case, literal_column, or_, select

from runtime_persist.commands.parts import admission
from runtime_persist.commands.parts.spec import ColdCommand, Command, Locked
from runtime_persist.dialects.sql import bind, constant, excluded, insert, now_us, words
from runtime_persist.errors import (
    InvariantBroken,
    LeaseExpired,
    LeaseLost,
    LeaseReleased,
    RunNotFound,
    RunStopping,
    RuntimePersistError,
    ThreadDeleted,
    ThreadMismatch,
    ThreadOwned,
)
from runtime_persist.model.guards import Guard, GuardKind
from runtime_persist.model.states import Control, LeasePhase
from runtime_persist.plan import Fragment, Inputs, Outcome, Plan, Query, Row, one_or_none
from runtime_persist.schema import runs, threads

if TYPE_CHECKING:
    from collections.abc import Callable

FENCE = "fence"
_RUN_COLUMNS = (
    "run_id",
    "thread_id",
    "epoch",
    "phase",
    "control",
    "stop_reason",
    "expires_us",
    "status",
    "attempt_id",
)
_OWNER_COLUMNS = ("phase", "expires_us")  # what decides whether the thread is free


# --- hot: fragments -------------------------------------------------------------------------------------------------


def _lock_run(more: tuple[str, ...] = ()) -> Callable[[Inputs], Executable]:
    def build(_: Inputs) -> Executable:
        return (
            select(*(runs.c[name] for name in (*_RUN_COLUMNS, *more)))
            .where(runs.c.space == bind(runs.c.space), runs.c.run_id == bind(runs.c.run_id))
            .with_for_update()
        )

    return build


def _lease_test(guard: Guard, *, of_thread: bool) -> Callable[[Inputs], Executable]:
    def build(inputs: Inputs) -> Executable:
        phases = or_(*(inputs.value("run", "phase") == constant(phase.value) for phase in guard.phases))
        conditions: list[ColumnElement[bool]] = [
            inputs.value("run", "epoch") == bind(runs.c.epoch),
            phases,
            inputs.value("run", "expires_us") > now_us(),
        ]
        if of_thread:
            conditions.append(inputs.value("run", "thread_id") == bind(runs.c.thread_id))
        if guard.open_only:
            conditions.append(inputs.value("run", "control") == constant(Control.OPEN.value))
        return inputs.select(constant(1).label("one")).where(and_(*conditions))

    return build


def _lock_thread(inputs: Inputs) -> Executable:
    values = inputs.select(
        bind(threads.c.space),
        bind(threads.c.thread_hash),
        bind(threads.c.thread_id),
        constant(1),
        constant(0),
        now_us(),
    )
    given: ColumnElement[str] = literal_column("excluded.thread_id")
    # A thread that does not exist yet must be lockable too: INSERT … DO UPDATE locks it either way (DO NOTHING
    # would not lock, nor see a row younger than the statement's snapshot).
    return (
        insert(threads)
        .from_select(["space", "thread_hash", "thread_id", "generation", "run_no", "created_us"], values)
        .on_conflict_do_update(
            index_elements=[threads.c.space, threads.c.thread_hash],
            # The same id again, or the id of a deleted thread that returns: but not for a write that is refused.
            set_={"thread_id": case((_after(threads.c.deleted_checkpoint_id), given), else_=threads.c.thread_id)},
        )
    )


def _lock_known_thread(_: Inputs) -> Executable:
    """Lock a thread that exists and was not deleted; where there is none, nothing is written."""
    return (
        select(threads.c.generation, threads.c.owner_run_id, threads.c.deleted_checkpoint_id)
        .where(
            threads.c.space == bind(threads.c.space),
            threads.c.thread_hash == bind(threads.c.thread_hash),
            threads.c.thread_id == bind(threads.c.thread_id),
        )
        .with_for_update()
    )


def _lock_owner(inputs: Inputs) -> Executable:
    return (
        select(*(runs.c[name] for name in _OWNER_COLUMNS))
        .where(runs.c.space == bind(runs.c.space), runs.c.run_id == inputs.value("thread", "owner_run_id"))
        .with_for_update()
    )


def _thread_test(inputs: Inputs) -> Executable:
    free = inputs.value("thread", "owner_run_id").is_(None)
    owner_done = and_(
        inputs.count("owner") == constant(1),
        or_(
            inputs.value("owner", "phase") == constant(LeasePhase.RELEASED.value),
            inputs.value("owner", "expires_us") <= now_us(),
        ),
    )
    after_delete = _after(inputs.value("thread", "deleted_checkpoint_id"))
    return inputs.select(constant(1).label("one")).where(or_(free, owner_done), after_delete)


def _after(mark: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition that a write names nothing that was deleted with the thread."""
    return or_(mark.is_(None), words("named_id") > mark)


_LOCK_RUN = Fragment("run", _lock_run(), returns=_RUN_COLUMNS)
_LOCK_THREAD = Fragment(
    "thread",
    _lock_thread,
    returns=("generation", "owner_run_id", "deleted_checkpoint_id"),
    locks=_lock_known_thread,
)
_LOCK_OWNER = Fragment("owner", _lock_owner, source="thread", returns=_OWNER_COLUMNS)
_THREAD_FENCE = Fragment(FENCE, _thread_test, source="thread")
_OPEN_FENCE = Fragment(FENCE, lambda inputs: inputs.select(constant(1).label("one")))  # nothing to lock, or to test


def fragments(guard: Guard, *, of_thread: bool, more: tuple[str, ...] = ()) -> tuple[Fragment, ...]:
    """Return the guard's fragments: the locks, then the test above them, named ``fence``.

    ``of_thread``: the command names a thread, which must be the run's. ``more``: columns of the locked run that the
    command decides on beside those of the fence.
    """
    if guard.kind is GuardKind.THREAD:
        return (_LOCK_THREAD, _LOCK_OWNER, _THREAD_FENCE)
    if guard.kind is GuardKind.CONTROL:
        return (_OPEN_FENCE,)
    lock_run = Fragment("run", _lock_run(more), returns=(*_RUN_COLUMNS, *more)) if more else _LOCK_RUN
    return (lock_run, Fragment(FENCE, _lease_test(guard, of_thread=of_thread), source="run"))


class Raced(Exception):
    """A locked row names a row younger than the statement's snapshot; nothing was written."""


def explain(guard: Guard, command: Any, outcome: Outcome) -> RuntimePersistError | None:
    """Return why a bundle's fence refused (None: it did not).

    Raises:
        Raced: the refusal may only be due to the statement's old snapshot; send the command once more.

    """
    if outcome.counts[FENCE]:
        return None
    if guard.kind is GuardKind.THREAD:
        thread, owner = outcome.values["thread"], outcome.values.get("owner")
        if thread["owner_run_id"] is not None and owner is None:
            raise Raced
        mark = thread["deleted_checkpoint_id"]
        if mark is not None and command.named_id <= mark:
            return ThreadDeleted(
                f"thread {command.thread_id!r} was deleted after checkpoint {command.named_id} was made; "
                "start anew on it, or use another thread id",
                thread_id=command.thread_id,
            )
        return _owned(command.thread_id, thread["owner_run_id"])
    run = outcome.values.get("run")
    return refusal(guard, command, run, None) or LeaseExpired(
        f"the lease of run {command.run_id} (epoch {command.epoch}) ran out before this write; "
        "claim the run again (L1: invoke(None))",
        run_id=command.run_id,
        epoch=command.epoch,
    )


def _owned(thread_id: str, run_id: str | None) -> ThreadOwned:
    return ThreadOwned(
        f"thread {thread_id!r} is owned by the live run {run_id}; wait for it, cancel it, or use another thread",
        thread_id=thread_id,
        run_id=run_id,
    )


# --- cold: lock statements and the test in Python, on the locked rows ------------------------------------------------


def _with_clock(locked: Any, name: str) -> Any:
    """Return a locking select as a CTE and the clock above it: the clock is read after the lock is held."""
    cte = locked.cte(name)
    return select(*cte.c, now_us().label("now_us"))


LOCK_RUN = Query(
    "lock_run",
    _with_clock(
        select(runs).where(runs.c.space == bind(runs.c.space), runs.c.run_id == bind(runs.c.run_id)).with_for_update(),
        "locked_run",
    ),
)
LOCK_THREAD = Query(
    "lock_thread",
    insert(threads)
    .values(
        space=bind(threads.c.space),
        thread_hash=bind(threads.c.thread_hash),
        thread_id=bind(threads.c.thread_id),
        generation=constant(1),
        run_no=constant(0),
        created_us=now_us(),
    )
    .on_conflict_do_update(
        index_elements=[threads.c.space, threads.c.thread_hash],
        set_={"thread_hash": excluded("thread_hash")},  # only a lock: a deleted thread's id returns with a write
    )
    .returning(*threads.c, now_us().label("now_us")),
)
READ_CLOCK = Query("read_clock", select(now_us().label("now_us")))


def lock(spec: ColdCommand[Any], command: Any) -> Plan[Locked]:
    """Lock what a cold command's guard names, in lock order: instance, thread, run."""
    now = 0
    instance: Row | None = None
    thread: Row | None = None
    run: Row | None = None
    owner: Row | None = None
    if spec.locks_instance and command.instance_id is not None:
        key = {"space": command.space, "instance_id": command.instance_id}
        instance = yield from one_or_none(admission.LOCK_INSTANCE, **key)
        now = instance["now_us"] if instance is not None else now
    if spec.locks_thread:
        thread = yield from one_or_none(
            LOCK_THREAD,
            space=command.space,
            thread_hash=command.thread_hash,
            thread_id=command.thread_id,
        )
        if thread is None:
            raise InvariantBroken
        now = thread["now_us"]
        thread = {**thread, "thread_id": command.thread_id}
    if spec.locks_run:
        run = yield from one_or_none(LOCK_RUN, space=command.space, run_id=command.run_id)
        if run is None:
            msg = f"there is no run {command.run_id!r} in space {command.space!r}"
            raise RunNotFound(msg, run_id=command.run_id)
        now = run["now_us"]
    if thread is not None and thread["owner_run_id"] not in {None, getattr(command, "run_id", None)}:
        owner = yield from one_or_none(LOCK_RUN, space=command.space, run_id=thread["owner_run_id"])
        now = owner["now_us"] if owner is not None else now
    if not now:
        clock = yield from one_or_none(READ_CLOCK)
        now = clock["now_us"] if clock else 0
    return Locked(now, run, thread, owner, instance)


def check(spec: ColdCommand[Any], command: Any, locked: Locked) -> RuntimePersistError | None:
    """Return why a cold command's guard refuses it (None: it does not). Pure."""
    if spec.guard.kind is GuardKind.LEASE:
        return refusal(spec.guard, command, locked.run, locked.now_us)
    owner = locked.owner
    if spec.guard.kind is GuardKind.THREAD and owner is not None and is_live(owner, locked.now_us):
        return _owned(command.thread_id, owner["run_id"])
    return None


def is_live(run: Row, now: int) -> bool:
    """Return whether a run's lease is held: not released and not expired."""
    live: bool = run["phase"] != LeasePhase.RELEASED and run["expires_us"] > now
    return live


def refusal(  # noqa: PLR0911 (one return a reason)
    guard: Guard, command: Any, run: Row | None, now: int | None
) -> RuntimePersistError | None:
    """Return why a lease guard refuses (None: it does not, or only expiry is left and ``now`` is not given)."""
    names = {"run_id": command.run_id, "epoch": command.epoch}
    if run is None:
        return RunNotFound(f"there is no run {command.run_id!r}", **names)
    if run["epoch"] != command.epoch:
        return LeaseLost(
            f"run {command.run_id} was taken over: its epoch is {run['epoch']}, this writer has {command.epoch}; "
            "nothing was written",
            **names,
            current_epoch=run["epoch"],
        )
    if run["phase"] not in guard.phases:
        kind = LeaseReleased if run["phase"] == LeasePhase.RELEASED else LeaseLost
        return kind(
            f"the lease of run {command.run_id} (epoch {command.epoch}) is {run['phase']}; "
            f"{' or '.join(guard.phases)} is needed",
            **names,
        )
    if getattr(command, "thread_id", run["thread_id"]) != run["thread_id"]:
        return ThreadMismatch(
            f"run {command.run_id} belongs to thread {run['thread_id']!r}, not to {command.thread_id!r}",
            **names,
        )
    if guard.open_only and run["control"] != Control.OPEN:
        return RunStopping(f"run {command.run_id} is being stopped ({run['stop_reason']})", **names)
    if now is not None and run["expires_us"] <= now:
        return LeaseExpired(
            f"the lease of run {command.run_id} (epoch {command.epoch}) ran out; claim the run again",
            **names,
        )
    return None


__all__ = [
    "FENCE",
    "LOCK_RUN",
    "LOCK_THREAD",
    "READ_CLOCK",
    "Command",
    "Raced",
    "check",
    "explain",
    "fragments",
    "is_live",
    "lock",
    "refusal",
]
