"""request_start: the start fence. It commits before anything is sent to a runtime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Decision, LeaseCommand, Locked, RunChange
from runtime_persist.errors import IllegalTransition, InvariantBroken
from runtime_persist.model.evidence import IN_PROCESS, Observed, SyncState
from runtime_persist.model.guards import LEASE_ACTIVE_OPEN
from runtime_persist.model.states import AttemptStatus

if TYPE_CHECKING:
    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStart(LeaseCommand):
    """State that the attempt is about to be started. From here time alone never re-queues it.

    Attributes:
        attempt_id: the run's current attempt.
        runtime: name of the runtime that will execute it.
        handle: JSON by which the runtime finds it again (None: nothing to be found).
        callback_hash: keyed hash of the token that may report events without the lease (None: no such token).
        callback_ttl_us: how long that token is good for.

    Refused: no active lease, run stopping; the attempt is not claimed (IllegalTransition).

    """

    attempt_id: str
    runtime: str = IN_PROCESS
    handle: str | None = None
    callback_hash: bytes | None = None
    callback_ttl_us: int = 0


def decide(command: RequestStart, locked: Locked) -> Plan[Decision]:
    """Return the attempt as starting."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    attempt = yield from run_rows.current_attempt(before)
    if attempt is None or attempt["attempt_id"] != command.attempt_id:
        msg = f"attempt {command.attempt_id} is not the current one of run {command.run_id}"
        raise IllegalTransition(msg, run_id=command.run_id)
    run = taking.taken(before, attempt, locked.now_us)
    expires_us = None if command.callback_hash is None else locked.now_us + command.callback_ttl_us
    started = run_rows.move_attempt(
        attempt,
        AttemptStatus.STARTING,
        locked.now_us,
        start_requested_us=locked.now_us,
        runtime=command.runtime,
        handle=command.handle,
        sync_state=SyncState.PENDING.value,
        callback_hash=command.callback_hash,
        callback_expires_us=expires_us,
    )
    run.run["observed_state"] = Observed.UNCONFIRMED.value  # nobody takes it for queued when its lease runs out
    run.tell("attempt.start_requested")
    return Decision(
        {},
        runs=[RunChange(before, run.run, run.events)],
        effects=[run_rows.save_attempt(started)],
    )


SPEC = ColdCommand(
    name="request_start",
    dto=RequestStart,
    guard=LEASE_ACTIVE_OPEN,
    decide=decide,
    statements=(run_rows.READ_ATTEMPT, run_rows.SAVE_RUN, run_rows.SAVE_ATTEMPT),
)
