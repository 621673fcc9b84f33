"""request_stop: a run shall stop. What was not started ends at once; a running run stops taking new work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Command, Decision, Locked, RunChange
from runtime_persist.errors import InvariantBroken
from runtime_persist.model.guards import CONTROL
from runtime_persist.model.states import FINAL_RUN, Control, RunStatus

if TYPE_CHECKING:
    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStop(Command):
    """Stop a run; the first reason counts. Answer: ``status``, ``control``. A final run stays as it is.

    What was not started ends at once, unless an execution domain of it is open: its end waits for the proof.
    """

    run_id: str
    reason: str = "cancel"


def decide(command: RequestStop, locked: Locked) -> Plan[Decision]:
    """Return the run ended (by its deadline: timed out, else cancelled), or stopping."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    answer = {"status": before["status"], "control": before["control"]}
    status = RunStatus(before["status"])
    if status in FINAL_RUN or before["control"] == Control.STOPPING:
        return Decision(answer)
    attempt = yield from run_rows.current_attempt(before)
    run = taking.taken(before, attempt, locked.now_us)
    run.ask_to_stop(command.reason)
    answer = {"status": run.run["status"], "control": run.run["control"]}
    return Decision(answer, runs=[RunChange(before, run.run, run.events)], effects=run.effects)


SPEC = ColdCommand(
    name="request_stop",
    dto=RequestStop,
    guard=CONTROL,
    decide=decide,
    statements=(run_rows.READ_ATTEMPT, run_rows.SAVE_RUN, run_rows.SAVE_ATTEMPT),
)
