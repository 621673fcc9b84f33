"""What the processes of these kill tests do: work until they are killed, and apply a plan to what another one left."""

from pathlib import Path
from typing import Any

from runtime_persist.model.workspace import Workspace
from runtime_persist.worker import RegisteredGraph, Worker, recover
from tests.faults.victims import Hook, Tell
from tests.journal_kills.places import given, graph, shown
from tests.journal_kills.programs import GRAPH, open_runtime


def served(place: str, shape: str, port: int, policy: Any, folder: str | None, *, asynchronous: bool) -> Any:
    """The graph as a worker takes it; with a directory its attempts open an execution domain."""
    made = graph(place, shape, port, policy, asynchronous=asynchronous)
    if folder is None:
        return {GRAPH: made}
    return {GRAPH: RegisteredGraph(made, workspace=Workspace(Path(folder)), max_concurrency=1)}


def works(tell: Tell, hook: Hook, url: str, port: int, folder: str) -> None:
    """Queue a run and work on it, in a directory."""
    graphs = served("node", "call", port, "ask", folder, asynchronous=False)
    with open_runtime(url, hook) as runtime:
        runtime.bind(graphs[GRAPH].graph, name=GRAPH, max_concurrency=1)
        run = runtime.runs.start(GRAPH, given("node"), thread_id="t1")
        Worker(runtime, graphs, poll_seconds=0.02).run(until_idle=True)
        tell("ended", runtime.runs.get(run.run_id).status)


def applies(
    tell: Tell, _hook: Hook, url: str, run_id: str, plan: str, port: int, place: str, shape: str, policy: Any,
    way: str, folder: str | None = None,
) -> None:  # fmt: skip
    """Do what a plan says, with the graph; tell the run's status, what was done, and its output if it has one."""
    graphs = served(place, shape, port, policy, folder, asynchronous=way == "async")
    with open_runtime(url) as runtime:
        found = recover(runtime, run_id, plan=plan, graphs=graphs)
        output = shown(place, runtime.runs.result(run_id)) if found.status == "succeeded" else None
        tell("ended", (found.status, found.did, output))
