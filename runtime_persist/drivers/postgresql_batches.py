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

if TYPE_CHECKING:
    from concurrent.futures import Future

    from runtime_persist.drivers.base import Job

BATCH_JOBS_MAX = 64
IN_FLIGHT_MAX = 2
"""Batches on their way at once: while the server works on one, its callers' next commands gather in the other."""
_PATIENCE_SECONDS = 0.02
"""A command sent alone that takes longer waits for a lock, most likely: the queue does not wait with it."""


@dataclass(slots=True, eq=False)
class Item:
    """A job, who waits for it, and whether an earlier try of it may have been committed."""

    job: Job[Any]
    future: Future[Any]
    maybe_committed: bool = False


Alone = Callable[[Item], Awaitable[None]]
"""Runs a job to its end and answers its future; raises nothing."""
Together = Callable[[list[Item]], Awaitable[list[Item]]]
"""Runs jobs of one kind in one transaction, answers those that were accepted, and returns the others."""


class Batches:
    """The queue of hot commands. Everything happens on one event loop."""

    def __init__(self, alone: Alone, together: Together) -> None:
        """Send through ``alone`` and ``together``."""
        self._alone = alone
        self._together = together
        self._queue: deque[Item] = deque()
        self._busy: set[str] = set()  # runs with commands in flight
        self._slots = IN_FLIGHT_MAX
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, item: Item) -> None:
        """Queue a job; :meth:`pump` sends it when its turn has come."""
        self._queue.append(item)

    def pump(self) -> None:
        """Send what may be sent now."""
        while self._queue and self._slots:
            batch = self._next()
            if not batch:
                return
            self._busy |= _orders(batch)
            slot = _Slot(self)
            self._start(self._send_alone(batch, slot) if len(batch) == 1 else self._send_together(batch, slot))

    async def drained(self) -> None:
        """Wait until everything that was added has been answered."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

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

    async def _send_alone(self, items: list[Item], slot: _Slot) -> None:
        timer = asyncio.get_running_loop().call_later(_PATIENCE_SECONDS, slot.free)
        await self._finish(items)
        timer.cancel()
        slot.free()

    async def _send_together(self, batch: list[Item], slot: _Slot) -> None:
        try:
            left = await self._together(batch)
        except Exception:  # noqa: BLE001 (a command that cannot even be made says so alone)
            left = [item for item in batch if not item.future.done()]
        self._busy -= _orders(batch) - _orders(left)
        # One after the other within a run; a run that waits for a lock holds up no other one.
        by_order: dict[object, list[Item]] = {}
        for item in left:
            by_order.setdefault(item.job.order or item, []).append(item)
        for items in by_order.values():
            self._start(self._finish(items))
        slot.free()

    async def _finish(self, items: list[Item]) -> None:
        for item in items:
            await self._alone(item)
        self._busy -= _orders(items)
        self.pump()


class _Slot:
    """One of the places for what is in flight; given back once."""

    def __init__(self, batches: Batches) -> None:
        self._batches: Batches | None = batches
        batches._slots -= 1  # noqa: SLF001 (a part of it)

    def free(self) -> None:
        batches, self._batches = self._batches, None
        if batches is not None:
            batches._slots += 1  # noqa: SLF001 (a part of it)
            batches.pump()


def _orders(items: list[Item]) -> set[str]:
    return {item.job.order for item in items if item.job.order is not None}
