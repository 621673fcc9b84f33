"""retry_run: a person retries a run that has ended: a new run goes on where it stopped, or begins where it began."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import literal_column, or_, select

from runtime_persist.commands.parts import content, run_rows, ticket_rows
from runtime_persist.commands.parts.spec import ColdCommand, Decision, Event, Locked, RunChange, ThreadCommand
from runtime_persist.dialects.sql import bind, constant
from runtime_persist.errors import CheckpointNotFound, IllegalTransition, InvariantBroken, ThreadMovedOn
from runtime_persist.model.guards import CONTROL
from runtime_persist.model.ids import NO_CHECKPOINT
from runtime_persist.model.states import FINAL_RUN, RunStatus
from runtime_persist.plan import Plan, Query, one_or_none
from runtime_persist.schema import checkpoints, runs

if TYPE_CHECKING:
    from runtime_persist.commands.parts.run_request import RunRequest
    from runtime_persist.plan import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRun(ThreadCommand):
    """Queue a new run with ``retry_of_run_id``. Answer: ``run_id`` and ``thread_id``.

    Attributes:
        run_id: the run that has ended.
        request: what is new about the new run; it names no input (``input`` is that of a run that goes on) and no
            checkpoint: these come from the run, as do its priority, scope and budget.
        from_start: begin where the run began, with its input; else go on at the thread's latest state, if the run
            stored any, with what was answered, and with what is left of the budget.

    Refused: it is open, or it succeeded and would go on (IllegalTransition); a later run of the thread has begun or is
    open (ThreadMovedOn); where it began was pruned (CheckpointNotFound).

    """

    run_id: str
    request: RunRequest
    from_start: bool = False


_R, _C = runs.c, checkpoints.c
READ_LATER = Query(
    "read_later_run",
    select(_R.run_id, _R.status)
    .where(
        _R.space == bind(_R.space),
        _R.thread_id == bind(_R.thread_id),
        _R.thread_run_no > bind(_R.thread_run_no),
        or_(_R.attempt_no > constant(0), _R.finished_us.is_(None)),
    )
    .order_by(_R.thread_run_no.desc())
    .limit(literal_column("1")),
)
READ_FIRST = Query(
    "read_first_checkpoint",
    select(_C.parent_id, _C.orphan)
    .where(
        _C.space == bind(_C.space),
        _C.thread_id == bind(_C.thread_id),
        _C.run_id == bind(_C.run_id),
        _C.checkpoint_ns == constant(""),
    )
    .order_by(_C.checkpoint_id)
    .limit(literal_column("1")),
)


def decide(command: RetryRun, locked: Locked) -> Plan[Decision]:
    """Return the queued run as the last one of its thread."""
    before, thread, request, now = locked.run, locked.thread, command.request, locked.now_us
    if before is None or thread is None:
        raise InvariantBroken
    yield from _check(command, before)
    where = {"space": command.space, "thread_id": command.thread_id}
    first = yield from one_or_none(READ_FIRST, **where, run_id=command.run_id)
    row = request.row(thread, now) | {
        "retry_of_run_id": command.run_id,
        "priority": before["priority"],
        "scope": before["scope"],
        **_beginning(command, before, first),
    }
    effects = []
    if command.from_start:
        ticket_rows.same_limits(row, before)
    else:
        effects.append(ticket_rows.carried(row, before))
    queued = run_rows.move_run(row, RunStatus.QUEUED, now, queued_us=now)
    origin = {"graph": request.graph, "retry_of_run_id": command.run_id}
    facts = (Event("run.created", origin), Event("run.queued"))
    return Decision(
        {"run_id": request.run_id, "thread_id": command.thread_id},
        runs=[RunChange(None, queued, facts)],
        effects=[
            run_rows.save_thread(thread, owner_run_id=thread["owner_run_id"], run_no=thread["run_no"] + 1),
            *content.store(command.space, request.owner, request.blobs),
            *effects,
        ],
    )


def _check(command: RetryRun, before: Row) -> Plan[None]:
    status = RunStatus(before["status"])
    if status not in FINAL_RUN:
        msg = f"run {command.run_id} is {status.value}, it has not ended; wait for it, or cancel it first"
        raise IllegalTransition(msg, run_id=command.run_id, status=status.value)
    if status is RunStatus.SUCCEEDED and not command.from_start:
        msg = f"run {command.run_id} succeeded, there is nothing to go on with; from_start=True runs it once more"
        raise IllegalTransition(msg, run_id=command.run_id, status=status.value)
    later = yield from one_or_none(
        READ_LATER, space=command.space, thread_id=command.thread_id, thread_run_no=before["thread_run_no"]
    )
    if later is not None:
        msg = (
            f"run {later['run_id']} ({later['status']}) of thread {command.thread_id!r} came after run "
            f"{command.run_id}; retry that one, or start a new run, which can begin at a checkpoint"
        )
        raise ThreadMovedOn(msg, run_id=command.run_id, later_run_id=later["run_id"])


def _beginning(command: RetryRun, before: Row, first: Row | None) -> dict[str, Any]:
    """Return input, beginning and answer of the new run. ``first``: the run's first checkpoint (None: it has none)."""
    same = {"input": before["input"], "start_checkpoint_id": before["start_checkpoint_id"]}
    if not command.from_start:
        return {"answer": before["answer"]} | (same if first is None else {})
    if first is not None and before["start_checkpoint_id"] is None:
        if first["orphan"]:
            msg = f"where run {command.run_id} began was pruned; retry it without from_start"
            raise CheckpointNotFound(msg, run_id=command.run_id)
        same["start_checkpoint_id"] = first["parent_id"] or NO_CHECKPOINT
    return same


SPEC = ColdCommand(
    name="retry_run",
    dto=RetryRun,
    guard=CONTROL,
    decide=decide,
    statements=(
        READ_LATER,
        READ_FIRST,
        run_rows.INSERT_RUN,
        run_rows.SAVE_THREAD,
        content.STORE_BLOB,
        ticket_rows.CARRY_TICKETS,
    ),
    locks_thread=True,
    fingerprint=lambda command: command.request.fingerprint,
)
