"""The subprocess runtime in tests: a worker in this process, and workers in processes that are killed."""

from __future__ import annotations

import json
import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from runtime_persist import Runtime
from runtime_persist.engine import Engine
from runtime_persist.worker import Life, RegisteredGraph, Sighting, SubprocessRuntime, Worker
from runtime_persist.worker.runtimes import spawner as server
from runtime_persist.worker.runtimes.spawning import Spawner
from tests.support import child_graphs
from tests.support.graphs import chain, says

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from runtime_persist.worker import Dispatch
    from runtime_persist.worker.runtimes.base import Handle
    from tests.support.processes import Word

REGISTRY = "tests.support.child_graphs:registry"


class ForkedSpawner(Spawner):
    """A spawner that a process with one thread forks: what it would import is there already."""

    def _start(self, theirs: socket.socket) -> None:
        pid = os.fork()
        if pid:
            self.pid = pid
            return
        os.closerange(3, theirs.fileno())
        os.closerange(theirs.fileno() + 1, 65_536)
        try:
            server.serve(theirs)
        finally:
            os._exit(0)


@contextmanager
def working(runtime: Runtime, children: SubprocessRuntime, **options: Any) -> Iterator[Worker]:
    """A worker on a thread of this process."""
    options = {"poll_seconds": 0.02, "default_runtime": "subprocess"} | options
    worker = Worker(runtime, child_graphs.registry, runtimes=[children], **options)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        worker.stop()
        thread.join()


def worker(
    word: Word, url: str, *, lease_ttl: float = 30.0, kill_at: str | None = None, default_runtime: str = "subprocess"
) -> None:
    """Work in children until SIGTERM; die at a cut of a command, when one is named."""

    def hook(cut: str) -> None:
        if cut == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
            threading.Event().wait()

    spawner = ForkedSpawner()
    spawner.start()
    engine = Engine(url, lease_ttl=lease_ttl, auto_setup=False, hook=hook)
    serde = Runtime.open(url, auto_setup=False).checkpointer.serde
    with Runtime(engine, serde) as runtime, SubprocessRuntime(REGISTRY, spawner=spawner) as children:
        working = Worker(
            runtime, child_graphs.registry, runtimes=[children], default_runtime=default_runtime, poll_seconds=0.02
        )
        signal.signal(signal.SIGTERM, lambda *_: working.stop())
        word.say("ready", spawner.pid)
        working.run()


class Elsewhere:
    """A runtime that sends attempts away, and hears of them no more.

    Attributes:
        token: of the attempt it sent last.

    """

    name = "elsewhere"

    def __init__(self) -> None:
        self.token: str | None = None

    def check(self, runtime: Runtime, graph: str) -> None:
        """Every graph can be sent."""

    def execute(self, attempt: Dispatch) -> None:
        self.token = attempt.request_start(self.name, json.dumps({"queue": "jobs"}), callback=True)

    def inspect(self, handle: Handle) -> Sighting:
        return Sighting(Life.UNKNOWN, f"a job of queue {handle['queue']}")

    def stop(self, handle: Handle) -> Sighting:
        return self.inspect(handle)


class _Dies(Elsewhere):
    def execute(self, attempt: Dispatch) -> None:
        super().execute(attempt)
        os.kill(os.getpid(), signal.SIGKILL)


def dies_behind_its_start_fence(word: Word, url: str) -> None:
    """Claim a run of ``g``, send its attempt elsewhere, and die."""
    word.say("ready")
    with Runtime.open(url) as runtime:
        graph = RegisteredGraph(chain({"never": says("never")}), runtime="elsewhere")
        Worker(runtime, {"g": graph}, runtimes=[_Dies()], poll_seconds=0.02).run()
