"""What the processes of the soak tests run."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph.config import get_config

from runtime_persist import Runtime, operation
from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from runtime_persist.errors import RuntimePersistError
from runtime_persist.worker import RegisteredGraph, Worker
from tests.support.checkpoints import TASK, at, new_checkpoint
from tests.support.graphs import chain, says
from tests.support.way import ASYNC, SYNC, Way

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.processes import Word

GRAPH = "soak"
LEASE_SECONDS = 2.0
SHORTEST_CALL, LONGEST_CALL = 0.05, 0.35  # seconds


class Outside:
    """The world outside: a file with a line for each call that reached it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, *words: object) -> None:
        """Add a line; the kernel keeps the lines of processes apart, and what is written outlives its writer."""
        line = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(line, (" ".join(str(word) for word in words) + "\n").encode())
        finally:
            os.close(line)

    def lines(self) -> list[list[str]]:
        """Return the words of each line."""
        return [line.split() for line in self.path.read_text().splitlines()] if self.path.exists() else []


def graph(outside: Outside, longer: float = 1) -> Any:
    """A step, a journalled call that takes a while and reaches the outside in its middle, and a step.

    ``longer``: how many times as long a call takes.
    """

    @operation(name="effect", on_unknown="retry")
    def effect(number: int, *, idempotency_key: str) -> str:
        lease = get_config()["configurable"]["__pregel_checkpointer"].owned_run.lease
        takes = SHORTEST_CALL + (LONGEST_CALL - SHORTEST_CALL) * (number % 16) / 15
        takes *= longer
        time.sleep(takes / 2)  # the call is on its way
        outside.append(lease.run_id, idempotency_key, lease.epoch)
        time.sleep(takes / 2)  # and so is its answer
        return f"done {number}"

    return chain(
        {"before": says("before"), "call": lambda state: {"log": [effect(state["n"])]}, "after": says("after")}
    )


def result_of(number: int) -> list[str]:
    """Return the log that a run given ``number`` ends with."""
    return ["before", f"done {number}", "after"]


def worker(word: Word, url: str, outside: str, troubles: str, slots: int, places: int, longer: float) -> bool:
    """Work until SIGTERM; what ended in another way than ``finished`` is written down."""
    told = Outside(Path(troubles))

    def report(what: str, facts: Mapping[str, Any]) -> None:
        if what not in {"claimed", "finished"}:
            told.append(what, facts.get("code", "-"), facts.get("run_id", "-"))

    with Runtime.open(url, lease_ttl=LEASE_SECONDS) as runtime:
        options: Any = {"slots": slots, "poll_seconds": 0.05, "sweep_seconds": 0.5, "report": report}
        served = RegisteredGraph(graph(Outside(Path(outside)), longer), max_concurrency=places)
        working = Worker(runtime, {GRAPH: served}, **options)
        signal.signal(signal.SIGTERM, lambda *_: working.stop())
        word.say("ready", runtime.engine.worker_id)
        return working.run()


# --- savers without a lease -----------------------------------------------------------------------------------------

ASYNC_CALLERS, SYNC_CALLERS = 24, 6
STALE = "STALE_WRITER"


async def _continue(way: Way, saver: Any, acked: Outside, thread_id: str) -> None:
    """Load a thread's head, put the next step, and one write behind it; what was acknowledged is written down."""
    found = await way(saver, "get_tuple", at(thread_id))
    parent = "-" if found is None else found.checkpoint["id"]
    log = [] if found is None else found.checkpoint["channel_values"]["log"]
    values = {"log": [*log, f"step {len(log)}"]}
    made = new_checkpoint(values, {"log": str(len(log) + 1)})
    place = at(thread_id) if found is None else found.config
    place = await way(saver, "put", place, made, {"step": len(log)}, {"log": str(len(log) + 1)})
    acked.append("put", thread_id, made["id"], parent)
    await way(saver, "put_writes", place, [("log", ["next"])], TASK)
    acked.append("write", thread_id, made["id"], TASK)


def saver_caller(word: Word, url: str, acked: str, threads: list[str]) -> int:
    """Continue threads that other processes continue too, in 24 tasks and 6 threads, until SIGTERM.

    Returns how many steps were refused because somebody else was quicker; any other error is raised.
    """
    told = Outside(Path(acked))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    refused: list[str] = []

    async def calls(way: Way, saver: Any) -> None:
        chance = random.Random()
        while not stop.is_set():
            try:
                await _continue(way, saver, told, chance.choice(threads))
            except RuntimePersistError as error:
                if error.code != STALE:
                    raise
                refused.append(error.code)

    async def everybody(saver: Any) -> None:
        blocking = [asyncio.to_thread(SYNC.run, calls(SYNC, saver)) for _ in range(SYNC_CALLERS)]
        await asyncio.gather(*(calls(ASYNC, saver) for _ in range(ASYNC_CALLERS)), *blocking)

    with WorkflowCheckpointAdapter.from_conn_string(url) as saver:
        word.say("ready", str(os.getpid()))
        asyncio.run(everybody(saver))
    return len(refused)
