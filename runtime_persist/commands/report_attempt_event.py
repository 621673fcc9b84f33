"""report_attempt_event: the holder of the lease tells what its runtime proved about the attempt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import evidence, run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Decision, LeaseCommand, Locked, RunChange
from runtime_persist.errors import IllegalTransition, InvariantBroken
from runtime_persist.model.evidence import Observed
from runtime_persist.model.guards import LEASE_ACTIVE

if TYPE_CHECKING:
    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportAttemptEvent(LeaseCommand):
    """State that the attempt was accepted by its runtime, or seen running. Answer: ``last_sequence``.

    Attributes:
        attempt_id: the run's current attempt.
        sequence: the number of the report, as its runtime counts them; only a greater one than the last counts.
        observed: ``accepted`` or ``running``; how an attempt ended is told by the command that ends it.

    Refused: no active lease; another attempt, or one that was not started (IllegalTransition); a duplicate, one that
    was overtaken or that has no sequence (ReportIgnored).

    """

    attempt_id: str
    sequence: int | None = 1
    observed: Observed = Observed.RUNNING


def decide(command: ReportAttemptEvent, locked: Locked) -> Plan[Decision]:
    """Return what the report proves: an attempt that is seen running makes its run running."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    attempt = yield from run_rows.current_attempt(before)
    if attempt is None or attempt["attempt_id"] != command.attempt_id:
        msg = f"attempt {command.attempt_id} is not the current one of run {command.run_id}"
        raise IllegalTransition(msg, run_id=command.run_id)
    if command.observed not in {Observed.ACCEPTED, Observed.RUNNING}:
        msg = f"an attempt that {command.observed} is ended by the command that says how, not by a report"
        raise IllegalTransition(msg, run_id=command.run_id)
    evidence.check_sequence(attempt, command.sequence)
    run = taking.taken(before, attempt, locked.now_us)
    evidence.see(run, command.observed, command.sequence or 0)
    return Decision(
        {"last_sequence": command.sequence},
        runs=[RunChange(before, run.run, run.events)],
        effects=run.effects,
    )


SPEC = ColdCommand(
    name="report_attempt_event",
    dto=ReportAttemptEvent,
    guard=LEASE_ACTIVE,
    decide=decide,
    statements=(run_rows.READ_ATTEMPT, run_rows.SAVE_RUN, run_rows.SAVE_ATTEMPT),
)
