"""open_domain: an attempt is about to use something outside the database that it could go on writing to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import domain_rows, run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Decision, LeaseCommand, Locked, RunChange
from runtime_persist.errors import IllegalTransition, InvariantBroken
from runtime_persist.model.guards import LEASE_ACTIVE_OPEN

if TYPE_CHECKING:
    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDomain(LeaseCommand):
    """Open an execution domain, before it is used. From here the lease is not released until it is revoked.

    Attributes:
        domain_id: its id.
        kind: names the revoker (``process``, ``workspace`` …).
        handle: JSON object: how the revoker finds it.

    Refused: no active lease, run stopping; a domain of that id (IllegalTransition).

    """

    domain_id: str
    kind: str
    handle: str


def decide(command: OpenDomain, locked: Locked) -> Plan[Decision]:
    """Return the domain as open."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    if (yield from domain_rows.find(before, command.domain_id)) is not None:
        msg = f"run {command.run_id} has an execution domain {command.domain_id!r} already"
        raise IllegalTransition(msg, run_id=command.run_id, domain_id=command.domain_id)
    run = taking.taken(before, None, locked.now_us)
    domain_rows.add(run, command.domain_id, command.kind, command.handle)
    return Decision(
        {"domain_id": command.domain_id},
        runs=[RunChange(before, run.run, run.events)],
        effects=run.effects,
    )


SPEC = ColdCommand(
    name="open_domain",
    dto=OpenDomain,
    guard=LEASE_ACTIVE_OPEN,
    decide=decide,
    statements=(domain_rows.READ_DOMAIN, run_rows.SAVE_RUN, domain_rows.INSERT_DOMAIN),
)
