"""Level 1: a checkpointer in one line. Two writers on one thread: the stale one is refused."""

import operator
import sys
import tempfile
import threading
from pathlib import Path
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph

from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from runtime_persist.errors import StaleWriter


class State(TypedDict):
    n: Annotated[int, operator.add]


def main(url: str) -> None:
    config = {"configurable": {"thread_id": "t1"}}
    moved: list[bool] = []

    def add_one(_: State) -> dict:
        if not moved:  # while this node works, somebody else moves the thread on
            moved.append(True)
            other = threading.Thread(target=graph.invoke, args=({"n": 0}, config))
            other.start()
            other.join()
        return {"n": 1}

    with WorkflowCheckpointAdapter.from_conn_string(url) as saver:
        graph = StateGraph(State).add_node("add", add_one).add_edge(START, "add").compile(checkpointer=saver)
        try:
            graph.invoke({"n": 0}, config, durability="sync")
        except StaleWriter as error:
            print(error.code, "-", error.message.split(";", maxsplit=1)[0])
        print("n =", graph.get_state(config).values["n"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{Path(folder) / 'agents.db'}")
