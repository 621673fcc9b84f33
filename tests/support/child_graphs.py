"""Graphs that children of the subprocess runtime execute: their nodes ask a test's station what to do."""

import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from typing import Any

from langgraph.config import get_config
from langgraph.types import interrupt

from runtime_persist import RetryPolicy, operation, workspace
from runtime_persist.worker import RegisteredGraph
from tests.fixtures.raw import wait_until
from tests.support.graphs import chain, says


@operation(name="charge", on_unknown="retry")
def charge(what: str, *, idempotency_key: str) -> str:
    return f"{what} {idempotency_key}"


def _thinks(told: Any, connection: socket.socket) -> None:
    """Call an operation that takes a ticket, or find what it said before; with ``stays`` the call never ends."""
    called = []

    @operation(name="model", key=str, ticket="loop", on_unknown="retry")
    def model(number: int) -> int:
        called.append(number)
        if told.get("stays"):
            connection.sendall(b"thinks\n")
            threading.Event().wait()
        return number

    model(told["number"])
    connection.sendall(b"called\n" if called else b"replayed\n")


def reports(state: Any) -> Any:
    """Say where this runs, and do what the test says."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(state["log"][0])
    thread_id = get_config()["configurable"]["thread_id"]
    hello = {"pid": os.getpid(), "where": threading.current_thread().name, "thread_id": thread_id}
    connection.sendall(json.dumps(hello).encode() + b"\n")
    with connection.makefile("rb") as reading:
        while True:
            line = reading.readline()
            if not line:
                return {"log": ["the test went away"]}
            told = json.loads(line)
            if told["do"] == "return":
                return {"log": [told["value"]]}
            _DO[told["do"]](told, connection)


def _starts(_: Any, connection: socket.socket) -> None:
    """Start a process that keeps the connection, and never ends by itself."""
    connection.set_inheritable(True)
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    subprocess.Popen(command, pass_fds=[connection.fileno()], stdin=subprocess.PIPE)
    connection.sendall(b"started\n")


def _blocks(told: Any, connection: socket.socket) -> None:
    """Keep the interpreter from running anything else: the call holds its lock."""
    ctypes.PyDLL(None).usleep(int(told["seconds"] * 1_000_000))
    connection.sendall(b"blocked\n")


def _charges(told: Any, connection: socket.socket) -> None:
    """Call an operation: it waits until the checkpoint before it is stored, so nothing is in flight behind it."""
    charge(told["what"])
    connection.sendall(b"charged\n")


def _drains(_: Any, connection: socket.socket) -> None:
    """Wait until the graph was asked to stop at its next step."""
    control = get_config()["configurable"]["__pregel_runtime"].control
    wait_until(lambda: control.drain_requested, "the graph is asked to stop")
    connection.sendall(b"drained\n")


def _exits(told: Any, _: Any) -> None:
    sys.stderr.write(told["says"])
    sys.stderr.flush()
    os._exit(told["code"])


def _raises(told: Any, _: Any) -> None:
    raise ValueError(told["says"])


def _leaves(told: Any, _: Any) -> None:
    sys.exit(told["says"])


def _works(told: Any, connection: socket.socket) -> None:
    """Work in a directory until somebody ends it."""
    with workspace(told["path"]):
        connection.sendall(b"works\n")
        threading.Event().wait()


_DO = {
    "work": _works,
    "charge": _charges,
    "think": _thinks,
    "drain": _drains,
    "start": _starts,
    "block": _blocks,
    "exit": _exits,
    "leave": _leaves,
    "raise": _raises,
}

GRAPH = chain({"reports": reports, "after": says("after")})
asking = chain({"asks": lambda _: {"log": [interrupt("why?")]}, "after": says("after")})

registry = {
    "g": RegisteredGraph(GRAPH, retry=RetryPolicy(max_attempts=2, backoff=0)),
    "asking": asking,
}
