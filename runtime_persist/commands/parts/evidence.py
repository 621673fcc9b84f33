"""Evidence: what reports of a runtime change. A report counts only when its sequence is greater than the last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime_persist.commands.parts import run_rows
from runtime_persist.errors import IllegalTransition, ReportIgnored
from runtime_persist.model.evidence import Observed, SyncState
from runtime_persist.model.states import AttemptStatus, RunStatus

if TYPE_CHECKING:
    from runtime_persist.commands.parts.taking import Taken
    from runtime_persist.plan import Row


def check_sequence(attempt: Row, sequence: int | None) -> None:
    """Raise ReportIgnored for a report that is a duplicate, was overtaken, or has no sequence."""
    name = f"attempt {attempt['attempt_id']}"
    if sequence is None:
        msg = f"a report about {name} has no sequence, so nothing says that it is not an old one; nothing was changed"
        raise ReportIgnored(msg, attempt_id=attempt["attempt_id"], reason="missing_sequence")
    last = attempt["last_event_seq"]
    if sequence <= last:
        reason = "duplicate" if sequence == last else "reordered"
        msg = f"report {sequence} about {name} is behind report {last}, which counts; nothing was changed"
        raise ReportIgnored(msg, attempt_id=attempt["attempt_id"], reason=reason, last_sequence=last)


def see(run: Taken, observed: Observed, sequence: int) -> None:
    """Note what was seen of the run's current attempt; the attempt is saved, and moved on when it is seen running.

    An attempt that was lost stays lost (that is final); what is seen of it is noted all the same.

    Raises:
        IllegalTransition: the attempt is not past its start fence.

    """
    attempt = run.attempt
    if attempt is None or attempt["start_requested_us"] is None:
        msg = f"the attempt of run {run.run['run_id']} was not started: nothing can have been seen of it"
        raise IllegalTransition(msg, run_id=run.run["run_id"])
    noted = {
        "observed_state": observed.value,
        "observed_us": run.now,
        "heartbeat_us": run.now,
        "last_event_seq": sequence,
        "sync_state": SyncState.IN_SYNC.value,
    }
    before, status = Observed(attempt["observed_state"]), AttemptStatus(attempt["status"])
    if observed is Observed.ACCEPTED:
        if before is not Observed.UNCONFIRMED:
            noted["observed_state"] = before.value  # it is known to do more than that
        elif status is AttemptStatus.STARTING:
            run.run["observed_state"] = observed.value  # shown as waiting for its runtime
            run.tell("attempt.accepted")
    if observed is not Observed.ACCEPTED and status is AttemptStatus.STARTING:
        run.attempt = run_rows.move_attempt(attempt, AttemptStatus.RUNNING, run.now, **noted)
        run.run["observed_state"] = None
        run.tell("attempt.running")
    else:
        run.attempt = dict(attempt) | noted
    run.effects.append(run_rows.save_attempt(run.attempt))
    runs = run.attempt["status"] == AttemptStatus.RUNNING  # a lost attempt is final, its run may have a new one
    if runs and observed is not Observed.ACCEPTED and run.run["status"] in {RunStatus.DISPATCHING, RunStatus.LOST}:
        run.move(RunStatus.RUNNING)
