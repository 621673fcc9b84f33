"""move_to_front: a queued run comes next ("run now"); one that waits for its retry is queued. Slots still count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Command, Decision, Locked, RunChange
from runtime_persist.errors import IllegalTransition, InvariantBroken
from runtime_persist.model.guards import CONTROL
from runtime_persist.model.states import RunStatus
from runtime_persist.plan import done

if TYPE_CHECKING:
    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveToFront(Command):
    """Give a run the first place of the queue. Answer: ``status``. Refused: it is neither queued nor due for a retry.

    Of several such runs the one that was moved last comes first. An older open run of its thread still comes before it.
    """

    run_id: str


def decide(command: MoveToFront, locked: Locked) -> Plan[Decision]:
    """Return the run queued, in front of all that were not moved."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    run = taking.taken(before, None, locked.now_us)
    first = -locked.now_us  # places are times: no run was ever queued before 1970
    if before["status"] == RunStatus.RETRY_WAIT:
        run.move(RunStatus.QUEUED, queued_us=first, next_attempt_us=None)
    elif before["status"] == RunStatus.QUEUED:
        run.run["queued_us"] = first
    else:
        msg = f"run {command.run_id} is {before['status']}; only one that is queued or waits for a retry can be moved"
        raise IllegalTransition(msg, run_id=command.run_id, status=before["status"])
    run.tell("run.moved_to_front")
    return done(Decision({"status": run.run["status"]}, runs=[RunChange(before, run.run, run.events)]))


SPEC = ColdCommand(
    name="move_to_front",
    dto=MoveToFront,
    guard=CONTROL,
    decide=decide,
    statements=(run_rows.SAVE_RUN,),
)
