"""Where nodes in other processes report, and are told what to do. Its connections also show when a process is gone."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tests.fixtures.raw import DEADLINE_SECONDS

if TYPE_CHECKING:
    import signal
    from types import TracebackType


class Visitor:
    """A node in some process, as the test knows it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.settimeout(DEADLINE_SECONDS)
        self._reading = connection.makefile("rb")
        said = json.loads(self._reading.readline())
        self.pid: int = said["pid"]
        self.where: str = said["where"]
        self.thread_id: str = said["thread_id"]

    def tell(self, do: str, **fields: Any) -> None:
        """Say what the node shall do."""
        self._connection.sendall(json.dumps({"do": do, **fields}).encode() + b"\n")

    def hears(self) -> str:
        """Wait until the node says that it has done what it was told."""
        return self._reading.readline().decode().strip()

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def until_gone(self) -> None:
        """Wait until no process has its connection any more: neither the node's nor one it started."""
        with contextlib.suppress(ConnectionResetError):  # gone with something unread
            self._reading.read()

    def close(self) -> None:
        self._reading.close()
        self._connection.close()


class Station:
    """A place that nodes come to: the address is part of their input."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.address = str(Path(self._folder.name) / "s")
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(self.address)
        self._listening.listen()
        self._listening.settimeout(DEADLINE_SECONDS)
        self._visitors: list[Visitor] = []

    def next(self) -> Visitor:
        """Wait for a node to report."""
        connection, _ = self._listening.accept()
        self._visitors.append(Visitor(connection))
        return self._visitors[-1]

    def nobody_waits(self) -> bool:
        """Whether no node has reported that was not asked for."""
        self._listening.settimeout(0)
        try:
            self._listening.accept()[0].close()
        except BlockingIOError:
            return True
        finally:
            self._listening.settimeout(DEADLINE_SECONDS)
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for visitor in self._visitors:
            visitor.close()
        self._listening.close()
        self._folder.cleanup()
