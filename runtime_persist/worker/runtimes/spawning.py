"""A worker's side of the spawner: it asks for children, and hears what they say and how they end."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

from runtime_persist.errors import RuntimeFailed
from runtime_persist.model import limits
from runtime_persist.worker.runtimes import messages

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

_START_SECONDS: Final = 60.0
_MODULE: Final = "runtime_persist.worker.runtimes.spawner"

Hear = Callable[[str, Any], None]
_Started = tuple[int, "Future[int | None]"]


class Child:
    """A process that was forked for one attempt.

    Attributes:
        pid: its number; its own process group has the same.
        errors: the end of what it wrote to its standard error.

    """

    def __init__(self, pid: int, channel: socket.socket, errors: int, hear: Hear) -> None:
        """Listen to it: ``hear`` is called with ``said`` and a message, and in the end with ``silent``."""
        self.pid = pid
        self.errors = ""
        self._channel = channel
        self._stderr = errors
        self._hear = hear
        self._thread = threading.Thread(target=self._listen, name=f"child-{pid}", daemon=True)
        self._thread.start()

    def send(self, message: Mapping[str, Any]) -> bool:
        """Send it a message; return whether it is still there to take it."""
        return messages.send(self._channel, message)

    def close(self) -> None:
        """Stop listening: it hears that its worker is gone."""
        with contextlib.suppress(OSError):
            self._channel.shutdown(2)  # wakes whoever reads
        self._thread.join()
        self._channel.close()
        os.close(self._stderr)

    def _listen(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._channel, selectors.EVENT_READ)
            selector.register(self._stderr, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._channel:
                        received = messages.receive(self._channel)
                        if received is None:
                            self._read_errors(selector, until_empty=True)
                            self._hear("silent", None)
                            return
                        self._hear("said", received[0])
                    else:
                        self._read_errors(selector, until_empty=False)

    def _read_errors(self, selector: selectors.BaseSelector, *, until_empty: bool) -> None:
        """Pass its standard error on to the worker's, and keep the end of it."""
        while True:
            try:
                data = os.read(self._stderr, 65_536)
            except BlockingIOError:
                return
            if not data:
                with contextlib.suppress(KeyError):
                    selector.unregister(self._stderr)
                return
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(data.decode(errors="replace"))
            self.errors = (self.errors + data.decode(errors="replace"))[-2 * limits.STDERR_TAIL_CHARS :]
            if not until_empty:
                return


class Spawner:
    """Forks children. It is started with the first one, and started anew when it died."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._wanted: dict[str, Future[_Started]] = {}
        self._ended: dict[int, Future[int | None]] = {}  # only its thread touches it

    def start(self) -> None:
        """Start it now (raises RuntimeFailed); the first child is there sooner then."""
        with self._lock:
            self._running()

    def spawn(self, mark: str, hear: Hear) -> Child:
        """Fork a child and return it; ``hear`` also gets ``exited`` and its exit code (None: nobody saw it).

        Raises:
            RuntimeFailed: no process can be started.

        """
        ours, theirs = messages.pair()
        reading, writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(reading, False)
        future: Future[_Started] = Future()
        try:
            with self._lock:
                channel = self._running()
                self._wanted[mark] = future
                _asked(messages.send(channel, {"mark": mark}, [theirs.fileno(), writing]))
            pid, ended = future.result(_START_SECONDS)
            _asked(messages.receive(ours) is not None)  # it leads a process group of its own from here on
        except BaseException as error:
            ours.close()
            os.close(reading)
            if isinstance(error, OSError | TimeoutError):
                msg = f"no child process could be started: {error}"
                raise RuntimeFailed(msg) from error
            raise
        finally:
            theirs.close()
            os.close(writing)
            self._wanted.pop(mark, None)
        child = Child(pid, ours, reading, hear)
        ended.add_done_callback(lambda done: hear("exited", done.result()))
        return child

    def close(self) -> None:
        """End the spawner, and with it whatever it forked."""
        with self._lock:
            self._end()

    # --- the process ----------------------------------------------------------------------------------------------

    def _running(self) -> socket.socket:
        if self._channel is not None and self._thread is not None and self._thread.is_alive():
            return self._channel
        self._end()
        ours, theirs = messages.pair()
        try:
            self._process = self._start(theirs)
        finally:
            theirs.close()
        received = messages.receive(ours)
        if received is None:
            ours.close()
            msg = f"the spawner ended at once (exit code {self._process.wait() if self._process else None})"
            raise RuntimeFailed(msg)
        self._channel = ours
        self._thread = threading.Thread(target=self._listen, args=(ours,), name="spawner", daemon=True)
        self._thread.start()
        return ours

    def _start(self, theirs: socket.socket) -> subprocess.Popen[bytes] | None:
        return subprocess.Popen(  # noqa: S603 (this interpreter, this package)
            [sys.executable, "-m", _MODULE, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C at a terminal is its worker's
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )

    def _end(self) -> None:
        if self._channel is not None:
            with contextlib.suppress(OSError):
                self._channel.shutdown(2)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        if self._channel is not None:
            self._channel.close()
        if self._process is not None:
            self._process.wait()
        self._process = self._channel = self._thread = None

    def _listen(self, channel: socket.socket) -> None:
        while (received := messages.receive(channel)) is not None:
            message = received[0]
            if "started" in message:
                pid = message["started"]
                ended = self._ended[pid] = Future()
                _settle(self._wanted.get(message["mark"]), (pid, ended))
            elif "exited" in message:
                _settle(self._ended.pop(message["exited"], None), message["status"])
        for wanted in list(self._wanted.values()):
            if not wanted.done():
                wanted.set_exception(RuntimeFailed("the spawner ended while a child was asked for"))
        for pid in list(self._ended):
            _settle(self._ended.pop(pid, None), None)


def _asked(there: bool) -> None:  # noqa: FBT001
    if not there:
        msg = "a child was asked for, and its process, or the one that forks it, ended at once"
        raise RuntimeFailed(msg)


def _settle(future: Future[Any] | None, value: Any) -> None:
    if future is not None and not future.done():
        future.set_result(value)
