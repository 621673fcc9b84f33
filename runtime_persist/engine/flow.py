"""One implementation for sync and async: a flow is a generator that yields the futures it waits for.

``run`` waits for them on the calling thread, ``arun`` on the calling event loop. The work behind a future runs on
the engine's own threads either way, so nothing depends on a loop, and a cancelled caller never leaves half a
transaction: the command goes on to its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, TypeVar

from runtime_persist.drivers import wakes
from runtime_persist.drivers.base import caller

R = TypeVar("R")
T = TypeVar("T")
Flow = Generator["Future[Any]", Any, R]


def wait(future: Future[T]) -> Flow[T]:
    """Wait for a future inside a flow."""
    result: T = yield future
    return result


def in_thread(work: Callable[[], R]) -> Flow[R]:
    """Run blocking work on a thread of its own and wait for it."""
    future: Future[R] = Future()

    def call() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 (belongs to the waiting caller)
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=call, name="runtime-persist-blocking", daemon=True).start()
    result: R = yield future
    return result


def run(flow: Flow[R]) -> R:
    """Run a flow on this thread."""
    before, caller.waits = caller.waits, True
    try:
        future = next(flow)
        while True:
            wakes.release()
            try:
                result = future.result()
            except BaseException as error:  # noqa: BLE001 (the flow decides what it means)
                future = flow.throw(error)
            else:
                future = flow.send(result)
    except StopIteration as done:
        value: R = done.value
        return value
    finally:
        caller.waits = before


async def arun(flow: Flow[R]) -> R:
    """Run a flow on this event loop; cancelling the caller does not cancel the command it waits for."""
    try:
        future = next(flow)
        mailbox = _mailbox()
        while True:
            if not future.done():
                try:
                    await mailbox.delivery(future)
                except asyncio.CancelledError:
                    flow.close()
                    raise
            try:
                result = future.result()
            except BaseException as error:  # noqa: BLE001 (the flow decides what it means)
                future = flow.throw(error)
            else:
                future = flow.send(result)
    except StopIteration as done:
        value: R = done.value
        return value


class _Mailbox:
    """Wakes the tasks of one event loop from other threads: what ends together wakes the loop once.

    (``asyncio.wrap_future`` wakes it once for each future, and takes three turns of the loop for it.)
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._arrived: deque[asyncio.Future[None]] = deque()
        self._woken = False

    def delivery(self, future: Future[Any]) -> asyncio.Future[None]:
        """Return a future of this loop that is done when ``future`` is."""
        waiter: asyncio.Future[None] = self.loop.create_future()
        future.add_done_callback(lambda _: self._post(waiter))
        return waiter

    def _post(self, waiter: asyncio.Future[None]) -> None:
        self._arrived.append(waiter)
        # The loop takes its mark away before it looks into the box: who still sees the mark is seen by the loop.
        if not self._woken:
            wakes.wake(self._wake)

    def _wake(self) -> None:
        if not self._woken:
            self._woken = True
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits there any more
                self.loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._woken = False
        while self._arrived:
            waiter = self._arrived.popleft()
            if not waiter.done():
                waiter.set_result(None)


class _Local(threading.local):
    mailbox: _Mailbox | None = None


_local = _Local()


def _mailbox() -> _Mailbox:
    loop = asyncio.get_running_loop()
    found = _local.mailbox
    if found is None or found.loop is not loop:
        found = _local.mailbox = _Mailbox(loop)
    return found
