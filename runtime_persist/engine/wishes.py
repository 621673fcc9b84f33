"""Who reads the live stream of which run: what a process that executes runs has heard of it."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime_persist.model import limits
from runtime_persist.model.streams import Wish

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from runtime_persist.engine.notifications import Notifications, Subscription

WISHES = "wishes"
"""Topic: somebody reads the stream of a run; he says so again and again."""

WHO_READS = "who reads"
"""Topic: a process that executes runs asks all readers to say what they wish: it has not heard them."""


def of_stream(run_id: str) -> str:
    """Return the topic of a run's stream."""
    return f"stream {run_id}"


@dataclass(slots=True)
class _Wanted:
    until: float
    modes: set[str] = field(default_factory=set)
    subgraphs: bool = False


class Wishes:
    """What other processes, and this one, want to read; forgotten when it is not repeated."""

    def __init__(self, notifications: Notifications) -> None:
        """Hear nothing before :meth:`listen`."""
        self._notifications = notifications
        self._lock = threading.Lock()
        self._listening = threading.Lock()
        self._wanted: dict[str, _Wanted] = {}
        self._answers: dict[str, Callable[[], None]] = {}
        self._subscription: Subscription | None = None

    def listen(self) -> None:
        """Hear wishes from now on, until the engine is closed. Doing it again does nothing."""
        with self._listening:
            if self._subscription is None:
                self._subscription = self._notifications.subscribe(WISHES, self._heard)
                self._notifications.publish(WHO_READS, b"")

    def answer(self, run_id: str, tell: Callable[[], None] | None) -> None:
        """Call ``tell`` whenever somebody begins to read a run (None: no more)."""
        with self._lock:
            if tell is None:
                self._answers.pop(run_id, None)
            else:
                self._answers[run_id] = tell

    def is_wanted(self, run_id: str) -> bool:
        """Return whether somebody reads a run's stream."""
        if not self._wanted:
            return False
        with self._lock:
            return self._found(run_id) is not None

    def of(self, run_id: str) -> tuple[frozenset[str], bool]:
        """Return which modes somebody wants of a run, and whether of its subgraphs too."""
        with self._lock:
            found = self._found(run_id)
            return (frozenset(), False) if found is None else (frozenset(found.modes), found.subgraphs)

    def know(self, run_id: str, modes: Collection[str], *, subgraphs: bool) -> None:
        """Take over what another process knew (of :meth:`of`) when it handed the run on."""
        if modes:
            self._heard(Wish(run_id, tuple(modes), subgraphs, first=False).encoded())

    def _found(self, run_id: str) -> _Wanted | None:
        found = self._wanted.get(run_id)
        if found is not None and found.until < time.monotonic():
            del self._wanted[run_id]
            return None
        return found

    def _heard(self, message: bytes | None) -> None:
        if message is None:
            self._notifications.publish(WHO_READS, b"")
            return
        wish = Wish.decoded(message)
        now = time.monotonic()
        with self._lock:
            for run_id in [run_id for run_id, wanted in self._wanted.items() if wanted.until < now]:
                del self._wanted[run_id]
            found = self._wanted.setdefault(wish.run_id, _Wanted(now))
            news = wish.first or found.until <= now
            found.until = now + limits.STREAM_WANTED_SECONDS
            found.modes |= set(wish.modes)
            found.subgraphs |= wish.subgraphs
            tell = self._answers.get(wish.run_id) if news else None
        if tell is not None:
            tell()
