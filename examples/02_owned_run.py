"""Level 2: owned runs. A payment is journalled; the approval arrives in a later call; nothing is paid twice."""

import operator
import sys
import tempfile
from pathlib import Path
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from runtime_persist import Runtime, operation


class State(TypedDict):
    log: Annotated[list[str], operator.add]


calls: list[str] = []


@operation(name="reserve", on_unknown="retry")
def reserve(seats: int, *, idempotency_key: str) -> str:
    calls.append(idempotency_key)
    return f"{seats} seats reserved"


def book(_: State) -> dict:
    first = reserve(2)  # the node runs again after the interrupt; this call does not
    approved = interrupt("pay 42.00?")
    return {"log": [first, f"approved by {approved}"]}


graph = StateGraph(State).add_node("book", book).add_edge(START, "book").compile()


def main(url: str) -> None:
    config = {"configurable": {"thread_id": "booking-1"}}
    with Runtime.open(url) as runtime:
        durable = runtime.bind(graph, name="booking")
        durable.invoke({"log": []}, config)
        (run,) = runtime.runs.list(thread_id="booking-1")
        print(run.shown, "-", runtime.runs.question(run.run_id)["interrupts"][0]["value"])
    with Runtime.open(url) as runtime:  # another process, another day
        durable = runtime.bind(graph, name="booking")
        print(durable.invoke(Command(resume="Ada"), config)["log"])
        print(runtime.runs.get(run.run_id).shown, "- calls made:", len(calls))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{Path(folder) / 'agents.db'}")
