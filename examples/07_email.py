"""An e-mail has no idempotency key: when its process dies in the call, a person is asked; nothing is sent twice."""

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

CONFIG = {"configurable": {"thread_id": "welcome-ada"}}


class State(TypedDict, total=False):
    sent: str


def make_graph(outbox: Path, *, dies: bool) -> Any:
    @operation(name="mail")  # on_unknown="ask": one mail too many is worse than a question
    def mail(to: str) -> str:
        with outbox.open("a") as server:
            server.write(f"{to}\n")
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)  # it is sent, and nobody has written that down
        return "sent"

    return (
        StateGraph(State)
        .add_node("welcome", lambda _: {"sent": mail("ada@example.com")})
        .add_edge(START, "welcome")
        .compile()
    )


def main(url: str, outbox: Path, *, dies: bool = False) -> None:
    with Runtime.open(url, lease_ttl=1.0) as runtime:
        desk = runtime.bind(make_graph(outbox, dies=dies), name="desk")
        if dies:
            desk.invoke({}, CONFIG)
        while True:
            try:
                desk.invoke(None, CONFIG)
            except ThreadOwned:  # the dead process's lease has not run out
                time.sleep(0.1)
            except OperationUnknown:
                break
        (run,) = runtime.runs.list(thread_id="welcome-ada")
        (question,) = runtime.runs.questions(run.run_id)
        print(run.shown, "- what became of", question.operation["name"], question.operation["request"])
        # a person looks at the mail server; `runtime-persist op resolve ID --happened` says the same
        runtime.runs.resolve(question.operation_id, happened=True, result="sent, says the server", by="Grace")
        print(desk.invoke(None, CONFIG)["sent"])
    print("mails:", len(outbox.read_text().splitlines()))


if __name__ == "__main__":
    if sys.argv[-1] == "dies":
        main(sys.argv[1], Path(sys.argv[2]), dies=True)
    with tempfile.TemporaryDirectory() as folder:
        url = sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{Path(folder) / 'agents.db'}"
        outbox = Path(folder) / "outbox"
        died = subprocess.run([sys.executable, __file__, url, outbox, "dies"], check=False)  # noqa: S603
        print("the first process:", signal.Signals(-died.returncode).name)
        main(url, outbox)
