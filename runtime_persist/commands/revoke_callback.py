"""revoke_callback: the token that may report about an attempt is good for nothing any more."""

from __future__ import annotations

from dataclasses import dataclass

from runtime_persist.commands.parts import run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Command, Decision, Locked, RunChange
from runtime_persist.errors import IllegalTransition, InvariantBroken
from runtime_persist.model.guards import CONTROL
from runtime_persist.plan import Plan, one_or_none


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeCallback(Command):
    """Revoke the callback token of an attempt. Answer: ``revoked`` (False: it had none).

    Nothing else changes: the attempt goes on, its worker tells what becomes of it. Refused: no such attempt of the run
    (IllegalTransition).
    """

    run_id: str
    attempt_id: str


def decide(command: RevokeCallback, locked: Locked) -> Plan[Decision]:
    """Return the attempt without its token's hash."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    attempt = yield from one_or_none(run_rows.READ_ATTEMPT, space=command.space, attempt_id=command.attempt_id)
    if attempt is None or attempt["run_id"] != command.run_id:
        msg = f"run {command.run_id} has no attempt {command.attempt_id}"
        raise IllegalTransition(msg, run_id=command.run_id)
    if attempt["callback_hash"] is None:
        return Decision({"revoked": False})
    run = taking.taken(before, attempt, locked.now_us)
    run.tell("attempt.callback_revoked", attempt_id=command.attempt_id)
    revoked = dict(attempt) | {"callback_hash": None, "callback_expires_us": None}
    return Decision(
        {"revoked": True},
        runs=[RunChange(before, run.run, run.events)],
        effects=[run_rows.save_attempt(revoked)],
    )


SPEC = ColdCommand(
    name="revoke_callback",
    dto=RevokeCallback,
    guard=CONTROL,
    decide=decide,
    statements=(run_rows.READ_ATTEMPT, run_rows.SAVE_RUN, run_rows.SAVE_ATTEMPT),
)
