"""One contestant of the part steps, in a process of its own: DBOS keeps its state in its module.

    python -m bench.step_sides KEY WHERE STEPS

Each line of its input is one workflow of so many steps; it answers with the nanoseconds from the first step's begin
to the last one's end. The step itself does nothing. It ends with its input.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import time
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME = "one"
_numbers = itertools.count(1)
_open = contextlib.ExitStack()  # until the process ends


class State(TypedDict, total=False):
    """The state of a graph whose one node makes all the steps."""

    spent: int


def nothing(number: int) -> int:
    """Be the step."""
    return number


def _timed(step: Callable[[int], int], steps: int) -> int:
    began = time.monotonic_ns()
    for number in range(steps):
        step(number)
    return time.monotonic_ns() - began


def ours(where: str, steps: int) -> Callable[[], int]:
    """Return a run whose node makes journalled calls: a start fence and a result each."""
    from langgraph.graph import START, StateGraph

    from runtime_persist import Runtime, operation

    step = operation(name=_NAME, on_unknown="retry")(nothing)
    graph = StateGraph(State).add_node("node", lambda _: {"spent": _timed(step, steps)}).add_edge(START, "node")
    durable = Runtime.open(where).bind(graph.compile(), name=_NAME)
    return lambda: durable.invoke({}, {"configurable": {"thread_id": f"t{next(_numbers)}"}})["spent"]


def dbos(where: str, steps: int) -> Callable[[], int]:
    """Return a workflow of DBOS: a result for each step."""
    from dbos import DBOS

    url = where if where.startswith("postgres") else f"sqlite:///{where}"
    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR"})
    step = DBOS.step(name="step")(nothing)
    workflow = DBOS.workflow(name=_NAME)(lambda: _timed(step, steps))
    DBOS.launch()
    return workflow


def tasks(where: str, steps: int) -> Callable[[], int]:
    """Return an entrypoint of LangGraph's functional API under its own saver: a task's result for each step."""
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.func import entrypoint, task

    kind = PostgresSaver if where.startswith("postgres") else SqliteSaver
    saver = _open.enter_context(kind.from_conn_string(where))
    saver.setup()
    one = task(nothing)

    @entrypoint(checkpointer=saver)
    def workflow(_given: int) -> int:
        return _timed(lambda number: one(number).result(), steps)

    return lambda: workflow.invoke(0, {"configurable": {"thread_id": f"t{next(_numbers)}"}})


SIDES = {"ours": ours, "dbos": dbos, "tasks": tasks}


def main() -> None:
    """Answer until the input ends."""
    key, where, steps = sys.argv[1:]
    workflow = SIDES[key.partition("-")[2]](where, int(steps))
    workflow()  # warm
    os.write(1, b"0\n")
    for _ in sys.stdin:
        os.write(1, b"%d\n" % workflow())
    os._exit(0)


if __name__ == "__main__":
    main()
