"""release_claim: a worker gives a claim back before it started anything; the same attempt waits for the next claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import domain_rows, run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Decision, LeaseCommand, Locked, RunChange
from runtime_persist.errors import IllegalTransition, InvariantBroken
from runtime_persist.model.guards import LEASE_HELD
from runtime_persist.model.states import AttemptStatus, Control, LeasePhase, RunStatus

if TYPE_CHECKING:
    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseClaim(LeaseCommand):
    """Release the lease of a run whose attempt was not started. Answer: ``status``.

    The run keeps its place in the queue, and nothing is counted: neither a retry nor a takeover. A run that was lost
    before the claim is lost again, one that is being stopped ends (one that is rolled back is ended by the next claim,
    which has its thread). Refused: no lease; the attempt is past its start fence (IllegalTransition): then only
    evidence or a takeover says what became of it; an execution domain is not revoked, unless the run is lost again
    with it (DomainsOpen).
    """


def decide(command: ReleaseClaim, locked: Locked) -> Plan[Decision]:
    """Return the run as it was before the claim, or ended when it is being stopped."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    attempt = yield from run_rows.current_attempt(before)
    if taking.past_start_fence(attempt):
        msg = f"attempt {before['attempt_id']} of run {command.run_id} may have started; end or yield it instead"
        raise IllegalTransition(msg, run_id=command.run_id, status=before["status"])
    run = taking.taken(before, attempt, locked.now_us)
    lost_again = before["status"] == RunStatus.LOST and before["phase"] == LeasePhase.RECOVERING
    if before["control"] == Control.STOPPING or not lost_again:
        domain_rows.check_revoked(before, "be given back")
    if before["control"] == Control.STOPPING and not before["rolls_back"]:
        run.stop_unstarted()
    else:
        _give_back(run)
    return Decision(
        {"status": run.run["status"]},
        runs=[RunChange(before, run.run, run.events)],
        effects=run.effects,
    )


def _give_back(run: taking.Taken) -> None:
    if run.attempt is not None and run.attempt["status"] == AttemptStatus.CLAIMED:
        run.attempt = run_rows.move_attempt(run.attempt, AttemptStatus.QUEUED, run.now)
        run.effects.append(run_rows.save_attempt(run.attempt))
        run.tell("attempt.released")
    run.run |= {"phase": LeasePhase.RELEASED.value, "expires_us": 0}
    run.tell("lease.released", epoch=run.run["epoch"])
    if run.run["status"] == RunStatus.LOST:
        run.run["takeovers"] -= 1  # the claim had counted one that did not come to anything
    else:
        run.move(RunStatus.QUEUED)


SPEC = ColdCommand(
    name="release_claim",
    dto=ReleaseClaim,
    guard=LEASE_HELD,
    decide=decide,
    statements=(run_rows.READ_ATTEMPT, run_rows.SAVE_RUN, run_rows.SAVE_ATTEMPT),
)
