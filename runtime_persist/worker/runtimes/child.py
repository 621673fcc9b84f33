"""The child: executes one attempt in a process of its own, under the lease that its worker holds and renews.

It waits for its order, which is sent behind the start fence. Then it opens the database itself, commits checkpoints
and operations under the lease's epoch, and tells how the graph ended; its worker commits the end, when the process is
proved to be gone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any

from langgraph.runtime import RunControl

from runtime_persist.engine import OwnedRun
from runtime_persist.engine.endings import FAILED, Ending, Told, broken
from runtime_persist.errors import InvalidInput
from runtime_persist.model.lease import ExecutionLease
from runtime_persist.runtime import Runtime
from runtime_persist.telemetry.logs import log_as_told
from runtime_persist.worker.graph_run import GraphRun
from runtime_persist.worker.registry import load_attribute, load_registry, look_up, serve
from runtime_persist.worker.runtimes import messages
from runtime_persist.worker.workspaces import place_of

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping

    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.worker.registry import Served


def main(channel: socket.socket) -> int:
    """Execute the attempt that is ordered over ``channel``; return the exit code."""
    log_as_told()
    messages.send(channel, {"ready": os.getpid()})
    received = messages.receive(channel)
    if received is None:
        return 0  # nothing was ordered: the worker went away before its start fence
    order = received[0]["order"]
    attempt = _Attempt(order)
    threading.Thread(target=attempt.listen, args=(channel,), name="runtime-persist-worker-says", daemon=True).start()
    ending = attempt.run(lambda: messages.send(channel, {"running": True}))
    messages.send(channel, {"ending": ending.as_dict()})
    return 0


class _Attempt:
    def __init__(self, order: Mapping[str, Any]) -> None:
        self._order = order
        self._control = RunControl()
        self._owned: OwnedRun | None = None
        self._stop: str | None = None
        self._lock = threading.Lock()

    def run(self, began: Callable[[], object]) -> Ending:
        """Execute the graph to its end, and return that."""
        told = Told()
        try:
            sys.path[:] = self._order["path"]
            with _opened(self._order) as runtime:
                served = _served(self._order)
                owned = _owned(runtime, self._order)
                self._own(owned)
                runtime.engine.wishes.know(owned.lease.run_id, **self._order["read"])
                began()
                place = None if served.workspace is None else place_of(served.workspace, owned)
                grace = self._order["stop_grace_seconds"]
                GraphRun(runtime, owned, served.graph, self._control, grace, told, place).run()
        except BaseException as error:  # noqa: BLE001 (the worker is told)
            if told.ending is None:
                traceback.print_exc()
                return broken(error)
        return told.ending or Ending(kind=FAILED, code="NO_ENDING", summary="the graph ended without an ending")

    def _own(self, owned: OwnedRun) -> None:
        with self._lock:
            self._owned, stop = owned, self._stop
        if stop is not None:
            owned.stop(stop)

    def listen(self, channel: socket.socket) -> None:
        """Do what the worker says; end at once, with everything that was started, when it is gone."""
        while (received := messages.receive(channel)) is not None:
            message = received[0]
            if "drain" in message:
                self._control.request_drain(message["drain"])
            elif "stop" in message:
                with self._lock:
                    owned, self._stop = self._owned, message["stop"]
                if owned is not None:
                    owned.stop(message["stop"])
        with contextlib.suppress(ProcessLookupError):
            os.killpg(os.getpgid(0), signal.SIGKILL)


def _opened(order: Mapping[str, Any]) -> Runtime:
    reference = order["serde"]
    serde: SerializerProtocol | None = None
    if reference is not None:
        found = load_attribute(reference)
        serde = found() if callable(found) and not hasattr(found, "dumps_typed") else found
    return Runtime.open(
        order["url"],
        space=order["space"],
        schema=order["schema"],
        serde=serde,
        auto_setup=False,
        lease_ttl=order["lease_ttl"],
        strict=order["strict"],
        metadata_keys=order["metadata_keys"],
        max_value_bytes=order["max_value_bytes"],
    )


def _served(order: Mapping[str, Any]) -> Served:
    """Return the graph as this process finds it; the code may have changed since the worker began."""
    registry = load_registry(order["registry"])
    name = order["graph"]
    served = look_up({found: serve(found, given) for found, given in registry.items() if found == name}, name)
    if served.version != order["version"]:
        msg = (
            f"{order['registry']} has version {served.version} of graph {name!r} now, its worker {order['version']}: "
            "the code was changed since the worker began; start the worker anew"
        )
        raise InvalidInput(msg, graph=name)
    return served


def _owned(runtime: Runtime, order: Mapping[str, Any]) -> OwnedRun:
    """Return the run as this process writes for it. Its worker renews the lease."""
    engine = runtime.engine
    owned = OwnedRun(
        engine.coordinator,
        ExecutionLease(**order["lease"]),
        graph=order["graph"],
        serde=runtime.checkpointer.serde,
        content=engine.content,
        ttl=engine.lease_ttl,
        notifications=engine.notifications,
        max_value_bytes=engine.max_value_bytes,
    )
    owned.traceparent = order["traceparent"]
    return owned
