"""Notifications: who waits for something is woken, in this process and in others.

They are hints. What happened stands in the database, and whoever waits looks there: when he is woken, and from time to
time, because a hint can get lost (with a process that dies behind its commit, on a connection that breaks).
"""

from __future__ import annotations

import contextlib
import hashlib
import heapq
import itertools
import os
import threading
import time
from collections import defaultdict
from concurrent.futures import Future, InvalidStateError
from typing import TYPE_CHECKING, Self

from runtime_persist.model.event_types import ENDS_RUN, QUEUES_RUN, WAKES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType

    from runtime_persist.drivers import Driver
    from runtime_persist.drivers.bus import Bus

CLAIMABLE = "claimable"
"""Topic: something may be claimed now."""
EVENTS = "events"
"""Topic: the outbox of the space has something new."""


def of_run(run_id: str) -> str:
    """Return the topic: something happened to a run."""
    return f"run {run_id}"


class Notifications:
    """Topics that are published and subscribed to, in all processes that have the space open."""

    def __init__(self, driver: Driver, secret: Callable[[], bytes]) -> None:
        """Use the bus of ``driver``; ``secret`` of the space makes the names of its channels."""
        self._driver = driver
        self._secret = secret
        self._lock = threading.Lock()
        self._receivers: defaultdict[str, list[Callable[[bytes | None], None]]] = defaultdict(list)
        self._bus: Bus | None = None
        self._opened, self._closed = False, False
        self._timers = Timers()
        self._pid = os.getpid()

    @property
    def local(self) -> bool:
        """Return whether anybody in this process waits for anything."""
        return bool(self._receivers)

    @property
    def hears(self) -> bool:
        """Return whether messages of other processes arrive here, as far as is known."""
        return self._bus is not None and self._bus.hears

    def committed(self, run_id: str, types: Sequence[str]) -> None:
        """Tell that events of a run are committed (types: of those that a cold command appended)."""
        self._deliver(of_run(run_id), b"")
        self._deliver(EVENTS, b"")
        waking = WAKES.intersection(types)
        if not waking:
            return  # others find it when they look
        topics = [of_run(run_id), EVENTS]
        if waking & QUEUES_RUN or waking & ENDS_RUN:  # its end lets the next run of its thread begin
            topics.append(CLAIMABLE)
            self._deliver(CLAIMABLE, b"")
        bus = self._other_processes()
        if bus is not None:
            for topic in topics:
                bus.publish(self._channel(topic), b"")

    def publish(self, topic: str, message: bytes) -> None:
        """Send a message to everybody who subscribed to a topic. Best effort; never waits."""
        self._deliver(topic, message)
        bus = self._other_processes()
        if bus is not None:
            bus.publish(self._channel(topic), message)

    def publish_here(self, topic: str) -> None:
        """Wake who waits for a topic in this process."""
        self._deliver(topic, b"")

    def subscribe(self, topic: str, receive: Callable[[bytes | None], None]) -> Subscription:
        """Call ``receive`` with every message of a topic, on any thread; ``None``: some may have been missed.

        It must not wait.
        """
        with self._lock:
            self._receivers[topic].append(receive)
        bus = self._other_processes()
        ends = bus.subscribe(self._channel(topic), receive) if bus is not None else None

        def end() -> None:
            with self._lock:
                found = self._receivers.get(topic, [])
                if receive in found:
                    found.remove(receive)
                if not found:
                    self._receivers.pop(topic, None)
            if ends is not None:
                ends()

        return Subscription(end)

    def watch(self, *topics: str) -> Watch:
        """Return what wakes somebody who waits for one of some topics; use it with ``with``."""
        return Watch(self, self._timers, topics)

    def after(self, seconds: float) -> Future[None]:
        """Return a future that is done after some seconds (a waiting flow must not block an event loop)."""
        future: Future[None] = Future()
        self._timers.at(time.monotonic() + seconds, future)
        return future

    def flush(self) -> None:
        """Wait until what was published before is on its way to other processes."""
        bus = self._other_processes()  # whoever committed may be about to open it
        if bus is not None:
            bus.flush()

    def close(self) -> None:
        """End; whoever still waits is woken. A forked child has none of the threads, and leaves all as it is."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._closed = True
            bus, self._bus = self._bus, None
        for topic in list(self._receivers):
            self._deliver(topic, None)
        self._timers.close()
        if bus is not None:
            bus.close()

    def _deliver(self, topic: str, message: bytes | None) -> None:
        if topic in self._receivers:
            with self._lock:
                found = list(self._receivers.get(topic, ()))
            for receive in found:
                receive(message)

    def _other_processes(self) -> Bus | None:
        if not self._opened:
            with self._lock:
                self._open()
        return self._bus

    def _open(self) -> None:
        if not self._opened and not self._closed:
            self._bus = self._driver.open_bus()
            self._opened = True

    def _channel(self, topic: str) -> str:
        """Return a name that nobody guesses who cannot read the space's row."""
        digest = hashlib.blake2b(topic.encode(), digest_size=12, key=self._secret()[:64])
        return f"rp_{digest.hexdigest()}"


class Subscription:
    """Ends with ``close`` or its ``with`` block."""

    def __init__(self, end: Callable[[], None]) -> None:
        """Call ``end`` once."""
        self._end: Callable[[], None] | None = end

    def close(self) -> None:
        """End it. Doing it again does nothing."""
        end, self._end = self._end, None
        if end is not None:
            end()

    def __enter__(self) -> Self:
        """Return the subscription."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self.close()


class Watch(Subscription):
    """Wakes one waiter: what happened before he waits is not missed."""

    def __init__(self, notifications: Notifications, timers: Timers, topics: Iterable[str]) -> None:
        """Use :meth:`Notifications.watch`."""
        self._timers = timers
        self._lock = threading.Lock()
        self._happened = False
        self._waiting: Future[None] | None = None
        subscriptions = [notifications.subscribe(topic, self.wake) for topic in topics]

        def end() -> None:
            for subscription in subscriptions:
                subscription.close()

        super().__init__(end)

    def next(self, seconds: float) -> Future[None]:
        """Return a future that is done when something has happened since the last call, at the latest after that."""
        with self._lock:
            future: Future[None] = Future()
            if self._happened:
                self._happened = False
                future.set_result(None)
                return future
            self._waiting = future
        self._timers.at(time.monotonic() + seconds, future)
        return future

    def wake(self, _message: bytes | None = None) -> None:
        """Wake who waits, or the next who would."""
        with self._lock:
            future, self._waiting = self._waiting, None
            if future is None or future.done():
                self._happened = True
                return
        _finish(future)


class Timers:
    """Futures that are done at a time, on one thread that begins with the first of them."""

    def __init__(self) -> None:
        """Have nothing to do yet."""
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, Future[None]]] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None
        self._closed = False

    def at(self, when: float, future: Future[None]) -> None:
        """Finish a future at a time of the monotonic clock, unless it is done before."""
        with self._changed:
            if not self._closed:
                heapq.heappush(self._due, (when, next(self._numbers), future))
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name="runtime-persist-timers", daemon=True)
                    self._thread.start()
                self._changed.notify()
                return
        _finish(future)

    def close(self) -> None:
        """Finish all that are left."""
        with self._changed:
            self._closed = True
            left, self._due = self._due, []
            self._changed.notify()
        for _, _, future in left:
            _finish(future)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _work(self) -> None:
        while True:
            due: list[Future[None]] = []
            with self._changed:
                if self._closed:
                    return
                now = time.monotonic()
                while self._due and (self._due[0][0] <= now or self._due[0][2].done()):
                    due.append(heapq.heappop(self._due)[2])
                if not due:
                    self._changed.wait(self._due[0][0] - now if self._due else None)
            for future in due:
                _finish(future)


def _finish(future: Future[None]) -> None:
    with contextlib.suppress(InvalidStateError):  # somebody was quicker
        future.set_result(None)
