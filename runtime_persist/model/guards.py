"""The guard: the one check a command declares (design: architecture §3). The table command × guard is data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from runtime_persist.model.states import LeasePhase


class GuardKind(StrEnum):
    """Who may send a command."""

    LEASE = "lease"
    CLAIM = "claim"
    CONTROL = "control"
    THREAD = "thread"


@dataclass(frozen=True, slots=True)
class Guard:
    """A guard. ``phases`` and ``open_only`` only mean something for a lease guard.

    Attributes:
        kind: which rows are locked and tested.
        phases: lease phases in which the holder may send the command.
        open_only: refused while the run is stopping.

    """

    kind: GuardKind
    phases: tuple[LeasePhase, ...] = ()
    open_only: bool = False

    def __str__(self) -> str:
        """Return the notation of the design, e.g. ``lease(active, open)``."""
        if self.kind is not GuardKind.LEASE:
            return self.kind.value
        return f"lease({' or '.join(self.phases)}{', open' if self.open_only else ''})"


LEASE_ACTIVE_OPEN = Guard(GuardKind.LEASE, (LeasePhase.ACTIVE,), open_only=True)
LEASE_ACTIVE = Guard(GuardKind.LEASE, (LeasePhase.ACTIVE,))
LEASE_HELD = Guard(GuardKind.LEASE, (LeasePhase.RECOVERING, LeasePhase.ACTIVE))
CLAIM = Guard(GuardKind.CLAIM)
CONTROL = Guard(GuardKind.CONTROL)
THREAD = Guard(GuardKind.THREAD)
