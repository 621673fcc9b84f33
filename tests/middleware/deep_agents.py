"""A deep agent with a sub-agent, each with a journal of its own: ``python -m tests.middleware.deep_agents``.

Needs deepagents, which is no dependency of the tests (see test_deep_agents.py).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage

from runtime_persist import Budget, Runtime
from runtime_persist.adapters.middleware import JournalMiddleware
from runtime_persist.engine import run
from runtime_persist.inspector.operations import load_operations
from tests.fixtures.raw import wait_until
from tests.middleware.agents import Scripted, payer, wants
from tests.soak.programs import Outside
from tests.support.graphs import config

CHIEF = (
    wants(
        ("pay", {"what": "a"}, "call-a"),
        ("write_file", {"file_path": "/note.txt", "content": "paid a"}, "call-file"),
        ("task", {"description": "pay b", "subagent_type": "clerk"}, "call-task"),
    ),
    AIMessage(content="all is paid"),
)
CLERK = (wants(("pay", {"what": "b"}, "call-b")), AIMessage(content="b is paid"))


def made(runtime: Runtime, outside: Outside, *, dies: bool) -> Any:
    """The agent; ``dies``: its process is killed when the clerk's payment has reached the outside.

    And when what the chief's other tools did is stored.
    """
    from deepagents import create_deep_agent

    def told(what: str, key: str) -> None:
        outside.append(f"pay-{what}", key)
        if dies and what == "b":
            wait_until(lambda: {("pay", "succeeded"), ("write_file", "succeeded")} <= stored(), "the others are stored")
            os.kill(os.getpid(), signal.SIGKILL)
            threading.Event().wait()

    def stored() -> set[tuple[str, str]]:
        return {(row.name, row.status) for row in run(load_operations(runtime.engine, None, 50, unknown=False))}

    def journal() -> JournalMiddleware:
        return JournalMiddleware(tools={"pay": "retry", "write_file": "retry", "task": "inside"})

    def model(name: str, script: Any) -> Scripted:
        return Scripted(script=script, called=lambda number, _: outside.append(f"{name}{number}"))

    pay = payer(told)
    clerk = {
        "name": "clerk",
        "description": "pays",
        "system_prompt": "pay",
        "model": model("clerk", CLERK),
        "tools": [pay],
        "middleware": [journal()],
    }
    chief = model("chief", CHIEF)
    return create_deep_agent(model=chief, tools=[pay], subagents=[clerk], middleware=[journal()])  # type: ignore[list-item]


def main(url: str, path: str, mode: str) -> None:
    """Start the agent (and die), or go on with it and print what came of it."""
    with Runtime.open(url, lease_ttl=2.0) as runtime:
        agent = made(runtime, Outside(Path(path)), dies=mode == "dies")
        graph = runtime.bind(agent, name="deep", budget=Budget(loops=9, per_invocation=Budget(loops=2)))
        said = {"messages": [{"role": "user", "content": "pay a and b"}]} if mode == "dies" else None
        output = graph.invoke(said, config())
        record = runtime.runs.list()[0]
        found = {
            "texts": [message.text for message in output["messages"][2:]],
            "files": sorted(output["files"]),
            "loops": list(record.budget["loops"]),
            "status": record.status,
        }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
