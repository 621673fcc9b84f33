"""How a worker comes to a run, whether it named the run or was given the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime_persist.commands.parts import admission, domain_rows, run_rows, taking
from runtime_persist.commands.parts.spec import Decision, RunChange
from runtime_persist.errors import CapacityUnknown, InvariantBroken
from runtime_persist.model.states import AttemptCause, AttemptStatus, Control, RunStatus
from runtime_persist.recovery import runs as recovery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime_persist.model.capacity import Report
    from runtime_persist.plan import Call, Plan, Query, Row

STATEMENTS: tuple[Query, ...] = (
    run_rows.READ_ATTEMPT,
    taking.READ_PROGRESS,
    run_rows.SAVE_RUN,
    run_rows.MARK_TRIES_UNKNOWN,
    run_rows.INSERT_ATTEMPT,
    run_rows.SAVE_ATTEMPT,
    run_rows.SAVE_THREAD,
)
"""What :func:`claimed` may run."""


def about_to_take(before: Row, now: int) -> Plan[taking.Taken]:
    """Return a run and its attempt, stopped if its deadline has passed: then it is claimed only to be ended."""
    attempt = yield from run_rows.current_attempt(before)
    run = taking.taken(before, attempt, now)
    run.stop_if_overdue()
    return run


def report_of(command: Any, instance: Row | None, run: taking.Taken) -> Report | None:
    """Return the report that a claim counts on (None: a run that is only to be ended needs no slot).

    Raises:
        CapacityUnknown: the instance has none that counts.

    """
    if run.run["control"] == Control.STOPPING:
        return None
    if command.instance_id is None:
        msg = f"a claim of run {run.run['run_id']} names no instance whose slot it takes; only its end needs none"
        raise CapacityUnknown(msg, run_id=run.run["run_id"])
    return admission.check_report(command.instance_id, command.worker_id, instance, run.now)


def claimed(
    command: Any, before: Row, thread: Row, run: taking.Taken, effects: Sequence[Call] = (), *, starts: bool = False
) -> Plan[Decision]:
    """Return the run under its next epoch.

    A run before its start fence keeps its attempt; one past it goes to ``lost`` with its attempt, and a new attempt
    is made when the lease is activated. ``starts``: whoever claims executes it at once, so the lease is activated and
    the start fence written along, unless something has to be done before (a takeover, a stop).
    """
    lost = recovery.is_takeover(before["status"], past_start_fence=taking.past_start_fence(run.attempt))
    crash_loop = False
    if lost:
        crash_loop = run.count_takeover(progress=(yield from taking.progressed(before)))
    run.lease(command.worker_id, command.ttl_us, command.instance_id)
    if lost:
        run.lose()
        if _waits(run):  # the takeover before this one died between its activation and its start fence
            _reclaim(run)
    else:
        _dispatch(run, command.attempt_id)
    started = starts and not lost and run.run["control"] == Control.OPEN and not before["domains_open"]
    if started:
        run.activate(domain_rows.revocation(before))
        run.start()
    return Decision(
        {
            "epoch": run.run["epoch"],
            "takeover": lost,
            "started": started,
            "attempt_id": run.run["attempt_id"],
            "crash_loop": crash_loop,
            "domains_open": before["domains_open"],
            "control": run.run["control"],
            "stop_reason": run.run["stop_reason"],
            "deadline_in_us": None if before["deadline_us"] is None else before["deadline_us"] - run.now,
        },
        runs=[RunChange(before, run.run, run.events)],
        effects=[*run.effects, run_rows.save_thread(thread, owner_run_id=before["run_id"]), *effects],
    )


def _dispatch(run: taking.Taken, attempt_id: str) -> None:
    """Dispatch a run that was never sent to a runtime; its attempt, when it has one, is claimed again."""
    if run.run["status"] == RunStatus.RETRY_WAIT:
        run.move(RunStatus.QUEUED, queued_us=run.now, next_attempt_us=None)
    elif run.run["status"] == RunStatus.DISPATCHING:
        run.move(RunStatus.QUEUED)
    if _waits(run):
        _reclaim(run)
    else:
        run.add_attempt(attempt_id, _cause(run.attempt))
    run.move(RunStatus.DISPATCHING)


def _cause(last: Row | None) -> AttemptCause:
    if last is None:
        return AttemptCause.INITIAL
    return AttemptCause.RETRY if last["status"] == AttemptStatus.FAILED else AttemptCause.RESUME


def _waits(run: taking.Taken) -> bool:
    """Return whether the run has an attempt that was never sent to a runtime."""
    return run.attempt is not None and run.attempt["ended_us"] is None


def _reclaim(run: taking.Taken) -> None:
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
        worker_id=run.run["worker_id"],
        instance_id=run.run["instance_id"],
        claimed_us=run.now,
    )
    run.effects.append(run_rows.save_attempt(run.attempt))
    run.tell("attempt.claimed", cause=queued["cause"], epoch=run.run["epoch"])
