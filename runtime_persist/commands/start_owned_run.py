"""start_owned_run: an owned call (L1) starts a run. Start, claim, start fence and activation are one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import (
    admission,
    content,
    domain_rows,
    rolling_back,
    run_rows,
    taking,
    ticket_rows,
)
from runtime_persist.commands.parts.spec import ColdCommand, Decision, Locked, RunChange, ThreadCommand
from runtime_persist.errors import InvariantBroken, ThreadOwned
from runtime_persist.model import budgets
from runtime_persist.model.guards import CLAIM
from runtime_persist.model.lease import EMPTY_DOMAIN_SET
from runtime_persist.model.states import AttemptCause, AttemptStatus, Control, RunStatus
from runtime_persist.queries import runs as run_queries

if TYPE_CHECKING:
    from runtime_persist.commands.parts.run_request import RunRequest
    from runtime_persist.plan import Plan, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOwnedRun(ThreadCommand):
    """Start a run that the caller executes itself. Answer: ``run_id``, ``epoch``, ``attempt_id``.

    One that retries a run goes on with its budget; the answer says then whether calls (``budgeted``), and those of
    invocations (``limits_invocations``), are limited.

    A run of the thread that waits for a person is cancelled as ``superseded``; one whose lease ran out is taken
    over only to end it. Refused: a live or queued run has the thread (ThreadOwned); an execution domain of the run
    to be ended is not revoked (DomainsOpen); its graph has as many active runs as it may have (CapacityReached).
    """

    request: RunRequest
    worker_id: str
    attempt_id: str
    ttl_us: int


def decide(command: StartOwnedRun, locked: Locked) -> Plan[Decision]:
    """Return the new run, running, and the older ones it supersedes."""
    thread, request, now = locked.thread, command.request, locked.now_us
    if thread is None:
        raise InvariantBroken
    changes: list[RunChange] = []
    effects = []
    for row in (yield from taking.open_runs(command.space, command.thread_id)):
        old = yield from _supersede(row, command.thread_id, now)
        changes.append(RunChange(row, old.run, old.events))
        effects += old.effects
    row = request.row(thread, now)
    more: dict[str, bool] = {}
    if request.retry_of_run_id is not None:
        retried = yield from run_queries.run(command.space, request.retry_of_run_id)
        if retried is not None:  # it may have been deleted meanwhile
            effects.append(ticket_rows.carried(row, retried))
        more = {"budgeted": budgets.is_limited(row), "limits_invocations": budgets.limits_invocations(row)}
    yield from admission.take_places(row, [change.before for change in changes if change.before is not None])
    run = taking.taken(row, None, now)
    run.tell("run.created", graph=request.graph)
    run.move(RunStatus.QUEUED, queued_us=now)
    run.lease(command.worker_id, command.ttl_us)
    run.effects.clear()  # a new run has no tries that could be unknown
    run.activate(EMPTY_DOMAIN_SET)
    run.move(RunStatus.DISPATCHING)
    run.add_attempt(command.attempt_id, AttemptCause.INITIAL)
    run.start()
    return Decision(
        {"run_id": request.run_id, "epoch": run.run["epoch"], "attempt_id": command.attempt_id} | more,
        runs=[*changes, RunChange(None, run.run, run.events)],
        effects=[
            *effects,
            *run.effects,
            run_rows.save_thread(thread, owner_run_id=request.run_id, run_no=thread["run_no"] + 1),
            *content.store(command.space, request.owner, request.blobs),
        ],
    )


def _supersede(row: Row, thread_id: str, now: int) -> Plan[taking.Taken]:
    """End an open run of the thread, or refuse because somebody has it."""
    waiting = row["status"] == RunStatus.WAITING_APPROVAL
    left = row["status"] in {RunStatus.RUNNING, RunStatus.LOST} and not taking.is_live(row, now)
    if not waiting and not left:
        msg = f"thread {thread_id!r} has the open run {row['run_id']} ({row['status']}); wait for it or cancel it"
        raise ThreadOwned(msg, thread_id=thread_id, run_id=row["run_id"], status=row["status"])
    domain_rows.check_revoked(row, "be ended")
    attempt = yield from run_rows.current_attempt(row)
    old = taking.taken(row, attempt, now)
    if left:
        old.lease("superseded", 0)
        old.lose()
    if row["control"] == Control.OPEN:  # the first stop reason decides
        old.stop("superseded")
    late = old.run["stop_reason"] == "deadline"
    old.end(RunStatus.TIMED_OUT if late else RunStatus.CANCELLED, AttemptStatus.CANCELLED, "superseded")
    yield from rolling_back.roll_back(old)
    return old


SPEC = ColdCommand(
    name="start_owned_run",
    dto=StartOwnedRun,
    guard=CLAIM,
    decide=decide,
    statements=(
        taking.OPEN_RUNS,
        *admission.PLACES,
        run_rows.READ_ATTEMPT,
        *rolling_back.STATEMENTS,
        run_rows.SAVE_RUN,
        run_rows.INSERT_RUN,
        run_rows.SAVE_ATTEMPT,
        run_rows.MARK_TRIES_UNKNOWN,
        run_rows.INSERT_ATTEMPT,
        run_rows.SAVE_THREAD,
        content.STORE_BLOB,
        run_queries.READ_RUN,
        ticket_rows.CARRY_TICKETS,
    ),
    locks_thread=True,
    locks_run=False,
    fingerprint=lambda command: command.request.fingerprint,
)
