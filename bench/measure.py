"""Slices: callers that repeat one operation for a fraction of a second, timed one by one."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bench.noise import Machine, Slice

T = TypeVar("T")

TRIES = 3
"""How often a slice is measured when others were busy; the quietest one counts."""


@dataclass(frozen=True)
class Caller:
    """One thread or task.

    Attributes:
        prepare: makes the arguments of one operation; not timed.
        operate: the operation: it returns, or returns something to await.

    """

    prepare: Callable[[], tuple[Any, ...]]
    operate: Callable[..., Any]


async def quietest(machine: Machine, work: Callable[[], Awaitable[T]]) -> tuple[T, Slice]:
    """Do the work, again while others are loud, and return the quietest try."""
    best: tuple[T, Slice] | None = None
    for _ in range(TRIES):
        with machine.watched() as watched:
            result = await work()
        if best is None or (watched.others or 0) < (best[1].others or 0):
            best = (result, watched)
        if not watched.noisy or not machine.wait_until_quiet():
            break
    return best


async def slice_of(machine: Machine, callers: list[Caller], seconds: float, *, sync: bool) -> dict[str, Any]:
    """Let the callers work for a while and return operations a second, percentiles (ms) and how loud others were."""
    # What is there by now is not looked through in the middle of a slice: that takes as long as the slice.
    gc.collect()
    gc.freeze()

    async def work() -> list[float]:
        # On a thread even when there is one caller: a sync program has no event loop running around it.
        return await (asyncio.to_thread(_threads, callers, seconds) if sync else _tasks(callers, seconds))

    times, watched = await quietest(machine, work)
    return {
        "n": len(times),
        "ops": len(times) / watched.seconds,
        "p50": statistics.median(times) * 1e3,
        "p95": percentile(times, 0.95) * 1e3,
        "p99": percentile(times, 0.99) * 1e3,
        "others": watched.others,
        "noisy": watched.noisy,
    }


def percentile(times: list[float], share: float) -> float:
    """Return the value below which ``share`` of the values lie."""
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


async def _tasks(callers: list[Caller], seconds: float) -> list[float]:
    end = time.perf_counter() + seconds

    async def work(caller: Caller) -> list[float]:
        times: list[float] = []
        while not times or time.perf_counter() < end:
            arguments = caller.prepare()
            began = time.perf_counter()
            await caller.operate(*arguments)
            times.append(time.perf_counter() - began)
        return times

    return [one for times in await asyncio.gather(*map(work, callers)) for one in times]


def _threads(callers: list[Caller], seconds: float) -> list[float]:
    end = time.perf_counter() + seconds

    def work(caller: Caller) -> list[float]:
        times: list[float] = []
        while not times or time.perf_counter() < end:
            arguments = caller.prepare()
            began = time.perf_counter()
            caller.operate(*arguments)
            times.append(time.perf_counter() - began)
        return times

    if len(callers) == 1:
        return work(callers[0])
    with ThreadPoolExecutor(len(callers)) as pool:
        return [one for times in pool.map(work, callers) for one in times]
