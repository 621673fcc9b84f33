"""The bus beside a file: a folder of Unix sockets, ``agents.db-live``, one for each channel that a process listens to.

A sender looks into the folder and connects to those of its channel. Where nobody listens there is nothing to send to,
and looking costs one ``stat``: the folder is read again only when it has changed. Whoever was killed leaves a socket
behind that nobody answers; the first who is refused there removes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import struct
import tempfile
import threading
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from runtime_persist.drivers.bus import Bus
from runtime_persist.model import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

SUFFIX = "-live"
_PATH_BYTES_MAX = 100  # of a socket's address (the system's limit is 104 or 108)
_NAME_BYTES_MAX = 60
_SETTLED_NS = 100_000_000  # a folder that changed just now may change once more within one tick of its clock
_FLUSH_SECONDS = 1.0
_LENGTH = struct.Struct(">I")


class SocketBus(Bus):
    """Sockets in a folder beside the database's file."""

    def __init__(self, file: str) -> None:
        """Listen to nothing yet: there is no thread and no folder before somebody does."""
        super().__init__()
        self._folder = Path(f"{os.path.abspath(file)}{SUFFIX}")  # noqa: PTH100 (the file itself may be a link)
        self._own: dict[str, tuple[str, asyncio.Server]] = {}
        self._peers: dict[str, _Peer] = {}
        self._calls: set[str] = set()
        self._listed: tuple[int, int, list[str]] = (-1, 0, [])
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._link: str | None = None
        self._closed = False

    @property
    def hears(self) -> bool:
        """Return whether it listens to anything."""
        return bool(self._own)

    def publish(self, channel: str, message: bytes) -> None:
        """Send to the sockets of a channel."""
        names = [name for name in self._others() if name.startswith(f"{channel}.")]
        if not names or (not message and channel in self._calls):
            return
        if not message:
            self._calls.add(channel)  # a mere call, and nobody has heard the one before yet
        self._call(lambda: self._send(channel, names, _LENGTH.pack(len(message)) + message))

    def flush(self) -> None:
        """Wait until what was published is handed to the system (or its receiver is gone, or too slow)."""
        if self._loop is not None:
            self._run(self._sent())

    def close(self) -> None:
        """Stop listening, remove what this process put into the folder, and end the thread."""
        with self._lock:
            first, self._closed = not self._closed, True
        if not first or self._loop is None:
            return
        loop, thread = self._loop, self._thread
        asyncio.run_coroutine_threadsafe(self._end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        if thread is not None:
            thread.join()
        loop.close()
        if self._link is not None:
            with contextlib.suppress(OSError):
                Path(self._link).unlink()
                Path(self._link).parent.rmdir()
        with contextlib.suppress(OSError):  # somebody else is still there
            self._folder.rmdir()

    def _listen(self, channel: str) -> None:
        """Listen before returning: what is sent from now on arrives."""
        with contextlib.suppress(OSError):  # a folder that nobody may write to: whoever waits looks for himself
            self._run(self._serve(channel))

    def _unlisten(self, channel: str) -> None:
        self._call(lambda: self._forget(channel))

    # --- the thread -------------------------------------------------------------------------------------------------

    def _started(self) -> asyncio.AbstractEventLoop | None:
        with self._lock:
            if self._closed:
                return None
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._work, name="runtime-persist-live", daemon=True)
                self._thread.start()
            return self._loop

    def _work(self) -> None:
        assert self._loop is not None  # noqa: S101 (the thread is started behind it)
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _call(self, what: Callable[[], object]) -> None:
        loop = self._started()
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # closed meanwhile
                loop.call_soon_threadsafe(what)

    def _run(self, what: Coroutine[Any, Any, None]) -> None:
        loop = self._started()
        if loop is None or threading.current_thread() is self._thread:
            what.close()
            return
        asyncio.run_coroutine_threadsafe(what, loop).result()

    # --- listening, on the loop -------------------------------------------------------------------------------------

    async def _serve(self, channel: str) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        name = f"{channel}.{secrets.token_hex(4)}"

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while True:
                    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
                    self._received(channel, await reader.readexactly(length))
            except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                writer.close()

        server = await asyncio.start_unix_server(connected, self._address(name))
        self._own[channel] = name, server
        self._listed = (-1, 0, [])

    def _forget(self, channel: str) -> None:
        name, server = self._own.pop(channel, ("", None))
        if server is not None:
            server.close()
            self._remove(name)

    def _remove(self, name: str) -> None:
        with contextlib.suppress(OSError):
            (self._folder / name).unlink()

    def _address(self, name: str) -> str:
        """Return the path of a socket; a folder with a long name is reached through a link with a short one."""
        path = str(self._folder / name)
        if len(os.fsencode(str(self._folder))) + _NAME_BYTES_MAX <= _PATH_BYTES_MAX:
            return path
        if self._link is None:
            self._link = str(Path(tempfile.mkdtemp(prefix="rp")) / "d")
            Path(self._link).symlink_to(self._folder)
        return f"{self._link}/{name}"

    # --- sending ----------------------------------------------------------------------------------------------------

    def _others(self) -> list[str]:
        """Return the names of other processes' sockets."""
        try:
            changed = self._folder.stat().st_mtime_ns
        except OSError:
            return []
        known, looked, names = self._listed
        if known != changed or looked - known < _SETTLED_NS:
            looked = time.time_ns()
            with contextlib.suppress(OSError):
                own = {name for name, _ in list(self._own.values())}
                names = [path.name for path in self._folder.iterdir() if path.name not in own]
                self._listed = changed, looked, names
        return names

    def _send(self, channel: str, names: list[str], frame: bytes) -> None:
        self._calls.discard(channel)  # before it is sent: whoever finds it here is heard
        for name in names:
            peer = self._peers.get(name)
            if peer is None:
                peer = self._peers[name] = _Peer(self._address(name))
                peer.task = asyncio.ensure_future(self._talk(name, peer))
            peer.put(frame)

    async def _talk(self, name: str, peer: _Peer) -> None:
        """Send to one socket until it is gone."""
        try:
            await peer.talk()
        except (ConnectionRefusedError, FileNotFoundError):
            self._remove(name)  # its process was killed
        except OSError:
            pass
        finally:
            self._peers.pop(name, None)
            peer.sent.set()

    async def _sent(self) -> None:
        waiting = [asyncio.ensure_future(peer.sent.wait()) for peer in self._peers.values()]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=_FLUSH_SECONDS)
            for one in late:
                one.cancel()

    async def _end(self) -> None:
        await self._sent()
        for channel in list(self._own):
            self._forget(channel)
        tasks = [peer.task for peer in self._peers.values() if peer.task is not None]
        for task in tasks:
            task.cancel()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others)


class _Peer:
    """Somebody who listens: what waits to be sent to him. When it is too much, it is dropped."""

    def __init__(self, address: str) -> None:
        self.task: asyncio.Task[None] | None = None
        self._address = address
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._more = asyncio.Event()
        self.sent = asyncio.Event()

    def put(self, frame: bytes) -> None:
        if self._bytes + len(frame) > limits.BUS_WAITING_BYTES_MAX:
            return
        self._waiting.append(frame)
        self._bytes += len(frame)
        self.sent.clear()
        self._more.set()

    async def talk(self) -> None:
        reader, writer = await asyncio.open_unix_connection(self._address)
        gone = asyncio.ensure_future(reader.read(1))  # he says nothing: it ends with the connection
        try:
            while True:
                while self._waiting:
                    frame = self._waiting.popleft()
                    self._bytes -= len(frame)
                    writer.write(frame)
                    await writer.drain()
                self._more.clear()
                self.sent.set()
                more = asyncio.ensure_future(self._more.wait())
                await asyncio.wait({more, gone}, return_when=asyncio.FIRST_COMPLETED)
                more.cancel()
                if gone.done():
                    return
        finally:
            gone.cancel()
            writer.close()
