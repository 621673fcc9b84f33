"""Who looks into a run, in a process of its own, whose memory is counted.

    python -m bench.big_run_sides make|RUN_ID WHERE

``make`` makes the run in an empty database and prints its id. Else each line of the input is the number of a question;
it answers with the nanoseconds that took, and to ``-1`` with the bytes of the most memory it ever had. It ends with
its input.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import TYPE_CHECKING, Any, TypedDict

from bench.big_value import _peak

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime_persist import Runtime

PEAK = -1
_HOST = "127.0.0.1"
_OK = 200


class State(TypedDict, total=False):
    """The state of a graph that makes one call and asks one question."""

    sent: str


def make(where: str) -> str:
    """Make a run that made a call and waits for an answer; return its id."""
    from langgraph.graph import START, StateGraph
    from langgraph.types import interrupt

    from runtime_persist import Runtime, operation

    send = operation(name="send")(lambda text: f"sent {text}")

    def node(_state: State) -> State:
        return {"sent": f"{send('hello')} {interrupt('once more?')}"}

    graph = StateGraph(State).add_node("node", node).add_edge(START, "node").compile()
    with Runtime.open(where) as runtime:
        runtime.bind(graph, name="big").invoke({"sent": ""}, {"configurable": {"thread_id": "t"}})
        (run,) = runtime.runs.list()
        return run.run_id


def _page(path: str) -> Callable[[Runtime, str], Any]:
    """Return how a page is asked for, as a server would."""

    def ask(runtime: Runtime, run_id: str) -> None:
        from runtime_persist.ui.app import create_app
        from runtime_persist.ui.security import Access

        app = create_app(runtime, Access(frozenset({_HOST})))
        said: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            said.append(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path.format(run_id=run_id),
            "raw_path": path.format(run_id=run_id).encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(b"host", _HOST.encode())],
            "client": (_HOST, 1),
            "server": (_HOST, 80),
        }
        asyncio.run(app(scope, receive, send))
        if said[0]["status"] != _OK:
            msg = f"{path} answered {said[0]['status']}"
            raise RuntimeError(msg)

    return ask


def _why(runtime: Runtime, run_id: str) -> None:
    from runtime_persist.engine import run
    from runtime_persist.inspector.why import load_why

    run(load_why(runtime.engine, runtime.checkpointer.serde, run_id))


def _inspect(runtime: Runtime, run_id: str) -> None:
    from runtime_persist.engine import run
    from runtime_persist.inspector import load_bundle

    run(load_bundle(runtime.engine, runtime.checkpointer.serde, run_id)).model_dump_json()


def _plan(runtime: Runtime, run_id: str) -> None:
    runtime.runs.recovery_plan(run_id)


QUESTIONS: dict[str, Callable[[Runtime, str], None]] = {
    "first page": _page("/"),
    "page of the run": _page("/runs/{run_id}"),
    "run why": _why,
    "inspect": _inspect,
    "recover plan": _plan,
}


def main() -> None:
    """Answer until the input ends."""
    run_id, where = sys.argv[1:]
    if run_id == "make":
        print(make(where))
        return
    from runtime_persist import Runtime

    asks = list(QUESTIONS.values())
    with Runtime.open(where, auto_setup=False) as runtime:
        os.write(1, b"0\n")
        for line in sys.stdin:
            if int(line) == PEAK:
                answer = _peak()
            else:
                began = time.monotonic_ns()
                asks[int(line)](runtime, run_id)
                answer = time.monotonic_ns() - began
            os.write(1, b"%d\n" % answer)


if __name__ == "__main__":
    main()
