"""Coroutines that begin at once, and go on as soon as what they wait for is there; a task only for who needs one.

A task of asyncio begins with its loop's next turn, for which a statement would wait, and costs a turn of its own.
(Python 3.12 has eager tasks; 3.11 has not.)
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator


class Tasks:
    """Coroutines in execution on the running loop."""

    def __init__(self) -> None:
        """Hold none."""
        self._running: dict[object, object] = {}  # asyncio itself does not keep tasks alive
        self._ended: asyncio.Event | None = None

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work``, which raises nothing, up to the first thing it waits for; it goes on when that is done.

        It is no task: what needs one has to wait for :func:`in_task`.
        """
        mark = object()
        self._running[mark] = whole = _Begun(self._whole(work, mark))
        whole.go_on()

    async def drained(self) -> None:
        """Wait until all have ended, those too that are started meanwhile."""
        while self._running:
            self._ended = self._ended or asyncio.Event()
            self._ended.clear()
            await self._ended.wait()

    async def _whole(self, work: Coroutine[Any, Any, None], mark: object) -> None:
        try:
            await work
        finally:  # here, not in a callback of the task, which is another turn of the loop
            del self._running[mark]
            if self._ended is not None and not self._running:
                self._ended.set()


async def in_task() -> None:
    """Wait until this coroutine is a task: asyncio.timeout, and what is made of it, works in no other place."""
    if asyncio.current_task() is None:
        await asyncio.sleep(0)


class _Begun:
    """A coroutine that goes on by callbacks, until it asks for a task: the rest of it is one then."""

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._coroutine = coroutine
        self._task: asyncio.Task[None] | None = None

    def go_on(self, _: asyncio.Future[Any] | None = None) -> None:
        """Run it up to the next thing that it waits for."""
        try:
            waits_for = self._coroutine.send(None)
        except StopIteration:
            return
        if waits_for is None:
            self._task = asyncio.get_running_loop().create_task(self._rest())
            return
        waits_for._asyncio_future_blocking = False  # noqa: SLF001 (what a task does: this future is waited for)
        waits_for.add_done_callback(self.go_on)  # the coroutine itself asks the future how it ended

    async def _rest(self) -> None:
        await _Rest(self._coroutine)


class _Rest:
    """The rest of a coroutine that has asked for a task."""

    def __init__(self, begun: Coroutine[Any, Any, None]) -> None:
        self._begun = begun

    def __await__(self) -> Generator[Any, Any, None]:
        return (yield from self._begun.__await__())
