"""record_revocation: the holder of the lease proved that an execution domain can no longer write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import domain_rows, run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Decision, LeaseCommand, Locked, RunChange
from runtime_persist.errors import InvariantBroken
from runtime_persist.model.domains import DomainState, Proof
from runtime_persist.model.guards import LEASE_HELD

if TYPE_CHECKING:
    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRevocation(LeaseCommand):
    """Store the receipt of a domain's revocation. Answer: ``domains_open`` of the run.

    Attributes:
        domain_id: the domain.
        how: the kind of proof.
        saw: what was seen, in a few words.

    A domain that is revoked keeps its first receipt. Refused: no lease; no such domain (DomainNotFound).

    """

    domain_id: str
    how: Proof
    saw: str


def decide(command: RecordRevocation, locked: Locked) -> Plan[Decision]:
    """Return the domain as revoked."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    domain = yield from domain_rows.get(before, command.domain_id)
    if domain["state"] == DomainState.REVOKED:
        return Decision({"domains_open": before["domains_open"]})
    run = taking.taken(before, None, locked.now_us)
    domain_rows.revoke(run, domain, command.how, command.saw, command.actor)
    return Decision(
        {"domains_open": run.run["domains_open"]},
        runs=[RunChange(before, run.run, run.events)],
        effects=run.effects,
    )


SPEC = ColdCommand(
    name="record_revocation",
    dto=RecordRevocation,
    guard=LEASE_HELD,
    decide=decide,
    statements=(domain_rows.READ_DOMAIN, run_rows.SAVE_RUN, domain_rows.SAVE_DOMAIN),
)
