"""A payment with an idempotency key: the process dies when the card is charged, another one goes on, one charge."""

import json
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
from runtime_persist.errors import ThreadOwned

CONFIG = {"configurable": {"thread_id": "order-7"}}
LEASE_SECONDS = 1.0  # after that another process may go on; 30 is the default


class State(TypedDict, total=False):
    receipt: str


def make_graph(processor: Path, *, dies: bool) -> Any:
    @operation(name="charge", on_unknown="retry", redact={"card"})  # retry: the processor recognises the key
    def charge(order: str, cents: int, card: str, *, idempotency_key: str) -> str:
        with processor.open("a") as asked:
            asked.write(json.dumps({"key": idempotency_key, "order": order, "cents": cents, "last": card[-4:]}) + "\n")
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)  # it is charged, and nobody has written that down
        return f"{order}: {cents} cents"

    def pay(_: State) -> State:
        return {"receipt": charge("order-7", 4200, "4111 1111 1111 1111")}

    return StateGraph(State).add_node("pay", pay).add_edge(START, "pay").compile()


def main(url: str, processor: Path, *, dies: bool = False) -> None:
    with Runtime.open(url, lease_ttl=LEASE_SECONDS) as runtime:
        shop = runtime.bind(make_graph(processor, dies=dies), name="shop")
        if dies:
            shop.invoke({}, CONFIG)
        while True:
            try:
                print(shop.invoke(None, CONFIG)["receipt"])
                break
            except ThreadOwned:  # the dead process's lease has not run out
                time.sleep(0.1)
    requests = [json.loads(line) for line in processor.read_text().splitlines()]
    print("requests:", len(requests), "- charges:", len({request["key"] for request in requests}))


if __name__ == "__main__":
    if sys.argv[-1] == "dies":
        main(sys.argv[1], Path(sys.argv[2]), dies=True)
    with tempfile.TemporaryDirectory() as folder:
        url = sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{Path(folder) / 'agents.db'}"
        processor = Path(folder) / "processor"
        died = subprocess.run([sys.executable, __file__, url, processor, "dies"], check=False)  # noqa: S603
        print("the first process:", signal.Signals(-died.returncode).name)
        main(url, processor)
