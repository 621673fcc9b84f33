"""fail_attempt: an attempt failed, and that is proved. Its run waits for the next one, or has failed for good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import domain_rows, failing, rolling_back, run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Decision, Locked, RunChange, ThreadCommand
from runtime_persist.errors import IllegalTransition, InvariantBroken
from runtime_persist.model.guards import LEASE_ACTIVE

if TYPE_CHECKING:
    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class FailAttempt(ThreadCommand):
    """End the current attempt as failed and release the lease. Answer: ``status``, ``next_attempt_us``.

    Attributes:
        error_code: stable code or type of the error.
        error_summary: a few words of it, without what must not be stored.
        repeatable: a further attempt could end differently.
        chance: between 0 and 1: where in the policy's jitter the wait lies.

    The run waits (``retry_wait``) when its policy has attempts left, else it is ``failed``. A run that is being
    stopped, or past its deadline, ends for that reason. Refused: no active lease; an attempt that was never started; an
    execution domain that is not revoked, beside those that end with this command (DomainsOpen).

    """

    run_id: str
    epoch: int
    error_code: str
    error_summary: str
    repeatable: bool = True
    chance: float = 0.5
    ends_domains: tuple[str, ...] = ()


def decide(command: FailAttempt, locked: Locked) -> Plan[Decision]:
    """Return the run waiting for its next attempt, or final."""
    before, thread = locked.run, locked.thread
    if before is None or thread is None:
        raise InvariantBroken
    attempt = yield from run_rows.current_attempt(before)
    if not taking.past_start_fence(attempt):
        msg = f"run {command.run_id} has no started attempt that could have failed"
        raise IllegalTransition(msg, run_id=command.run_id, status=before["status"])
    run = taking.taken(before, attempt, locked.now_us)
    yield from domain_rows.end_own(run, command.ends_domains, command.actor)
    said = {"error_code": command.error_code, "error_summary": command.error_summary}
    yield from failing.fail(run, thread, said, repeatable=command.repeatable, chance=command.chance)
    return Decision(
        {"status": run.run["status"], "next_attempt_us": run.run["next_attempt_us"]},
        runs=[RunChange(before, run.run, run.events)],
        effects=run.effects,
    )


SPEC = ColdCommand(
    name="fail_attempt",
    dto=FailAttempt,
    guard=LEASE_ACTIVE,
    decide=decide,
    statements=(
        run_rows.READ_ATTEMPT,
        domain_rows.READ_DOMAIN,
        *rolling_back.STATEMENTS,
        run_rows.SAVE_RUN,
        domain_rows.SAVE_DOMAIN,
        run_rows.SAVE_ATTEMPT,
        run_rows.SAVE_THREAD,
    ),
    locks_thread=True,
)
