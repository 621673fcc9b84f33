"""One implementation for sync and async: a flow is a generator that yields the futures it waits for.

``run`` waits for them on the calling thread, ``arun`` on the calling event loop. The work behind a future runs on
the engine's own threads either way, so nothing depends on a loop, and a cancelled caller never leaves half a
transaction: the command goes on to its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import Future
from typing import Any, TypeVar

R = TypeVar("R")
T = TypeVar("T")
Flow = Generator[Future[Any], Any, R]


def wait(future: Future[T]) -> Flow[T]:
    """Wait for a future inside a flow."""
    result: T = yield future
    return result


def run(flow: Flow[R]) -> R:
    """Run a flow on this thread."""
    try:
        future = next(flow)
        while True:
            try:
                result = future.result()
            except BaseException as error:  # noqa: BLE001 (the flow decides what it means)
                future = flow.throw(error)
            else:
                future = flow.send(result)
    except StopIteration as done:
        value: R = done.value
        return value


async def arun(flow: Flow[R]) -> R:
    """Run a flow on this event loop; cancelling the caller does not cancel the command it waits for."""
    try:
        future = next(flow)
        while True:
            try:
                result = await asyncio.shield(asyncio.wrap_future(future))
            except asyncio.CancelledError:
                flow.close()
                raise
            except BaseException as error:  # noqa: BLE001 (the flow decides what it means)
                future = flow.throw(error)
            else:
                future = flow.send(result)
    except StopIteration as done:
        value: R = done.value
        return value
