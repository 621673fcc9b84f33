"""activate_lease: the second half of a takeover. The older epochs are proved unable to write; the run may go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import domain_rows, run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Decision, LeaseCommand, Locked, RunChange
from runtime_persist.errors import IllegalTransition, InvariantBroken
from runtime_persist.model.guards import LEASE_HELD
from runtime_persist.model.states import AttemptCause, LeasePhase, RunStatus

if TYPE_CHECKING:
    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivateLease(LeaseCommand):
    """Make a recovering lease active. Answer: ``attempt_id`` of the attempt that may now be started.

    Attributes:
        attempt_id: id for the takeover's attempt.

    The run's row says why it may (``revocation``): ``empty-domain-set`` when no execution domain was ever opened.

    Refused: lost, released, expired; already active (IllegalTransition); a domain of an older epoch is not revoked
    (DomainsOpen).

    """

    attempt_id: str


def decide(command: ActivateLease, locked: Locked) -> Plan[Decision]:
    """Return the run with an active lease and, after a takeover, a new attempt."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    if before["phase"] != LeasePhase.RECOVERING:
        msg = f"the lease of run {command.run_id} is {before['phase']} already"
        raise IllegalTransition(msg, run_id=command.run_id)
    attempt = yield from run_rows.current_attempt(before)
    run = taking.taken(before, attempt, locked.now_us)
    run.activate(domain_rows.revocation(before))
    if before["status"] == RunStatus.LOST and (attempt is None or attempt["ended_us"] is not None):
        run.add_attempt(command.attempt_id, AttemptCause.TAKEOVER)
    return Decision(
        {"attempt_id": run.run["attempt_id"]},
        runs=[RunChange(before, run.run, run.events)],
        effects=run.effects,
    )


SPEC = ColdCommand(
    name="activate_lease",
    dto=ActivateLease,
    guard=LEASE_HELD,
    decide=decide,
    statements=(run_rows.READ_ATTEMPT, run_rows.SAVE_RUN, run_rows.INSERT_ATTEMPT),
)
