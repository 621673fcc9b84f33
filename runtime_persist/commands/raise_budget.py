"""raise_budget: a person raises what a run's calls may take; a run that waits because it was spent is queued."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Command, Decision, Locked, RunChange
from runtime_persist.errors import IllegalTransition, InvariantBroken
from runtime_persist.model.budgets import INVOCATION_LIMITS, LIMITS
from runtime_persist.model.guards import CONTROL
from runtime_persist.model.keys import fingerprint
from runtime_persist.model.states import FINAL_RUN, RunStatus
from runtime_persist.plan import done

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class RaiseBudget(Command):
    """Raise limits of a run. Answer: ``status``.

    Attributes:
        run_id: the run.
        limits: the new ones by column; None leaves one as it is.
        question_id: the attempt that asked for more: while the run waits with its question, it is queued (None: the
            run asks nothing of the kind).

    Refused: the run has ended, has no such limit, or has a higher one (IllegalTransition): a limit is never lowered,
    nor made where there is none.
    """

    run_id: str
    limits: Mapping[str, int | None]
    question_id: str | None = None


def decide(command: RaiseBudget, locked: Locked) -> Plan[Decision]:
    """Return the run with its new limits."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    if before["status"] in FINAL_RUN:
        msg = f"run {command.run_id} is {before['status']}; nothing of it starts any more"
        raise IllegalTransition(msg, run_id=command.run_id, status=before["status"])
    run = taking.taken(before, None, locked.now_us)
    raised: dict[str, int] = {}
    for column in (*LIMITS, *INVOCATION_LIMITS):
        kind = column.removesuffix("_limit")
        limit, known = command.limits[column], before[column]
        if limit is None:
            continue
        if known is None or limit < known:
            msg = f"the limit of {kind} of run {command.run_id} is {known}: a limit is only raised, {limit} does not"
            raise IllegalTransition(msg, run_id=command.run_id, budget=kind, limit=known)
        run.run[column] = raised[kind] = limit
    run.tell("run.budget_raised", **raised)
    if before["status"] == RunStatus.WAITING_APPROVAL and command.question_id == before["attempt_id"]:
        run.move(RunStatus.QUEUED, question=None, queued_us=locked.now_us)
    return done(Decision({"status": run.run["status"]}, runs=[RunChange(before, run.run, run.events)]))


SPEC = ColdCommand(
    name="raise_budget",
    dto=RaiseBudget,
    guard=CONTROL,
    decide=decide,
    statements=(run_rows.SAVE_RUN,),
    # Delivered again it says the same, whatever the run asks by then.
    fingerprint=lambda command: fingerprint(command.run_id.encode(), repr(sorted(command.limits.items())).encode()),
)
