"""finalize_run: the run has its final result, and its lease is released. Final states never change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime_persist.commands.parts import content, domain_rows, rolling_back, run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Decision, Locked, RunChange, ThreadCommand
from runtime_persist.errors import InvariantBroken
from runtime_persist.model.guards import LEASE_HELD
from runtime_persist.model.states import RunStatus

if TYPE_CHECKING:
    from runtime_persist.model.payload import Blob
    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalizeRun(ThreadCommand):
    """End a run; use :meth:`succeeded`, :meth:`failed` or :meth:`cancelled`, never a free status.

    The first stop reason decides, and a deadline that has passed is one: a run stopped by ``cancel`` ends ``cancelled``
    (by ``deadline``: ``timed_out``) even if its code then returned a value, which is kept as result with
    ``observed_state = succeeded``.

    Answer: ``status``. Refused: lost, released, expired; an execution domain that is not revoked, beside those that
    end with this command (DomainsOpen): the final status waits for proof that it stopped.
    """

    run_id: str
    epoch: int
    status: RunStatus
    reason: str
    result: bytes | None = None
    error_code: str | None = None
    error_summary: str | None = None
    owner: str = ""
    blobs: tuple[Blob, ...] = ()
    ends_domains: tuple[str, ...] = ()

    @classmethod
    def succeeded(cls, *, result: bytes, owner: str, blobs: tuple[Blob, ...], **base: Any) -> FinalizeRun:
        """Return the command for a graph that returned; ``result`` is an encoded payload reference."""
        return cls(
            status=RunStatus.SUCCEEDED,
            reason="completed",
            result=result,
            owner=owner,
            blobs=blobs,
            **base,
        )

    @classmethod
    def failed(cls, *, error_code: str, error_summary: str, **base: Any) -> FinalizeRun:
        """Return the command for a graph that raised, or a run that is given up."""
        return cls(
            status=RunStatus.FAILED,
            reason="error",
            error_code=error_code,
            error_summary=error_summary,
            **base,
        )

    @classmethod
    def cancelled(cls, *, reason: str, **base: Any) -> FinalizeRun:
        """Return the command for a caller that went away, or a run that is not wanted any more."""
        return cls(status=RunStatus.CANCELLED, reason=reason, **base)


def decide(command: FinalizeRun, locked: Locked) -> Plan[Decision]:
    """Return the run in its final state."""
    before, thread = locked.run, locked.thread
    if before is None or thread is None:
        raise InvariantBroken
    attempt = yield from run_rows.current_attempt(before)
    run = taking.taken(before, attempt, locked.now_us)
    yield from domain_rows.end_own(run, command.ends_domains, command.actor)
    said = {"result": command.result, "error_code": command.error_code, "error_summary": command.error_summary}
    run.conclude(thread, command.status, command.reason, **said)
    yield from rolling_back.roll_back(run)
    return Decision(
        {"status": run.run["status"]},
        runs=[RunChange(before, run.run, run.events)],
        effects=[
            *run.effects,
            *content.store(command.space, command.owner, command.blobs),
        ],
    )


SPEC = ColdCommand(
    name="finalize_run",
    dto=FinalizeRun,
    guard=LEASE_HELD,
    decide=decide,
    statements=(
        run_rows.READ_ATTEMPT,
        domain_rows.READ_DOMAIN,
        *rolling_back.STATEMENTS,
        run_rows.SAVE_RUN,
        domain_rows.SAVE_DOMAIN,
        run_rows.SAVE_ATTEMPT,
        run_rows.SAVE_THREAD,
        content.STORE_BLOB,
    ),
    locks_thread=True,
)
