"""Which events there are and what each may say: a table. What is not in it is never written.

An event carries facts and references: ids, numbers, states, names. Never an input, an output, a prompt, an answer, an
error's text or anything secret; what somebody needs of those is read under the run's id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from runtime_persist.errors import InvariantBroken
from runtime_persist.model.budgets import KINDS
from runtime_persist.model.states import FINAL_RUN, AttemptStatus, RunStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

_NOTHING: Final[tuple[str, ...]] = ()

_RUNS: Final = {f"run.{status.value}": _NOTHING for status in RunStatus} | {
    "run.created": ("graph", "retry_of_run_id", "fork_of_run_id", "checkpoint_id"),
    "run.moved_to_front": _NOTHING,
    "run.answered": ("interrupt_ids",),
    "run.stop_requested": ("reason",),
    "run.reconciled": ("observed",),
    "run.rollback_requested": _NOTHING,
    "run.rolled_back": _NOTHING,
    "run.rollback_refused": ("reason",),
    "run.budget_raised": (*KINDS, *(f"invocation_{kind}" for kind in KINDS)),
    "run.takeover_blocked": ("epoch", "domains", "more"),
}
_ATTEMPTS: Final = {
    f"attempt.{status.value}": ("reason",)
    for status in (
        AttemptStatus.SUCCEEDED,
        AttemptStatus.FAILED,
        AttemptStatus.CANCELLED,
        AttemptStatus.TIMED_OUT,
        AttemptStatus.YIELDED,
    )
} | {
    "attempt.claimed": ("cause", "epoch"),
    "attempt.start_requested": _NOTHING,
    "attempt.running": _NOTHING,
    "attempt.released": _NOTHING,
    "attempt.lost": _NOTHING,
    "attempt.accepted": _NOTHING,
    "attempt.callback_revoked": ("attempt_id",),
    "attempt.late_callback_ignored": ("reason", "observed", "sequence"),
}
_LEASES: Final = {
    "lease.claimed": ("epoch", "worker_id"),
    "lease.activated": ("epoch", "revocation"),
    "lease.released": ("epoch",),
}
_DOMAINS: Final = {
    "domain.opened": ("domain_id", "domain_kind"),
    "domain.revoked": ("domain_id", "how"),
}
_OPERATIONS: Final = {
    "operation.started": ("operation_id", "name", "try_no"),
    "operation.attempt_ended": ("operation_id", "name", "try_no", "status", "retry_in_us"),
    "operation.raw_saved": ("operation_id", "name", "try_no"),
    "operation.completed": ("operation_id", "name", "try_no", "status", "reconciled"),
    "operation.resolved": ("operation_id", "happened"),
}

_TICKETS: Final = {
    "ticket.reserved": ("operation_id", *KINDS),
    "ticket.consumed": ("operation_id", *KINDS),
    "ticket.released": ("operation_id",),
}

EVENT_FIELDS: Final[Mapping[str, tuple[str, ...]]] = _RUNS | _ATTEMPTS | _LEASES | _DOMAINS | _OPERATIONS | _TICKETS
"""Type of an event (``aggregate.past_tense``) -> the fields that its payload may have."""

ENDS_RUN: Final = frozenset(f"run.{status.value}" for status in FINAL_RUN)
"""Behind one of these no event of its run follows, but that a report about its attempt came too late, or that somebody
said what became of an operation that it left open."""

QUEUES_RUN: Final = frozenset({"run.queued", "run.moved_to_front", "lease.released"})
"""Something may be claimed now."""

SETTLES: Final = frozenset({"ticket.consumed", "ticket.released", "run.budget_raised"})
"""A call that waits for a ticket may get one now."""

WAKES: Final = QUEUES_RUN | ENDS_RUN | SETTLES | {"run.waiting_approval", "run.retry_wait"}
"""What somebody in another process may be waiting for: it is told of these, everything else is found by looking."""


def check_event(kind: str, payload: Mapping[str, Any]) -> None:
    """Raise InvariantBroken for a type, or a field of its payload, that is not in the table."""
    allowed = EVENT_FIELDS.get(kind)
    if allowed is None:
        msg = f"there is no event {kind!r}; name it and its fields in runtime_persist/model/event_types.py"
        raise InvariantBroken(msg, type=kind)
    if not payload.keys() <= set(allowed):
        more = ", ".join(sorted(payload.keys() - set(allowed)))
        msg = f"event {kind!r} may not say {more}; name the field in runtime_persist/model/event_types.py"
        raise InvariantBroken(msg, type=kind, fields=more)
