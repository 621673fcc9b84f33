"""What a worker sends for one run of a graph of one node: to claim, to start, to execute and to end it."""

from __future__ import annotations

from typing import TypedDict

from langgraph.graph import START, StateGraph

from bench.counting import counting
from runtime_persist import Runtime
from runtime_persist.model import limits
from runtime_persist.model.evidence import IN_PROCESS
from runtime_persist.worker.capacity import Instance
from runtime_persist.worker.claiming import Claimer
from runtime_persist.worker.execute import Task
from runtime_persist.worker.registry import serve
from runtime_persist.worker.runtimes import Runtimes

_GRAPH = "one"
_RUNS = 6


class State(TypedDict, total=False):
    """The state of a graph that does nothing."""

    done: bool


async def _node(_state: State) -> State:
    return {"done": True}


def of_one_run(where: str) -> tuple[int, int]:
    """Return the round trips (SQLite: writing transactions) and the statements of one run, in steady state.

    The least of several runs: what is told to others, and renewed meanwhile, comes whenever it comes.
    """
    graph = StateGraph(State).add_node("node", _node).add_edge(START, "node").compile()
    counts = []
    with counting(where) as (counted_where, counted), Runtime.open(counted_where) as runtime:
        runtime.bind(graph, name=_GRAPH)
        served = {_GRAPH: serve(_GRAPH, graph)}
        instance = Instance(runtime.engine, 1, {_GRAPH: served[_GRAPH].versions})
        claimer = Claimer(runtime, served, instance, served)
        for _ in range(_RUNS):
            handle = runtime.runs.start(_GRAPH, {})
            instance.keep_reported([])
            counted.reset()
            owned, taken = claimer.claim()
            failed = Task(runtime, owned, taken, served, limits.STOP_GRACE_SECONDS, Runtimes((), IN_PROCESS)).run()
            counts.append((counted.commits, counted.statements))
            assert failed is None
            assert runtime.runs.get(handle.run_id).status == "succeeded"
    trips, statements = zip(*counts, strict=True)
    return min(trips), min(statements)
