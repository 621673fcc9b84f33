"""The bus on PostgreSQL: NOTIFY to send, and one connection of the process that listens.

A message is sent behind the commit it speaks of, in a statement of its own, not in the transaction: NOTIFY takes a lock
of the whole server at commit and keeps it until the commit is on disk, so transactions that notify are committed one by
one. A statement that only notifies writes nothing, and whatever has piled up meanwhile goes into one of them.

LISTEN is a state of a server session. Behind a transaction pooler it is lost without a word, so what arrives is tried
out: a message to oneself, through another connection. As long as it does not arrive, whoever waits looks for himself.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import logging
import secrets
from collections import deque
from typing import TYPE_CHECKING, Any

from sqlalchemy import ARRAY, Text, bindparam, column, func, select

from runtime_persist.drivers.bus import Bus
from runtime_persist.model import limits
from runtime_persist.plan import Query

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import asyncpg

_log = logging.getLogger("runtime_persist.postgresql")
_PART_BYTES = 6_200  # of a message: 7,999 characters of text at most, a header and base64
_AT_ONCE = 64  # parts of one statement
_PROBE_SECONDS = 2.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 30.0

_SENT = (
    func.unnest(bindparam("channels", type_=ARRAY(Text())), bindparam("messages", type_=ARRAY(Text())))
    .table_valued(column("channel", Text()), column("message", Text()))
    .render_derived(name="sent")
)
NOTIFY = Query("notify", select(func.pg_notify(_SENT.c.channel, _SENT.c.message)))

Waiting = tuple[str, bytes]


class PostgresBus(Bus):
    """NOTIFY and LISTEN on the driver's event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connect: Callable[[], Awaitable[asyncpg.Connection[Any]]],
        send: Callable[[Query, dict[str, Any]], Awaitable[Any]],
    ) -> None:
        """Listen on connections that ``connect`` opens; ``send`` runs a statement on one of the driver's."""
        super().__init__()
        self._loop = loop
        self._connect = connect
        self._send = send
        self._origin = secrets.token_hex(4)
        self._numbers = itertools.count(1)
        self._probe = f"rp_probe_{secrets.token_hex(8)}"
        self._waiting: deque[Waiting] = deque()
        self._waiting_bytes = 0
        self._sending: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._probed = asyncio.Event()
        self._works = False
        self._closed = False
        self._parts: dict[str, tuple[int, list[str]]] = {}

    @property
    def hears(self) -> bool:
        """Return whether the probe arrived."""
        return self._works

    def publish(self, channel: str, message: bytes) -> None:
        """Send behind what waits already; the same again waits once."""
        with self._lock:
            if self._closed or (channel, message) in self._last():
                return
            if self._waiting_bytes + len(message) > limits.BUS_WAITING_BYTES_MAX:
                return
            self._waiting_bytes += len(message)
            self._waiting.append((channel, message))
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody is told any more
            self._loop.call_soon_threadsafe(self._begin_to_send)

    def flush(self) -> None:
        """Wait for the statements that notify; called on any thread but the loop's."""
        asyncio.run_coroutine_threadsafe(self._sent(), self._loop).result()

    def close(self) -> None:
        """Stop sending and listening; called on any thread but the loop's, while the loop runs."""
        if not self._closed:
            asyncio.run_coroutine_threadsafe(self.end(), self._loop).result()

    def _listen(self, channel: str) -> None:  # noqa: ARG002 (all of them are looked at)
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._begin_to_listen)

    _unlisten = _listen

    def _last(self) -> list[Waiting]:
        """Return what waits behind, where a repetition is likely to be found."""
        return list(itertools.islice(reversed(self._waiting), 4))

    # --- sending, on the loop ---------------------------------------------------------------------------------------

    def _begin_to_send(self) -> None:
        if self._sending is None and self._waiting:
            self._sending = self._loop.create_task(self._send_all())

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                parts: list[Waiting | tuple[str, str]] = []
                while self._waiting and len(parts) < _AT_ONCE:
                    with self._lock:
                        channel, message = self._waiting.popleft()
                        self._waiting_bytes -= len(message)
                    parts += [(channel, text) for text in self._written(message)]
                channels, messages = [channel for channel, _ in parts], [text for _, text in parts]
                # What cannot be sent is lost, and found by looking.
                with contextlib.suppress(Exception):
                    await self._send(NOTIFY, {"channels": channels, "messages": messages})
        finally:
            self._sending = None

    def _written(self, message: bytes) -> list[str]:
        number = next(self._numbers)
        pieces = [message[at : at + _PART_BYTES] for at in range(0, len(message), _PART_BYTES)] or [b""]
        head = f"{self._origin}:{number}:{len(pieces)}"
        # The part's place makes texts unlike: of equal ones in a transaction the server delivers one.
        return [f"{head}:{place}:{base64.b85encode(piece).decode()}" for place, piece in enumerate(pieces)]

    # --- listening, on the loop -------------------------------------------------------------------------------------

    def _begin_to_listen(self) -> None:
        self._changed.set()
        if self._listening is None and not self._closed:
            self._listening = self._loop.create_task(self._stay_connected())

    async def _stay_connected(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while not self._closed:
            heard = False
            try:
                heard = await self._hear()
            except Exception as error:  # noqa: BLE001 (whatever it is: a connection that is lost is opened again)
                _log.debug("the connection that listens ended: %s", error)
            self._works = False
            pause = _FIRST_PAUSE_SECONDS if heard else min(pause * 2, _LONGEST_PAUSE_SECONDS)
            await asyncio.sleep(pause)

    async def _hear(self) -> bool:
        """Listen until the connection ends; return whether anything could be heard on it."""
        raw = await self._connect()
        ended = asyncio.Event()

        def over(_: object) -> None:
            ended.set()
            self._changed.set()

        raw.add_termination_listener(over)
        heard: set[str] = set()
        try:
            await raw.add_listener(self._probe, self._arrived)
            if not await self._probe_arrives():
                _log.warning("nothing arrives on a connection that listens (a transaction pooler?): looking instead")
                return False
            while not (self._closed or ended.is_set() or raw.is_closed()):
                self._changed.clear()
                wanted = set(self._channels())
                for channel in wanted - heard:
                    await raw.add_listener(channel, self._arrived)
                for channel in heard - wanted:
                    await raw.remove_listener(channel, self._arrived)
                if wanted - heard:  # what was sent before this moment was not heard
                    for channel in wanted - heard:
                        self._received(channel, None)
                heard = wanted
                self._works = True
                await self._changed.wait()
            return True
        finally:
            self._works = False
            raw.terminate()
            if not self._closed:
                self._missed()

    async def _probe_arrives(self) -> bool:
        self._probed.clear()
        await self._send(NOTIFY, {"channels": [self._probe], "messages": ["?"]})
        with contextlib.suppress(TimeoutError):
            # Not wait_for: on Python 3.11 it forgets a cancellation that comes with the answer.
            async with asyncio.timeout(_PROBE_SECONDS):
                await self._probed.wait()
        return self._probed.is_set()

    def _arrived(self, _connection: object, _pid: int, channel: str, text: object) -> None:
        if channel == self._probe:
            self._probed.set()
            return
        try:
            origin, number, parts, _, body = str(text).split(":", 4)
            if origin != self._origin:  # who is here was told at once
                self._put_together(channel, origin, (int(number), int(parts)), body)
        except ValueError:
            _log.warning("channel %s carries what this package did not send", channel)

    def _put_together(self, channel: str, origin: str, place: tuple[int, int], body: str) -> None:
        number, parts = place
        if parts == 1:
            self._received(channel, base64.b85decode(body))
            return
        known, pieces = self._parts.get(origin, (0, []))
        if known != number:  # parts come one behind the other
            pieces = []
        pieces.append(body)
        self._parts[origin] = number, pieces
        if len(pieces) == parts:
            del self._parts[origin]
            self._received(channel, b"".join(base64.b85decode(piece) for piece in pieces))

    async def _sent(self) -> None:
        self._begin_to_send()
        if self._sending is not None:
            await asyncio.wait([self._sending], timeout=_PROBE_SECONDS)

    async def end(self) -> None:
        """Send what waits, as far as that goes soon, and stop."""
        await self._sent()
        with self._lock:
            self._closed = True
        self._changed.set()
        tasks = [task for task in (self._sending, self._listening) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_PROBE_SECONDS)
