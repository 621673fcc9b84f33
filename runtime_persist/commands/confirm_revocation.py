"""confirm_revocation: without the lease, a person says, or the opener proves, that a domain can no longer write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import domain_rows, run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Command, Decision, Locked, RunChange
from runtime_persist.errors import IllegalTransition, InvariantBroken
from runtime_persist.model.domains import DomainState, Proof
from runtime_persist.model.guards import CONTROL
from runtime_persist.model.lease import BLOCKED
from runtime_persist.model.states import LeasePhase

if TYPE_CHECKING:
    from runtime_persist.plan import Plan, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmRevocation(Command):
    """Store the receipt of a domain's revocation without a lease. Answer: ``status``, ``domains_open`` of the run.

    Attributes:
        run_id: the run.
        domain_id: its domain.
        saw: what was seen, or who says why.
        how: the kind of proof (``stated``: a person's word).

    A domain that is revoked keeps its first receipt. When it was the last open one of a run whose takeover was
    blocked, the claim is given back: whoever comes next goes on at once.

    Refused: no such domain (DomainNotFound); the domain is of the live lease, whose holder says what becomes of it
    (IllegalTransition).

    """

    run_id: str
    domain_id: str
    saw: str
    how: Proof = Proof.STATED


def decide(command: ConfirmRevocation, locked: Locked) -> Plan[Decision]:
    """Return the domain as revoked."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    domain = yield from domain_rows.get(before, command.domain_id)
    if domain["state"] == DomainState.REVOKED:
        return Decision({"status": before["status"], "domains_open": before["domains_open"]})
    _check_left(before, domain, locked.now_us)
    run = taking.taken(before, None, locked.now_us)
    domain_rows.revoke(run, domain, command.how, command.saw, command.actor)
    blocked = before["phase"] == LeasePhase.RECOVERING and before["revocation"] == BLOCKED
    if blocked and not run.run["domains_open"]:  # its holder does nothing any more: the lease only runs out
        run.run |= {"phase": LeasePhase.RELEASED.value, "expires_us": 0, "revocation": None}
        run.tell("lease.released", epoch=run.run["epoch"])
    return Decision(
        {"status": run.run["status"], "domains_open": run.run["domains_open"]},
        runs=[RunChange(before, run.run, run.events)],
        effects=run.effects,
    )


def _check_left(run: Row, domain: Row, now: int) -> None:
    if domain["epoch"] == run["epoch"] and taking.is_live(run, now):
        msg = (
            f"domain {domain['domain_id']} is of the live lease of run {run['run_id']} (epoch {run['epoch']}): "
            "its holder closes it; cancel the run, or wait until the lease has run out"
        )
        raise IllegalTransition(msg, run_id=run["run_id"], domain_id=domain["domain_id"])


SPEC = ColdCommand(
    name="confirm_revocation",
    dto=ConfirmRevocation,
    guard=CONTROL,
    decide=decide,
    statements=(domain_rows.READ_DOMAIN, run_rows.SAVE_RUN, domain_rows.SAVE_DOMAIN),
)
