"""mark_lost: the lease of a started attempt ran out, and nothing proves what became of it. It is never queued again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Command, Decision, Locked, RunChange
from runtime_persist.errors import IllegalTransition, InvariantBroken
from runtime_persist.model.guards import CONTROL
from runtime_persist.model.states import FINAL_RUN, RunStatus
from runtime_persist.recovery import runs as recovery

if TYPE_CHECKING:
    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkLost(Command):
    """State that a run is lost. Answer: ``status``; a run that is lost already, or final, stays as it is.

    A lost run keeps its thread and its capacity until evidence comes back or somebody takes it over. Refused
    (IllegalTransition): its lease is live; its attempt is not past the start fence (the next claim takes it as it is).
    """

    run_id: str


def decide(command: MarkLost, locked: Locked) -> Plan[Decision]:
    """Return the run lost, and its attempt."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    status = RunStatus(before["status"])
    if status in FINAL_RUN or status is RunStatus.LOST:
        return Decision({"status": status.value})
    attempt = yield from run_rows.current_attempt(before)
    if taking.is_live(before, locked.now_us):
        msg = f"run {command.run_id} has a live lease (epoch {before['epoch']}): its holder says what becomes of it"
        raise IllegalTransition(msg, run_id=command.run_id, status=status.value)
    if not recovery.is_takeover(status, past_start_fence=taking.past_start_fence(attempt)):
        msg = f"run {command.run_id} is {status.value} and was not started under its lease: there is nothing to lose"
        raise IllegalTransition(msg, run_id=command.run_id, status=status.value)
    run = taking.taken(before, attempt, locked.now_us)
    run.lose()
    return Decision({"status": run.run["status"]}, runs=[RunChange(before, run.run, run.events)], effects=run.effects)


SPEC = ColdCommand(
    name="mark_lost",
    dto=MarkLost,
    guard=CONTROL,
    decide=decide,
    statements=(run_rows.READ_ATTEMPT, run_rows.SAVE_RUN, run_rows.SAVE_ATTEMPT),
)
