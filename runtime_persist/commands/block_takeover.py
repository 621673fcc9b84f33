"""block_takeover: who claimed a run could not prove its domains revoked. People are told, and nothing starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import domain_rows, run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Decision, LeaseCommand, Locked, RunChange
from runtime_persist.errors import IllegalTransition, InvariantBroken
from runtime_persist.model.guards import LEASE_HELD
from runtime_persist.model.lease import BLOCKED
from runtime_persist.model.states import LeasePhase, RunStatus

if TYPE_CHECKING:
    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTakeover(LeaseCommand):
    """State that the run's open domains could not be revoked: ``run.takeover_blocked``, once an epoch.

    The lease stays ``recovering`` until it runs out, so that nobody claims the run again at once; the run's deadline
    goes on, and the claimer's slot is free again. A takeover that was counted by the claim is not counted.

    Answer: ``domains`` (ids of some that are open), ``more`` (how many besides).

    Refused: no lease; it is active, or no domain is open (IllegalTransition): then the run can go on.

    """


def decide(command: BlockTakeover, locked: Locked) -> Plan[Decision]:
    """Return the run as blocked."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    found = yield from domain_rows.still_open(before)
    if before["phase"] != LeasePhase.RECOVERING or not found:
        msg = f"run {command.run_id} is not blocked: its lease is {before['phase']}, open domains: {len(found)}"
        raise IllegalTransition(msg, run_id=command.run_id)
    about = domain_rows.named(found)
    if before["revocation"] == BLOCKED:
        return Decision(about)
    run = taking.taken(before, None, locked.now_us)
    run.run |= {"revocation": BLOCKED, "instance_id": None}  # nothing is executed: it holds no slot of the claimer
    if before["status"] == RunStatus.LOST and before["takeovers"]:
        run.run["takeovers"] -= 1  # the claim had counted one that did not come to anything
    run.tell("run.takeover_blocked", epoch=before["epoch"], **about)
    return Decision(about, runs=[RunChange(before, run.run, run.events)])


SPEC = ColdCommand(
    name="block_takeover",
    dto=BlockTakeover,
    guard=LEASE_HELD,
    decide=decide,
    statements=(domain_rows.READ_OPEN_DOMAINS, run_rows.SAVE_RUN),
)
