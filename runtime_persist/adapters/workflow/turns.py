"""Many inputs at once: threads go on in parallel, the inputs of one thread one after the other, in their order."""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import Future, as_completed, wait
from typing import TYPE_CHECKING, Any

from langchain_core.runnables.config import get_executor_for_config

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence

    from langchain_core.runnables import RunnableConfig

Outcome = tuple[int, Any]
"""The position of an input, and its output or the exception it ended with."""


def outcomes(
    invoke: Callable[[Any, RunnableConfig], Any],
    inputs: Sequence[Any],
    configs: Sequence[RunnableConfig],
    threads: Sequence[str],
) -> Iterator[Outcome]:
    """Invoke each input and yield the outcomes as they come; a caller who leaves waits for what has begun."""

    def in_turn(position: int, previous: Future[Outcome] | None) -> Outcome:
        if previous is not None:
            # It began before this one did, because an executor begins in the order of submission: no deadlock.
            wait([previous])
        try:
            return position, invoke(inputs[position], configs[position])
        except Exception as error:  # noqa: BLE001 (handed to the caller)
            return position, error

    last: dict[str, Future[Outcome]] = {}
    with get_executor_for_config(configs[0]) as executor:
        futures = []
        for position, thread_id in enumerate(threads):
            last[thread_id] = executor.submit(in_turn, position, last.get(thread_id))
            futures.append(last[thread_id])
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


async def aoutcomes(
    ainvoke: Callable[[Any, RunnableConfig], Awaitable[Any]],
    inputs: Sequence[Any],
    configs: Sequence[RunnableConfig],
    threads: Sequence[str],
) -> AsyncGenerator[Outcome, None]:
    """Do :func:`outcomes` from an event loop; a caller who leaves cancels what has begun, and waits for its end."""
    limit = configs[0].get("max_concurrency")
    slots = contextlib.nullcontext() if limit is None else asyncio.Semaphore(limit)

    async def in_turn(position: int, previous: asyncio.Task[Outcome] | None) -> Outcome:
        if previous is not None:
            await asyncio.wait([previous])
        async with slots:
            try:
                return position, await ainvoke(inputs[position], configs[position])
            except Exception as error:  # noqa: BLE001 (handed to the caller)
                return position, error

    last: dict[str, asyncio.Task[Outcome]] = {}
    tasks = []
    for position, thread_id in enumerate(threads):
        last[thread_id] = asyncio.create_task(in_turn(position, last.get(thread_id)))
        tasks.append(last[thread_id])
    try:
        for done in asyncio.as_completed(tasks):
            yield await done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def in_order(found: Sequence[Outcome], *, return_exceptions: bool) -> list[Any]:
    """Return the outputs in the order of the inputs; raise the first exception, unless exceptions are asked for."""
    ordered = [outcome for _, outcome in sorted(found, key=lambda one: one[0])]
    if not return_exceptions:
        for outcome in ordered:
            if isinstance(outcome, Exception):
                raise outcome
    return ordered
