"""Group commit on PostgreSQL: what queued for different runs while others were in flight is sent together.

A batch is one prepared statement with the parameters of many commands of one kind, sent in one exchange. PostgreSQL
runs them one after the other in one transaction, so a command means the same in a batch as alone: its own fence on its
own locked rows, its own receipt. They are acknowledged when the transaction is committed.

Nobody in a batch waits for anybody's lock: rows that are locked are skipped, and what was skipped or refused is sent
again alone, where it may wait and where the reason is found. A batch that fails as a whole wrote nothing; all its
commands are sent alone (with a lost connection it may have been committed: then their receipts are found).

The order of one run's commands is kept: commands of a run that has some in flight stay in the queue.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime_persist.drivers import wakes
from runtime_persist.drivers.eager import Tasks

if TYPE_CHECKING:
    from concurrent.futures import Future

    from runtime_persist.drivers.base import Job

BATCH_JOBS_MAX = 16
"""With more, all callers would be answered at once, and the server would have nothing to do while they prepare their
next commands: of 64 callers in one process a third fewer puts were done with batches of 64."""
IN_FLIGHT_MAX = 2
"""Batches on their way at once: while the server works on one, its callers' next commands gather in the other."""
_GATHER_JOBS = BATCH_JOBS_MAX  # as many are worth an exchange of their own while another one is on its way
_PATIENCE_SECONDS = 0.02
"""A command sent alone that takes longer waits for a lock, most likely: the queue does not wait with it."""


@dataclass(slots=True, eq=False)
class Item:
    """A job, who waits for it, and whether an earlier try of it may have been committed."""

    job: Job[Any]
    future: Future[Any]
    maybe_committed: bool = False


Answer = Callable[[], None]
"""Gives a job's outcome to who waits for it. It comes last, so that the loop holds that thread up no longer."""
Alone = Callable[[Item], Awaitable[Answer]]
"""Runs a job to its end and returns its answer; raises nothing."""
Together = Callable[[list[Item]], Awaitable[tuple[list[Answer], list[Item]]]]
"""Runs jobs of one kind in one transaction; returns the answers of those that were accepted, and the others."""


class Batches:
    """The queue of hot commands. Everything happens on one event loop."""

    def __init__(self, alone: Alone, together: Together) -> None:
        """Send through ``alone`` and ``together``."""
        self._alone = alone
        self._together = together
        self._pumping = False
        self._last = 0  # jobs in the last batch
        self._queue: deque[Item] = deque()
        self._busy: set[str] = set()  # runs with commands in flight
        self._slots = IN_FLIGHT_MAX
        self._tasks = Tasks()
        self._patience: deque[tuple[float, _Slot]] = deque()  # of those sent alone: until when they keep their place
        self._timed = False

    def add(self, item: Item) -> None:
        """Queue a job; :meth:`pump` sends it when its turn has come."""
        self._queue.append(item)

    def pump(self) -> None:
        """Send what may be sent now."""
        if self._pumping:
            return  # what was begun just now has ended already: whoever began it looks again
        self._pumping = True
        try:
            while self._queue and self._slots and not self._more_will_come():
                batch = self._next()
                if not batch:
                    return
                self._last = len(batch)
                self._busy |= _orders(batch)
                slot = _Slot(self)
                self._start(self._send_alone(batch[0], slot) if len(batch) == 1 else self._send_together(batch, slot))
        finally:
            self._pumping = False

    def _more_will_come(self) -> bool:
        """Return whether to wait with what is queued: another batch is on its way, and the last one was larger.

        One exchange of many costs much less than many exchanges of few. When what is on its way has come back, what is
        queued is sent.
        """
        return self._slots < IN_FLIGHT_MAX and len(self._queue) < min(self._last, _GATHER_JOBS)

    async def drained(self) -> None:
        """Wait until everything that was added has been answered."""
        await self._tasks.drained()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.start(work)

    def _next(self) -> list[Item]:
        """Take from the queue the first job whose run is free, and all of its kind that may go with it."""
        batch: list[Item] = []
        later: deque[Item] = deque()
        held = set(self._busy)  # and the runs of which an earlier command stays in the queue
        for item in self._queue:
            job = item.job
            fits = len(batch) < BATCH_JOBS_MAX and (not batch or job.name == batch[0].job.name)
            if fits and job.order not in held:
                batch.append(item)
            else:
                later.append(item)
                if job.order is not None:
                    held.add(job.order)
        self._queue = later
        return batch

    async def _send_alone(self, item: Item, slot: _Slot) -> None:
        self._time(slot)
        answer = await self._alone(item)
        self._busy -= _orders([item])
        slot.free()
        self.pump()  # the slot may have been given back before: then nobody has looked yet
        answer()

    def _time(self, slot: _Slot) -> None:
        """Let a command that was sent alone give its place back when it takes long: one timer is set for all."""
        loop = asyncio.get_running_loop()
        self._patience.append((loop.time() + _PATIENCE_SECONDS, slot))
        if not self._timed:
            self._timed = True
            loop.call_later(_PATIENCE_SECONDS, self._out_of_patience)

    def _out_of_patience(self) -> None:
        loop = asyncio.get_running_loop()
        while self._patience and (self._patience[0][0] <= loop.time() or self._patience[0][1].freed):
            self._patience.popleft()[1].free()
        self._timed = bool(self._patience)
        if self._timed:
            loop.call_at(self._patience[0][0], self._out_of_patience)

    async def _send_together(self, batch: list[Item], slot: _Slot) -> None:
        try:
            answers, left = await self._together(batch)
        except Exception:  # noqa: BLE001 (a command that cannot even be made says so alone)
            answers, left = [], batch
        self._busy -= _orders(batch) - _orders(left)
        # One after the other within a run; a run that waits for a lock holds up no other one.
        by_order: dict[object, list[Item]] = {}
        for item in left:
            by_order.setdefault(item.job.order or item, []).append(item)
        for items in by_order.values():
            self._start(self._finish(items))
        slot.free()
        with wakes.held():
            for answer in answers:
                answer()

    async def _finish(self, items: list[Item]) -> None:
        for item in items:
            answer = await self._alone(item)
            if item is items[-1]:
                self._busy -= _orders(items)
                self.pump()
            answer()


class _Slot:
    """One of the places for what is in flight; given back once."""

    def __init__(self, batches: Batches) -> None:
        self._batches: Batches | None = batches
        batches._slots -= 1  # noqa: SLF001 (a part of it)

    @property
    def freed(self) -> bool:
        """Return whether it was given back."""
        return self._batches is None

    def free(self) -> None:
        batches, self._batches = self._batches, None
        if batches is not None:
            batches._slots += 1  # noqa: SLF001 (a part of it)
            batches.pump()


def _orders(items: list[Item]) -> set[str]:
    return {item.job.order for item in items if item.job.order is not None}
