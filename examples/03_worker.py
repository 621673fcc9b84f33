"""Level 3: queue runs and let a worker execute them.

On the command line: `runtime-persist worker app:registry`, where registry is a dict like the one below.
"""

import sys
import tempfile
from pathlib import Path
from typing import TypedDict

from langgraph.graph import START, StateGraph

from runtime_persist import Runtime
from runtime_persist.worker import Worker


class State(TypedDict):
    name: str
    greeting: str


def greet(state: State) -> dict:
    return {"greeting": f"Hello {state['name']}"}


registry = {"greeter": StateGraph(State).add_node("greet", greet).add_edge(START, "greet").compile()}


def main(url: str) -> None:
    with Runtime.open(url) as runtime:
        runtime.bind(registry["greeter"], name="greeter")
        runs = [runtime.runs.start("greeter", {"name": name}, idempotency_key=name) for name in ("Ada", "Grace")]
        Worker(runtime, registry, slots=2).run(until_idle=True)
        for run in runs:
            print(run.result(timeout=10)["greeting"], "-", run.record().shown)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{Path(folder) / 'agents.db'}")
