"""A runtime of your own: attempts are executed by another process, which reports by a token and holds no lease.

The worker dispatches (start fence first, then the order); the other process reports `running` and `succeeded` through
`runtime.attempts.report`. Here that is a child that opens the database itself; it could as well call an HTTP endpoint
of yours that does.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from langgraph.graph import StateGraph

from runtime_persist import Runtime
from runtime_persist.worker import AttemptRuntime, Dispatch, Life, RegisteredGraph, Sighting, Worker


class Elsewhere(AttemptRuntime):
    """Sends attempts away, and waits until somebody has reported their end."""

    name = "elsewhere"

    def __init__(self, url: str) -> None:
        self.url = url

    def check(self, runtime: Runtime, graph: str) -> None:
        """Every graph can be sent."""

    def execute(self, attempt: Dispatch) -> None:
        """Write the start fence, send the order, and wait for the end."""
        token = attempt.request_start(self.name, handle=json.dumps({"queue": "jobs"}), callback=True)
        order = {"url": self.url, "token": token, "run_id": attempt.owned.lease.run_id}
        command = [sys.executable, __file__, "--elsewhere"]
        subprocess.run(command, input=json.dumps(order), text=True, check=True)  # noqa: S603 (this file)

    def inspect(self, handle: dict) -> Sighting:
        """Nothing can be asked about a job here; its token tells."""
        return Sighting(Life.UNKNOWN, f"a job of queue {handle['queue']}")

    def stop(self, handle: dict) -> Sighting:
        """Nor can it be ended."""
        return self.inspect(handle)


def elsewhere() -> None:
    """The other process: it knows a token, and nothing of graphs, leases or epochs."""
    order = json.load(sys.stdin)
    with Runtime.open(order["url"], auto_setup=False) as runtime:
        report = runtime.attempts.report
        report(order["token"], "running", sequence=1)
        outcome = report(order["token"], "succeeded", sequence=2, result={"answer": 42})
        print("reported:", outcome.accepted, outcome.status)
        late = report(order["token"], "failed", sequence=3, error="too late")
        print("afterwards:", late.accepted, late.reason)


def main(url: str) -> None:
    """Start a run, and have it executed elsewhere."""
    graph = StateGraph(dict).add_node("never", lambda state: state).set_entry_point("never").compile()
    with Runtime.open(url) as runtime:
        runtime.bind(graph, name="remote")
        run = runtime.runs.start("remote", {"question": "?"})
        registry = {"remote": RegisteredGraph(graph, runtime="elsewhere")}
        Worker(runtime, registry, runtimes=[Elsewhere(url)]).run(until_idle=True)
        print(run.result(timeout=0)["answer"], "-", run.record().shown)


if __name__ == "__main__":
    if sys.argv[1:] == ["--elsewhere"]:
        elsewhere()
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{Path(folder) / 'agents.db'}")
