"""report_attempt_event: the runtime proves that an attempt runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Decision, LeaseCommand, Locked, RunChange
from runtime_persist.errors import IllegalTransition, InvariantBroken
from runtime_persist.model.guards import LEASE_ACTIVE
from runtime_persist.model.states import AttemptStatus, RunStatus

if TYPE_CHECKING:
    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportAttemptEvent(LeaseCommand):
    """State that the attempt was seen running. Refused: no active lease; the attempt is not starting."""

    attempt_id: str


def decide(command: ReportAttemptEvent, locked: Locked) -> Plan[Decision]:
    """Return attempt and run as running."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    attempt = yield from run_rows.current_attempt(before)
    if attempt is None or attempt["attempt_id"] != command.attempt_id:
        msg = f"attempt {command.attempt_id} is not the current one of run {command.run_id}"
        raise IllegalTransition(msg, run_id=command.run_id)
    run = taking.taken(before, attempt, locked.now_us)
    seen = run_rows.move_attempt(
        attempt,
        AttemptStatus.RUNNING,
        locked.now_us,
        observed_state="running",
        observed_us=locked.now_us,
    )
    run.tell("attempt.running")
    run.move(RunStatus.RUNNING)
    return Decision({}, runs=[RunChange(before, run.run, run.events)], effects=[run_rows.save_attempt(seen)])


SPEC = ColdCommand(
    name="report_attempt_event",
    dto=ReportAttemptEvent,
    guard=LEASE_ACTIVE,
    decide=decide,
    statements=(run_rows.READ_ATTEMPT, run_rows.SAVE_RUN, run_rows.SAVE_ATTEMPT),
)
