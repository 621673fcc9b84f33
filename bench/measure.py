"""Slices: callers that repeat one operation for a fraction of a second, timed one by one."""

from __future__ import annotations

import asyncio
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.noise import Machine

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


async def slice_of(machine: Machine, callers: list[Caller], seconds: float, *, sync: bool) -> dict[str, Any]:
    """Let the callers work for a while and return operations a second, percentiles (ms) and how loud others were."""
    best: dict[str, Any] = {}
    for _ in range(TRIES):
        with machine.watched() as watched:
            # On a thread even when there is one caller: a sync program has no event loop running around it.
            times = await (asyncio.to_thread(_threads, callers, seconds) if sync else _tasks(callers, seconds))
        found = {
            "n": len(times),
            "ops": len(times) / watched.seconds,
            "p50": statistics.median(times) * 1e3,
            "p95": percentile(times, 0.95) * 1e3,
            "p99": percentile(times, 0.99) * 1e3,
            "others": watched.others,
            "noisy": watched.noisy,
        }
        if not best or (found["others"] or 0) < (best["others"] or 0):
            best = found
        if not watched.noisy or not machine.wait_until_quiet():
            break
    return best


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
