"""yield_attempt: an attempt stops by itself at a committed checkpoint; nothing of it is in flight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import content, domain_rows, run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Decision, LeaseCommand, Locked, RunChange
from runtime_persist.errors import InvariantBroken
from runtime_persist.model.guards import LEASE_ACTIVE_OPEN
from runtime_persist.model.states import AttemptStatus, LeasePhase, RunStatus

if TYPE_CHECKING:
    from runtime_persist.model.payload import Blob
    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class YieldAttempt(LeaseCommand):
    """Release the lease and leave the run waiting for a person, or queued again after a drain.

    Attributes:
        reason: ``interrupt``, ``ask``, ``budget`` (the run waits) or ``drain`` (the run is queued where it was: it has
            waited for its turn before).
        question: encoded payload reference of why it waits.

    Answer: ``status``. Refused: no active lease; stopping (the run is then to be ended instead); an execution domain
    that is not revoked, beside those that end with this command (DomainsOpen).

    """

    reason: str
    question: bytes | None = None
    owner: str = ""
    blobs: tuple[Blob, ...] = ()
    ends_domains: tuple[str, ...] = ()


def decide(command: YieldAttempt, locked: Locked) -> Plan[Decision]:
    """Return the run waiting or queued, its attempt yielded, its lease released."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    attempt = yield from run_rows.current_attempt(before)
    run = taking.taken(before, attempt, locked.now_us)
    yield from domain_rows.end_own(run, command.ends_domains, command.actor)
    if attempt is not None:
        yielded = run_rows.move_attempt(
            attempt,
            AttemptStatus.YIELDED,
            locked.now_us,
            termination_reason=command.reason,
        )
        run.effects.append(run_rows.save_attempt(yielded))
        run.tell("attempt.yielded", reason=command.reason)
    waits = command.reason != "drain"
    changes = {
        "phase": LeasePhase.RELEASED.value,
        "expires_us": 0,
        "question": command.question,
        "answer": None,
    }
    if waits:
        run.move(RunStatus.WAITING_APPROVAL, **changes)
    else:
        run.move(RunStatus.QUEUED, **changes)
    return Decision(
        {"status": run.run["status"]},
        runs=[RunChange(before, run.run, run.events)],
        effects=[*run.effects, *content.store(command.space, command.owner, command.blobs)],
    )


SPEC = ColdCommand(
    name="yield_attempt",
    dto=YieldAttempt,
    guard=LEASE_ACTIVE_OPEN,
    decide=decide,
    statements=(
        run_rows.READ_ATTEMPT,
        domain_rows.READ_DOMAIN,
        run_rows.SAVE_RUN,
        domain_rows.SAVE_DOMAIN,
        run_rows.SAVE_ATTEMPT,
        content.STORE_BLOB,
    ),
)
