"""start_run: a run is asked for and queued for a worker; it says what it does about the thread's open runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import beginnings, content, rolling_back, run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Decision, Event, Locked, RunChange, ThreadCommand
from runtime_persist.errors import CheckpointNotFound, InvariantBroken, ThreadBusy
from runtime_persist.model.guards import CONTROL
from runtime_persist.model.states import OnBusy, RunStatus

if TYPE_CHECKING:
    from runtime_persist.commands.parts.run_request import RunRequest
    from runtime_persist.plan import Call, Plan, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRun(ThreadCommand):
    """Queue a run. Answer: ``run_id`` and ``thread_id`` (of the first run with this command id).

    Attributes:
        request: what it is asked to do.
        on_busy: what it does about the open runs of its thread.
        begins_at: checkpoint of the root graph that it begins at (None: the latest).

    Refused: the thread is busy, and ``reject`` was asked for (ThreadBusy); there is no such checkpoint, or the one
    that a rollback goes back to was pruned (CheckpointNotFound).

    """

    request: RunRequest
    on_busy: OnBusy = OnBusy.ENQUEUE
    begins_at: str | None = None


def decide(command: StartRun, locked: Locked) -> Plan[Decision]:
    """Return the queued run as the last one of its thread, and the older ones stopped when it is to replace them."""
    thread, request, now = locked.thread, command.request, locked.now_us
    if thread is None:
        raise InvariantBroken
    if command.begins_at is not None:
        yield from beginnings.find_checkpoint(command.space, command.thread_id, command.begins_at)
    open_runs: list[Row] = []
    if command.on_busy is not OnBusy.ENQUEUE:
        open_runs = yield from taking.open_runs(command.space, command.thread_id)
    if open_runs and command.on_busy is OnBusy.REJECT:
        first = open_runs[0]
        msg = f"thread {command.thread_id!r} has the open run {first['run_id']} ({first['status']})"
        raise ThreadBusy(msg, thread_id=command.thread_id, run_id=first["run_id"], status=first["status"])
    changes: list[RunChange] = []
    effects: list[Call] = []
    for row in open_runs:
        old = yield from _replace(command, row, now)
        if old.events:  # else it is being stopped already
            changes.append(RunChange(row, old.run, old.events))
            effects += old.effects
    queued = run_rows.move_run(request.row(thread, now), RunStatus.QUEUED, now, queued_us=now)
    facts = (Event("run.created", {"graph": request.graph}), Event("run.queued"))
    return Decision(
        {"run_id": request.run_id, "thread_id": command.thread_id},
        runs=[*changes, RunChange(None, queued, facts)],
        effects=[
            *effects,
            run_rows.save_thread(thread, owner_run_id=thread["owner_run_id"], run_no=thread["run_no"] + 1),
            *content.store(command.space, request.owner, request.blobs),
        ],
    )


def _replace(command: StartRun, row: Row, now: int) -> Plan[taking.Taken]:
    """Stop an open run of the thread; what runs of it goes on until it has stopped, and the new run waits for that."""
    old = taking.taken(row, (yield from run_rows.current_attempt(row)), now)
    if command.on_busy is OnBusy.ROLLBACK:
        began = yield from rolling_back.beginning(row)
        if began["orphan"]:
            msg = f"where run {row['run_id']} began was pruned; on_busy='interrupt' goes on from what it committed"
            raise CheckpointNotFound(msg, thread_id=command.thread_id, run_id=row["run_id"])
        if began["first_id"] is not None and (command.begins_at or "") >= began["first_id"]:
            why = f" that stays: it goes with run {row['run_id']}, which is rolled back"
            raise beginnings.no_checkpoint(command.thread_id, command.begins_at or "", why)
        if not row["rolls_back"]:
            old.run["rolls_back"] = 1
            old.tell("run.rollback_requested")
    old.ask_to_stop("superseded")
    yield from rolling_back.roll_back(old)
    return old


SPEC = ColdCommand(
    name="start_run",
    dto=StartRun,
    guard=CONTROL,
    decide=decide,
    statements=(
        beginnings.FIND_CHECKPOINT,
        taking.OPEN_RUNS,
        run_rows.READ_ATTEMPT,
        *rolling_back.STATEMENTS,
        run_rows.SAVE_RUN,
        run_rows.INSERT_RUN,
        run_rows.SAVE_ATTEMPT,
        run_rows.SAVE_THREAD,
        content.STORE_BLOB,
    ),
    locks_thread=True,
    locks_run=False,
    fingerprint=lambda command: command.request.fingerprint,
)
