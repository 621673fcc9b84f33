"""Processes at work, and who kills and stops them, by chance that can be repeated."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.soak.programs import LEASE_SECONDS

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from tests.fixtures.raw import Raw
    from tests.support.processes import Child

SECONDS_BETWEEN = 1.0


@dataclass(eq=False)
class Member:
    """A process and what it is called; ``stopped_at``: monotonic seconds since when it is stopped."""

    child: Child
    worker_id: str
    stopped_at: float | None = None


@dataclass
class Fleet:
    """Always ``size`` processes, of which some are stopped.

    Attributes:
        start: starts one.
        raw: a connection beside the workers'.
        chance: decides who is hit, and how.
        size: how many work at the same time.
        work_between: how much is done from one strike to the next (0: one strike a second).
        hit: attempts that were starting or running when their worker was killed, one set for each kill.

    """

    start: Callable[[], Child]
    raw: Raw
    chance: random.Random
    size: int = 4
    work_between: int = 0
    members: list[Member] = field(default_factory=list)
    hit: list[set[str]] = field(default_factory=list)
    kills: int = 0
    stops: int = 0
    struck_at: float = 0.0

    def fill(self) -> None:
        """Start workers until there are ``size``, and wait until all are at work."""
        made = [self.start() for _ in range(self.size - len(self.members))]
        self.members += [Member(child, child.until("ready")[0]) for child in made]

    def is_due(self, done: int) -> bool:
        """Return whether it is time to strike: ``done`` is what was done so far."""
        if self.work_between:
            return done >= (self.kills + self.stops + 1) * self.work_between
        return time.monotonic() >= self.struck_at + SECONDS_BETWEEN

    def strike(self) -> None:
        """Kill one at random and replace it, or stop one: one always goes on.

        The first two strikes are one of each kind, however short the work is.
        """
        self.struck_at = time.monotonic()
        awake = [member for member in self.members if member.stopped_at is None]
        victim = self.chance.choice(awake)
        stops = self.chance.random() < 0.5 if bool(self.kills) == bool(self.stops) else not self.stops
        if len(awake) > 1 and stops:
            self.stops += 1
            victim.stopped_at = time.monotonic()
            victim.child.send(signal.SIGSTOP)
            return
        self.kills += 1
        victim.child.kill()
        self.members.remove(victim)
        self.hit.append(self._executes(victim))
        self.fill()

    def _executes(self, member: Member) -> set[str]:
        """Return the attempts that are starting or running under a worker's name, and that nobody took over."""
        found = self.raw.rows(
            "SELECT a.attempt_id FROM rp_runs r JOIN rp_attempts a ON a.attempt_id = r.attempt_id "
            "WHERE r.worker_id = ? AND a.worker_id = ? AND a.status IN ('starting', 'running')",
            member.worker_id,
            member.worker_id,
        )
        return {row["attempt_id"] for row in found}

    def wake(self) -> None:
        """Let those go on whose leases ran out."""
        now = time.monotonic()
        for member in self.members:
            if member.stopped_at is not None and now - member.stopped_at > LEASE_SECONDS and not self._leased(member):
                member.stopped_at = None
                member.child.send(signal.SIGCONT)

    def _leased(self, member: Member) -> bool:
        return any(
            row["expires_us"] > time.time() * 1_000_000
            for row in self.raw.rows(
                "SELECT expires_us FROM rp_runs WHERE worker_id = ? AND phase <> 'released'", member.worker_id
            )
        )

    def end(self) -> list[Any]:
        """Tell all to end, and return what their programs returned (or raised)."""
        for member in self.members:
            member.child.send(signal.SIGCONT)
            member.child.send(signal.SIGTERM)
        return [member.child.outcome() for member in self.members]

    def lost(self, attempts: set[str]) -> int:
        """Return how many kills hit one of these attempts."""
        return sum(bool(hit & attempts) for hit in self.hit)
