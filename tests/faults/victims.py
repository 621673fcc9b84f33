"""The fork server: one warm process that has imported everything and opened nothing. Victims are forked from it.

Started as ``python -m tests.faults.victims FD MODULE…``; talks over the socket FD. A victim reports over a pipe whose
reading end goes to the tests: what it reached, what was acknowledged to it, what it died of if not of a signal.
"""

import gc
import importlib
import os
import pickle
import signal
import socket
import struct
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

from runtime_persist.commands import COMMANDS
from runtime_persist.commands.parts.spec import Command, HotCommand
from runtime_persist.coordinator import CommitCoordinator, CommitReceipt
from runtime_persist.coordinator.transaction import bundle_of
from runtime_persist.dialects import Dialect, dialect_of, parse_url
from runtime_persist.drivers import open_driver
from runtime_persist.model.keys import SpaceKeys
from runtime_persist.plan import Bundle
from runtime_persist.testing.cuts import queries_of

HEADER = struct.Struct("!I")
Tell = Callable[[str, Any], None]


def send(channel: socket.socket, message: Any, fds: tuple[int, ...] = ()) -> None:
    data = pickle.dumps(message)
    socket.send_fds(channel, [HEADER.pack(len(data)) + data], fds)


def receive(channel: socket.socket) -> tuple[Any, list[int]] | None:
    """Receive a message and the descriptors that came with it; None at the end."""
    first, fds, _, _ = socket.recv_fds(channel, HEADER.size, 1)
    if not first:
        return None
    (size,) = HEADER.unpack(first)
    data = b""
    while len(data) < size:
        data += channel.recv(size - len(data))
    return pickle.loads(data), fds  # noqa: S301 (both ends are ours)


# --- inside a victim ------------------------------------------------------------------------------------------------


class Hook:
    """Reports every cut that is reached; at the one it was told, the process kills itself."""

    def __init__(self, tell: Tell, kill_at: str | None, nth: int) -> None:
        self._tell = tell
        self._kill = (kill_at, nth)
        self._seen: Counter[str] = Counter()

    def __call__(self, cut: str) -> None:
        self._tell("reached", cut)
        self._seen[cut] += 1
        if (cut, self._seen[cut]) == self._kill:
            os.kill(os.getpid(), signal.SIGKILL)
            threading.Event().wait()  # nothing more is done between the signal and the end


WARM: dict[str, Dialect] = {}


def send_command(tell: Tell, hook: Hook, url: str, space: str, secret: bytes, command: Command) -> None:
    """Commit one command, say that it was acknowledged, and wait to be killed."""
    parsed = parse_url(url)
    coordinator = CommitCoordinator(open_driver(parsed, WARM[parsed.dialect], hook), SpaceKeys(space, secret))
    receipt: CommitReceipt = coordinator.commit(command).result()
    tell("acknowledged", receipt)
    threading.Event().wait()


def _run(task: dict[str, Any], writing: int) -> None:
    def tell(kind: str, value: Any) -> None:
        data = pickle.dumps((kind, value))
        os.write(writing, HEADER.pack(len(data)) + data)

    try:
        module, _, name = task["program"].partition(":")
        program = getattr(importlib.import_module(module), name)
        program(tell, Hook(tell, task["kill_at"], task["nth"]), **task["args"])
    except BaseException:  # noqa: BLE001 (whatever it is: the test shows it)
        tell("error", traceback.format_exc())
        os._exit(1)
    os._exit(0)


# --- the server -----------------------------------------------------------------------------------------------------


def warm_up() -> None:
    """Compile every statement once; no connection is opened."""
    for url in ("sqlite:///file", "postgresql://host/name"):
        dialect = dialect_of(parse_url(url))  # what engines share
        WARM[dialect.name] = dialect
        for spec in COMMANDS.values():
            if isinstance(spec, HotCommand):
                dialect.bundle(bundle_of(spec))
            else:
                for query in queries_of(spec):
                    _ = dialect.bundle(query) if isinstance(query, Bundle) else dialect.query(query)
    import asyncpg
    import asyncpg.pgproto.pgproto  # noqa: F401

    gc.collect()
    gc.freeze()


def serve(channel: socket.socket) -> None:
    if threading.active_count() != 1:
        raise RuntimeError("victims are forked from a process with one thread")
    send(channel, "ready")
    while (received := receive(channel)) is not None:
        (kind, value), _ = received
        if kind == "reap":
            _, status = os.waitpid(value, 0)
            send(channel, os.waitstatus_to_exitcode(status))
            continue
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            channel.close()
            os.close(reading)
            _run(value, writing)
        os.close(writing)
        send(channel, pid, (reading,))
        os.close(reading)


def main() -> None:
    for name in sys.argv[2:]:
        importlib.import_module(name)
    warm_up()
    serve(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    # Programs look WARM up in this module under its name, not in __main__.
    from tests.faults import victims

    victims.main()
