"""claim_run: a worker takes a run whose lease is free (queued) or ran out (takeover), under the next epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Decision, Locked, RunChange, ThreadCommand
from runtime_persist.errors import InvariantBroken, NothingToClaim
from runtime_persist.model.guards import CLAIM
from runtime_persist.model.states import AttemptCause, AttemptStatus, Control, RunStatus

if TYPE_CHECKING:
    from runtime_persist.plan import Plan, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRun(ThreadCommand):
    """Claim one run.

    Answer: ``epoch``, ``takeover``, ``attempt_id``, ``crash_loop``, ``control``, ``stop_reason``, ``deadline_in_us``
    (microseconds; None: it has none).

    Attributes:
        versions: versions of the graph's definition that the worker may execute (None: all of them).

    A run before its start fence keeps its attempt; one past it goes to ``lost`` with its attempt, and a new attempt
    is made when the lease is activated. Refused: nothing to claim (live, waiting, final, of another version, or
    an older open run of the thread comes first).

    """

    run_id: str
    worker_id: str
    attempt_id: str
    ttl_us: int
    versions: tuple[str, ...] | None = None


def decide(command: ClaimRun, locked: Locked) -> Plan[Decision]:
    """Return the run under its next epoch."""
    before, thread, now = locked.run, locked.thread, locked.now_us
    if before is None or thread is None:
        raise InvariantBroken
    _check_claimable(before, now)
    _check_version(command, before)
    first = (yield from taking.open_runs(command.space, command.thread_id))[0]
    if first["run_id"] != command.run_id:
        msg = f"run {first['run_id']} of the same thread is open and older than {command.run_id}"
        raise NothingToClaim(msg, run_id=command.run_id, waits_for=first["run_id"])
    attempt = yield from run_rows.current_attempt(before)
    run = taking.taken(before, attempt, now)
    run.stop_if_overdue()
    lost = past = taking.past_start_fence(attempt)
    crash_loop = False
    if past or before["status"] == RunStatus.LOST:
        lost = True
        crash_loop = run.count_takeover(progress=(yield from taking.progressed(before)))
    run.lease(command.worker_id, command.ttl_us)
    if lost:
        run.lose()
        if _waits(run):  # the takeover before this one died between its activation and its start fence
            _reclaim(run, command)
    else:
        _dispatch(run, command)
    return Decision(
        {
            "epoch": run.run["epoch"],
            "takeover": lost,
            "attempt_id": run.run["attempt_id"],
            "crash_loop": crash_loop,
            "control": run.run["control"],
            "stop_reason": run.run["stop_reason"],
            "deadline_in_us": None if before["deadline_us"] is None else before["deadline_us"] - now,
        },
        runs=[RunChange(before, run.run, run.events)],
        effects=[*run.effects, run_rows.save_thread(thread, owner_run_id=command.run_id)],
    )


def _check_claimable(run: Row, now: int) -> None:
    claimable = {RunStatus.QUEUED, RunStatus.DISPATCHING, RunStatus.RUNNING, RunStatus.LOST}
    status = RunStatus(run["status"])
    due = status is RunStatus.RETRY_WAIT and run["next_attempt_us"] is not None and run["next_attempt_us"] <= now
    if not due and (status not in claimable or taking.is_live(run, now)):
        msg = f"run {run['run_id']} is {status.value} with a lease that is {run['phase']}"
        raise NothingToClaim(msg, run_id=run["run_id"], status=status.value)


def _check_version(command: ClaimRun, run: Row) -> None:
    known = command.versions is None or run["graph_version"] in {None, *command.versions}
    if not known and run["control"] == Control.OPEN:  # a stopping run is only ended: that needs no graph
        msg = f"run {run['run_id']} is of version {run['graph_version']} of {run['graph']}, which this worker has not"
        raise NothingToClaim(msg, run_id=run["run_id"], graph_version=run["graph_version"])


def _dispatch(run: taking.Taken, command: ClaimRun) -> None:
    """Dispatch a run that was never sent to a runtime; its attempt, when it has one, is claimed again."""
    if run.run["status"] == RunStatus.RETRY_WAIT:
        run.move(RunStatus.QUEUED, queued_us=run.now, next_attempt_us=None)
    elif run.run["status"] == RunStatus.DISPATCHING:
        run.move(RunStatus.QUEUED)
    if _waits(run):
        _reclaim(run, command)
    else:
        run.add_attempt(command.attempt_id, _cause(run.attempt))
    run.move(RunStatus.DISPATCHING)


def _cause(last: Row | None) -> AttemptCause:
    if last is None:
        return AttemptCause.INITIAL
    return AttemptCause.RETRY if last["status"] == AttemptStatus.FAILED else AttemptCause.RESUME


def _waits(run: taking.Taken) -> bool:
    """Return whether the run has an attempt that was never sent to a runtime."""
    return run.attempt is not None and run.attempt["ended_us"] is None


def _reclaim(run: taking.Taken, command: ClaimRun) -> None:
    """Claim the run's attempt under the new epoch; one that somebody had claimed is released first."""
    queued = run.attempt
    if queued is None:
        raise InvariantBroken
    if queued["status"] == AttemptStatus.CLAIMED:
        queued = run_rows.move_attempt(queued, AttemptStatus.QUEUED, run.now)
        run.tell("attempt.released")
    run.attempt = run_rows.move_attempt(
        queued,
        AttemptStatus.CLAIMED,
        run.now,
        epoch=run.run["epoch"],
        worker_id=command.worker_id,
        claimed_us=run.now,
    )
    run.effects.append(run_rows.save_attempt(run.attempt))
    run.tell("attempt.claimed", cause=queued["cause"], epoch=run.run["epoch"])


SPEC = ColdCommand(
    name="claim_run",
    dto=ClaimRun,
    guard=CLAIM,
    decide=decide,
    statements=(
        taking.OPEN_RUNS,
        run_rows.READ_ATTEMPT,
        taking.READ_PROGRESS,
        run_rows.SAVE_RUN,
        run_rows.MARK_TRIES_UNKNOWN,
        run_rows.INSERT_ATTEMPT,
        run_rows.SAVE_ATTEMPT,
        run_rows.SAVE_THREAD,
    ),
    locks_thread=True,
)
