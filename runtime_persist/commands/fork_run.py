"""fork_run: a new run in a new thread, from a checkpoint that a run stored; nothing it did fires again there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from runtime_persist.commands.parts import beginnings, content, guards, run_rows, thread_copies, ticket_rows
from runtime_persist.commands.parts.spec import ColdCommand, Decision, Event, Locked, RunChange, ThreadCommand
from runtime_persist.dialects.sql import bind
from runtime_persist.errors import InvariantBroken, RunNotFound, ThreadNotEmpty
from runtime_persist.model.guards import CONTROL
from runtime_persist.model.states import RunStatus
from runtime_persist.plan import Plan, Query, one_or_none
from runtime_persist.schema import runs

if TYPE_CHECKING:
    from runtime_persist.commands.parts.run_request import RunRequest
    from runtime_persist.plan import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkRun(ThreadCommand):
    """Copy a run's thread up to one of its checkpoints to this new thread, and queue a run that begins there.

    Answer: ``run_id`` and ``thread_id`` (of the first run with this command id).

    Attributes:
        request: what the new run is asked to do.
        of_run_id: the run it is a fork of.
        source_id: that run's thread.
        source_hash: and its hash.
        checkpoint_id: a checkpoint of the root graph that the run stored.

    Refused: no such run (RunNotFound), or the checkpoint is not its (CheckpointNotFound); this thread is not new
    (ThreadNotEmpty, ThreadDeleted).

    """

    request: RunRequest
    of_run_id: str
    source_id: str
    source_hash: bytes
    checkpoint_id: str


COUNT_RUNS = Query(
    "count_runs_of_target",
    select(func.count().label("found"))
    .select_from(runs)
    .where(runs.c.space == bind(runs.c.space), runs.c.thread_id == bind(runs.c.thread_id)),
)


def decide(command: ForkRun, locked: Locked) -> Plan[Decision]:
    """Return the copies and the queued run."""
    thread, request, now = locked.thread, command.request, locked.now_us
    if thread is None:
        raise InvariantBroken
    yield from _check_target(command, thread)
    yield from thread_copies.hold_source(command.space, command.source_id, command.source_hash)
    source = yield from one_or_none(guards.LOCK_RUN, space=command.space, run_id=command.of_run_id)
    if source is None or source["thread_id"] != command.source_id:
        msg = f"there is no run {command.of_run_id!r} of thread {command.source_id!r} in space {command.space!r}"
        raise RunNotFound(msg, run_id=command.of_run_id)
    found = yield from beginnings.find_checkpoint(command.space, command.source_id, command.checkpoint_id)
    if found["run_id"] != command.of_run_id:
        why = f" that run {command.of_run_id} stored: it is of {found['run_id'] or 'no run'}"
        raise beginnings.no_checkpoint(command.source_id, command.checkpoint_id, why)
    row = request.row(thread, now)
    ticket_rows.same_limits(row, source)
    queued = run_rows.move_run(row, RunStatus.QUEUED, now, queued_us=now)
    origin = {"fork_of_run_id": command.of_run_id, "checkpoint_id": command.checkpoint_id}
    facts = (Event("run.created", {"graph": request.graph, **origin}), Event("run.queued"))
    copies = yield from thread_copies.copy_up_to(
        command.space, command.source_id, command.thread_id, command.checkpoint_id
    )
    return Decision(
        {"run_id": request.run_id, "thread_id": command.thread_id},
        runs=[RunChange(None, queued, facts)],
        effects=[
            run_rows.save_thread(thread, owner_run_id=None, run_no=thread["run_no"] + 1),
            *copies,
            *content.store(command.space, request.owner, request.blobs),
        ],
    )


def _check_target(command: ForkRun, thread: Row) -> Plan[None]:
    yield from thread_copies.check_target(command.space, thread)
    of_target = yield from one_or_none(COUNT_RUNS, space=command.space, thread_id=command.thread_id)
    if of_target is None or of_target["found"]:
        msg = f"thread {command.thread_id!r} has runs already; fork to a new thread id"
        raise ThreadNotEmpty(msg, thread_id=command.thread_id)


SPEC = ColdCommand(
    name="fork_run",
    dto=ForkRun,
    guard=CONTROL,
    decide=decide,
    statements=(
        *thread_copies.CHECKS,
        COUNT_RUNS,
        beginnings.FIND_CHECKPOINT,
        thread_copies.READ_HEAD,
        run_rows.INSERT_RUN,
        run_rows.SAVE_THREAD,
        *thread_copies.UP_TO,
        content.STORE_BLOB,
    ),
    locks_thread=True,
    locks_run=False,
    fingerprint=lambda command: command.request.fingerprint,
)
