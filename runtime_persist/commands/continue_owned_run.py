"""continue_owned_run: an owned call (L1) goes on with the thread's open run: an answer, or a takeover, in one step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import admission, content, domain_rows, run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Decision, Locked, RunChange, ThreadCommand
from runtime_persist.errors import InvariantBroken, NothingToClaim, RunFailed, ThreadOwned
from runtime_persist.model.guards import CLAIM
from runtime_persist.model.lease import MANUAL_GRAPH
from runtime_persist.model.states import AttemptCause, AttemptStatus, RunStatus
from runtime_persist.plan import Plan, one_or_none
from runtime_persist.recovery import runs as recovery

if TYPE_CHECKING:
    from runtime_persist.model.payload import Blob


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinueOwnedRun(ThreadCommand):
    """Take the thread's open run with a new attempt. Answer: ``run_id``, ``epoch``, ``attempt_id``, ``takeover``.

    Refused: a live lease, or a run of another graph (ThreadOwned); no open run (NothingToClaim, naming the last
    run); a domain of an older epoch is not revoked (DomainsOpen); its graph's places, or its scope, are
    taken (CapacityReached).
    """

    graph: str
    worker_id: str
    attempt_id: str
    ttl_us: int
    answer: bytes | None = None
    owner: str = ""
    blobs: tuple[Blob, ...] = ()


def decide(command: ContinueOwnedRun, locked: Locked) -> Plan[Decision]:
    """Return the open run under its next epoch, running."""
    thread, now = locked.thread, locked.now_us
    if thread is None:
        raise InvariantBroken
    found = yield from taking.open_runs(command.space, command.thread_id)
    if not found:
        last = yield from one_or_none(taking.LAST_RUN, space=command.space, thread_id=command.thread_id)
        msg = f"thread {command.thread_id!r} has no open run"
        raise NothingToClaim(msg, last_run_id=last["run_id"] if last else None)
    before = found[0]
    if taking.is_live(before, now) or before["status"] in {RunStatus.CREATED, RunStatus.RETRY_WAIT}:
        msg = f"thread {command.thread_id!r} has the run {before['run_id']} ({before['status']}); wait or cancel it"
        raise ThreadOwned(msg, thread_id=command.thread_id, run_id=before["run_id"])
    if before["graph"] != command.graph:
        msg = f"the open run {before['run_id']} of thread {command.thread_id!r} is of graph {before['graph']!r}"
        if before["graph"] == MANUAL_GRAPH:  # left by a lease without a graph: there is nothing to go on with
            raise NothingToClaim(msg, last_run_id=before["run_id"])
        raise ThreadOwned(msg, thread_id=command.thread_id, run_id=before["run_id"])
    attempt = yield from run_rows.current_attempt(before)
    run = taking.taken(before, attempt, now)
    run.stop_if_overdue()
    takeover = recovery.is_takeover(before["status"], past_start_fence=taking.past_start_fence(attempt))
    if takeover and run.count_takeover(progress=(yield from taking.progressed(before))):
        msg = f"run {before['run_id']} crashed {before['takeovers']} times in a row without progress; cancel it"
        raise RunFailed(msg, run_id=before["run_id"], reason="crash_loop")
    yield from admission.take_places(before)
    run.lease(command.worker_id, command.ttl_us)
    if takeover:
        run.lose()
    elif run.run["status"] == RunStatus.QUEUED:
        run.move(RunStatus.DISPATCHING)
    run.activate(domain_rows.revocation(before))
    if attempt is not None and attempt["ended_us"] is None and not taking.past_start_fence(attempt):
        run.attempt = run_rows.move_attempt(attempt, AttemptStatus.CANCELLED, now, termination_reason="superseded")
        run.effects.append(run_rows.save_attempt(run.attempt))
        run.tell("attempt.cancelled", reason="superseded")
    cause = AttemptCause.TAKEOVER if takeover else AttemptCause.RESUME if before["attempt_no"] else AttemptCause.INITIAL
    run.add_attempt(command.attempt_id, cause)
    run.start()
    run.run |= {
        "question": None,
        "answer": command.answer if command.answer is not None else before["answer"],
    }
    return Decision(
        {
            "run_id": before["run_id"],
            "epoch": run.run["epoch"],
            "attempt_id": command.attempt_id,
            "takeover": takeover,
        },
        runs=[RunChange(before, run.run, run.events)],
        effects=[
            *run.effects,
            run_rows.save_thread(thread, owner_run_id=before["run_id"]),
            *content.store(command.space, command.owner, command.blobs),
        ],
    )


SPEC = ColdCommand(
    name="continue_owned_run",
    dto=ContinueOwnedRun,
    guard=CLAIM,
    decide=decide,
    statements=(
        taking.OPEN_RUNS,
        taking.LAST_RUN,
        run_rows.READ_ATTEMPT,
        taking.READ_PROGRESS,
        *admission.PLACES,
        run_rows.SAVE_RUN,
        run_rows.MARK_TRIES_UNKNOWN,
        run_rows.SAVE_ATTEMPT,
        run_rows.INSERT_ATTEMPT,
        run_rows.SAVE_THREAD,
        content.STORE_BLOB,
    ),
    locks_thread=True,
    locks_run=False,
)
