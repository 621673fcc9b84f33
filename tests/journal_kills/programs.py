"""What the processes of the kill matrix do: buy until they are killed, and go on with what another one left."""

import asyncio
from typing import Any

from runtime_persist import Runtime
from runtime_persist.engine import Engine
from runtime_persist.errors import RuntimePersistError
from runtime_persist.worker import Worker
from tests.faults.kit import LEASE_SECONDS
from tests.faults.victims import Hook, Tell
from tests.journal_kills.places import budget_of, given, graph, shown
from tests.support.graphs import config

WAYS = ("sync", "async", "worker")
"""A bound graph that is called, awaited, or worked on by a worker (whose runs are queued)."""
GRAPH = "shop"


def open_runtime(url: str, hook: Hook | None = None) -> Runtime:
    """Open a database whose driver tells the hook what it reaches; leases end when a test ends them."""
    return Runtime(Engine(url, auto_setup=False, lease_ttl=LEASE_SECONDS, hook=hook), None)


def lives(tell: Tell, hook: Hook, url: str, place: str, shape: str, port: int, policy: str, way: str) -> None:
    """Buy once; tell how it ended, if it ends."""
    made = graph(place, shape, port, policy, asynchronous=way == "async")
    with open_runtime(url, hook) as runtime:
        if way == "worker":
            runtime.bind(made, name=GRAPH)
            runtime.runs.start(GRAPH, given(place), thread_id="t1", budget=budget_of(place, shape))
        tell("ended", _ended(runtime, made, place, shape, way, given(place)))


def goes_on(tell: Tell, hook: Hook, url: str, place: str, shape: str, port: int, policy: str, way: str) -> None:
    """Go on with what another process left; tell how it ended."""
    made = graph(place, shape, port, policy, asynchronous=way == "async")
    with open_runtime(url, hook) as runtime:
        tell("ended", _ended(runtime, made, place, shape, way, None))


def _ended(runtime: Runtime, made: Any, place: str, shape: str, way: str, said: Any) -> tuple[str, Any]:
    """``("output", what it gave)`` or ``("error", its code)``; of a worker's run the status when it did not succeed."""
    if way == "worker":
        Worker(runtime, {GRAPH: made}, poll_seconds=0.02).run(until_idle=True)
        (run,) = runtime.runs.list(thread_id="t1")
        if run.status != "succeeded":
            return "error", run.status
        return "output", shown(place, runtime.runs.result(run.run_id))
    durable = runtime.bind(made, name=GRAPH, budget=budget_of(place, shape))
    try:
        output = (
            asyncio.run(durable.ainvoke(said, config("t1"))) if way == "async" else durable.invoke(said, config("t1"))
        )
    except RuntimePersistError as error:
        return "error", error.code
    return "output", shown(place, output)
