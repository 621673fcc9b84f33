"""What a runtime says about an attempt, and how that agrees with what is recorded (design: domain §3)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

IN_PROCESS: Final = "inprocess"
"""The worker runs the graph itself."""
SUBPROCESS: Final = "subprocess"
"""A child process for each attempt."""


class Observed(StrEnum):
    """What was last seen of an attempt by proof, not by claim or heartbeat."""

    UNCONFIRMED = "unconfirmed"
    ACCEPTED = "accepted"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDS: Final = frozenset({Observed.SUCCEEDED, Observed.FAILED, Observed.CANCELLED})
"""Reports that end an attempt."""


class SyncState(StrEnum):
    """How the record stands to what was seen.

    ``pending``: nothing was seen yet. ``in_sync``: they agree. ``stale``: what was seen proves nothing any more.
    ``diverged``: the runtime ended otherwise than the attempt (a run that was cancelled, and whose code returned).
    """

    PENDING = "pending"
    IN_SYNC = "in_sync"
    STALE = "stale"
    DIVERGED = "diverged"


def agreement(status: str, observed: str) -> SyncState:
    """Return how an ended attempt's status stands to what was seen of it."""
    return SyncState.IN_SYNC if status == observed else SyncState.DIVERGED
