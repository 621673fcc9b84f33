"""A payment run stands still: who gets one file of it finds out why with three commands, without database or app."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph

from runtime_persist import Runtime, operation
from runtime_persist.errors import OperationUnknown, ThreadOwned

CONFIG = {"configurable": {"thread_id": "order-7"}}


class State(TypedDict, total=False):
    paid: str


def make_graph(*, dies: bool) -> Any:
    @operation(name="pay", redact={"card"})
    def pay(order: str, card: str) -> str:
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)  # the request may have arrived, or not
        return f"{order} paid by {card[-4:]}"

    def node(_state: State) -> State:
        return {"paid": pay("order-7", card="4111111111111111")}

    return StateGraph(State).add_node("checkout", node).add_edge(START, "checkout").compile()


def command(*arguments: str, at: str | None = None) -> str:
    """Run the command line in a process of its own; ``at``: a database."""
    environment = os.environ | {"COLUMNS": "150"} | ({"RUNTIME_PERSIST_URL": at} if at else {})
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "runtime_persist.cli", *arguments],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


def production(url: str, *, dies: bool = False) -> str:
    """Let the payment's process die in its call, and another one come to it; return the run's id."""
    with Runtime.open(url, lease_ttl=1.0) as runtime:
        shop = runtime.bind(make_graph(dies=dies), name="shop")
        if dies:
            shop.invoke({}, CONFIG)
        while True:
            try:
                shop.invoke(None, CONFIG)
            except ThreadOwned:  # the dead process's lease has not run out
                time.sleep(0.1)
            except OperationUnknown:  # it may have been paid: a person has to say so
                return runtime.runs.list(thread_id="order-7")[0].run_id


def support(run_id: str, file: str) -> None:
    """Three commands on the file; the second says what is wrong, the third what would be done about it."""
    for asked in (
        ("bundle", "verify", file),
        ("run", "why", run_id, "--bundle", file),
        ("recover", "plan", run_id, "--bundle", file),
    ):
        print("$ runtime-persist", *("order-7.bundle" if word == file else word for word in asked))
        print(command(*asked))


if __name__ == "__main__":
    if sys.argv[-1] == "dies":
        production(sys.argv[1], dies=True)
    with tempfile.TemporaryDirectory() as folder:
        url = sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{Path(folder) / 'agents.db'}"
        died = subprocess.run([sys.executable, __file__, url, "dies"], check=False)  # noqa: S603
        print("the first process:", signal.Signals(-died.returncode).name)
        run_id = production(url)
        file = str(Path(folder) / "order-7.bundle")
        command("bundle", "export", run_id, file, at=url)
        support(run_id, file)
