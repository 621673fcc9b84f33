"""The states of runs, attempts, leases and operations, and the transition tables (design: domain §2, §3, §5).

The tables are data: commands check against them, the database CHECKs are generated from the enums, and the docs
are drawn from them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from runtime_persist.errors import IllegalTransition


class RunStatus(StrEnum):
    """Where a run is on its way from a request to a final result."""

    CREATED = "created"
    QUEUED = "queued"
    DISPATCHING = "dispatching"
    RUNNING = "running"
    WAITING_APPROVAL = "waiting_approval"
    RETRY_WAIT = "retry_wait"
    LOST = "lost"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"


class AttemptStatus(StrEnum):
    """Where one dispatch of a run to a worker is."""

    QUEUED = "queued"
    CLAIMED = "claimed"
    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    YIELDED = "yielded"


class LeasePhase(StrEnum):
    """``recovering``: claimed, nothing may run yet. ``active``: may commit. ``released``: nobody holds it."""

    RECOVERING = "recovering"
    ACTIVE = "active"
    RELEASED = "released"


class Control(StrEnum):
    """Whether a run takes new work. ``stopping`` accepts only results of work in flight."""

    OPEN = "open"
    STOPPING = "stopping"


class OnBusy(StrEnum):
    """What a new run does about the open runs of its thread.

    ``enqueue``: it waits for them. ``reject``: it is not started. ``interrupt``: they are stopped, and it goes on from
    what they committed. ``rollback``: they are stopped, and it begins where the oldest of them began.
    """

    ENQUEUE = "enqueue"
    REJECT = "reject"
    INTERRUPT = "interrupt"
    ROLLBACK = "rollback"


class AttemptCause(StrEnum):
    """Why an attempt exists."""

    INITIAL = "initial"
    RETRY = "retry"
    TAKEOVER = "takeover"
    RESUME = "resume"


class OperationStatus(StrEnum):
    """The logical state of an operation; ``unknown`` is never one of them, it is a fact about a try."""

    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class OperationPhase(StrEnum):
    """How far a pending operation is; one that is not pending is ``completed``, whatever is stored.

    ``prepared``, ``request_hooks``: nothing may be sent yet. ``ready``: its frozen request may be sent. ``executing``:
    a try was started. ``raw_saved``, ``response_hooks``: what the outside said is stored; it is not called again.
    """

    PREPARED = "prepared"
    REQUEST_HOOKS = "request_hooks"
    READY = "ready"
    EXECUTING = "executing"
    RAW_SAVED = "raw_saved"
    RESPONSE_HOOKS = "response_hooks"
    COMPLETED = "completed"


class TryStatus(StrEnum):
    """What is known about one physical try of an operation."""

    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"
    CANCELLED = "cancelled"


ANSWERED: Final = (OperationPhase.RAW_SAVED, OperationPhase.RESPONSE_HOOKS)
"""Phases in which what the outside said is stored."""

_R, _A = RunStatus, AttemptStatus

FINAL_RUN: Final = frozenset({_R.SUCCEEDED, _R.FAILED, _R.CANCELLED, _R.TIMED_OUT})
ACTIVE_RUN: Final = frozenset({_R.DISPATCHING, _R.RUNNING, _R.LOST})
"""It holds its capacity and its scope: claimed, running, being stopped, or lost without a proof of its end."""
FINAL_ATTEMPT: Final = frozenset({_A.SUCCEEDED, _A.FAILED, _A.CANCELLED, _A.TIMED_OUT, _A.LOST, _A.YIELDED})

RUN_TRANSITIONS: Final[dict[RunStatus, frozenset[RunStatus]]] = {
    _R.CREATED: frozenset({_R.QUEUED, _R.CANCELLED}),
    _R.QUEUED: frozenset({_R.DISPATCHING, _R.CANCELLED, _R.TIMED_OUT}),
    _R.DISPATCHING: frozenset(
        {_R.RUNNING, _R.QUEUED, _R.RETRY_WAIT, _R.FAILED, _R.CANCELLED, _R.TIMED_OUT, _R.LOST},
    ),
    _R.RUNNING: frozenset(
        {
            _R.WAITING_APPROVAL,
            _R.QUEUED,
            _R.RETRY_WAIT,
            _R.SUCCEEDED,
            _R.FAILED,
            _R.CANCELLED,
            _R.TIMED_OUT,
            _R.LOST,
        },
    ),
    _R.WAITING_APPROVAL: frozenset({_R.QUEUED, _R.RUNNING, _R.CANCELLED, _R.TIMED_OUT}),
    _R.RETRY_WAIT: frozenset({_R.QUEUED, _R.CANCELLED, _R.TIMED_OUT}),
    _R.LOST: frozenset(
        {_R.QUEUED, _R.RUNNING, _R.RETRY_WAIT, _R.SUCCEEDED, _R.FAILED, _R.CANCELLED, _R.TIMED_OUT},
    ),
    _R.SUCCEEDED: frozenset(),
    _R.FAILED: frozenset(),
    _R.CANCELLED: frozenset(),
    _R.TIMED_OUT: frozenset(),
}

ATTEMPT_TRANSITIONS: Final[dict[AttemptStatus, frozenset[AttemptStatus]]] = {
    _A.QUEUED: frozenset({_A.CLAIMED, _A.CANCELLED}),
    _A.CLAIMED: frozenset({_A.QUEUED, _A.STARTING, _A.CANCELLED}),
    _A.STARTING: frozenset(
        {_A.RUNNING, _A.SUCCEEDED, _A.FAILED, _A.CANCELLED, _A.TIMED_OUT, _A.LOST, _A.YIELDED},
    ),
    _A.RUNNING: frozenset({_A.SUCCEEDED, _A.FAILED, _A.CANCELLED, _A.TIMED_OUT, _A.LOST, _A.YIELDED}),
    **{final: frozenset() for final in FINAL_ATTEMPT},
}


def check_run(old: str, new: RunStatus) -> None:
    """Raise :class:`IllegalTransition` unless the table allows a run to go from ``old`` to ``new``."""
    if new not in RUN_TRANSITIONS[RunStatus(old)]:
        msg = f"a run that is {old} cannot become {new}"
        raise IllegalTransition(msg, old=str(old), new=str(new))


def check_attempt(old: str, new: AttemptStatus) -> None:
    """Raise :class:`IllegalTransition` unless the table allows an attempt to go from ``old`` to ``new``."""
    if new not in ATTEMPT_TRANSITIONS[AttemptStatus(old)]:
        msg = f"an attempt that is {old} cannot become {new}"
        raise IllegalTransition(msg, old=str(old), new=str(new))
