"""One client's connection through the proxy, relayed both ways."""

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass, field
from typing import Literal, Protocol

from runtime_persist.testing._pg_wire import (
    ASKS_FOR_DATA,
    CANCEL_REQUEST,
    ENDS_EXCHANGE,
    GSS_REQUEST,
    MUST_GO_OUT,
    SSL_REQUEST,
    Message,
    Statement,
    StatementBook,
    read_message,
    read_startup,
)


class Gate(Protocol):
    """A hold, as a link sees it."""

    async def stand(self) -> bool:
        """Report the exchange and wait for the verdict: whether it may go on."""
        ...


class Watcher(Protocol):
    """The proxy, as a link sees it."""

    def note(self, message: Message, statement: Statement | None) -> None:
        """Count a client message."""
        ...

    def take_hold(
        self,
        when: Literal["before_send", "after_reply"],
        statements: list[Statement],
    ) -> Gate | None:
        """A hold for these statements, if one was set."""
        ...


@dataclass(slots=True)
class Exchange:
    """What the client sends up to Sync or a simple query, and the server's answer up to ReadyForQuery."""

    reply_hold: Gate | None = None
    withheld: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class Side:
    """One of a link's two connections."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


class Link:
    """Relays one client until either side closes, a hold drops it, or `drop` is called."""

    def __init__(self, watcher: Watcher, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.ended = asyncio.Event()
        self._watcher = watcher
        self._client = Side(reader, writer)
        self._server: Side | None = None
        self._task: asyncio.Task[None] | None = None
        self._dropped = False
        self._book = StatementBook()
        # Exchanges that the server has not answered yet, oldest first. The login is the first one.
        self._open: deque[Exchange] = deque([Exchange()])
        # Whether the client is still sending the youngest of them.
        self._sending = False

    def drop(self) -> None:
        """Cut both connections at once; whatever is under way or held is lost."""
        self._dropped = True
        if self._task is not None:
            self._task.cancel()
        for side in self._sides():
            side.writer.transport.abort()

    async def run(self, host: str, port: int) -> None:
        """Relay until the end. Lost connections are what a proxy is for: they end it quietly."""
        try:
            self._task = asyncio.create_task(self._relay(host, port))
            await asyncio.wait([self._task])
            if not self._task.cancelled() and (error := self._task.exception()) is not None:
                _raise_unless_lost(error)
        finally:
            for side in self._sides():
                side.writer.close()  # what was written before still goes out, unless it was dropped
            closing = (side.writer.wait_closed() for side in self._sides())
            await asyncio.gather(*closing, return_exceptions=True)
            self.ended.set()

    def _sides(self) -> list[Side]:
        return [self._client] if self._server is None else [self._client, self._server]

    async def _relay(self, host: str, port: int) -> None:
        if self._dropped:
            return
        code, raw = await read_startup(self._client.reader)
        while code in (SSL_REQUEST, GSS_REQUEST):
            await self._client.send(b"N")  # no encryption here
            code, raw = await read_startup(self._client.reader)
        if host.startswith("/"):
            self._server = Side(*await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}"))
        else:
            self._server = Side(*await asyncio.open_connection(host, port))
        await self._server.send(raw)
        if code == CANCEL_REQUEST:
            await self._server.reader.read()  # the server closes when it has taken note
            return
        pumps = [
            asyncio.create_task(self._from_client(self._server)),
            asyncio.create_task(self._from_server(self._server)),
        ]
        try:
            done, _ = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
        for pump in done:
            pump.result()

    async def _from_client(self, server: Side) -> None:
        batch: list[bytes] = []
        statements: list[Statement] = []
        while True:
            message = await read_message(self._client.reader)
            statement = self._book.read(message)
            self._watcher.note(message, statement)
            batch.append(message.raw)
            if statement is not None:
                statements.append(statement)
            if message.kind in MUST_GO_OUT:
                if not await self._forward(server, message.kind, b"".join(batch), statements):
                    return
                batch, statements = [], []

    async def _forward(self, server: Side, last: str, data: bytes, statements: list[Statement]) -> bool:
        """Send what the client said up to a point where it may wait; False when a hold cut the connection."""
        hold = self._watcher.take_hold("before_send", statements) if statements else None
        if hold is not None and not await hold.stand():
            self.drop()
            return False
        exchange = self._exchange_for(last)
        if statements and exchange is not None and exchange.reply_hold is None:
            # Set before the server sees anything: no part of its answer can slip through.
            exchange.reply_hold = self._watcher.take_hold("after_reply", statements)
        await server.send(data)
        return True

    def _exchange_for(self, last: str) -> Exchange | None:
        """The exchange that this part belongs to, begun here if need be; None for copy data and the like."""
        if last not in ENDS_EXCHANGE and last != "H":
            return self._open[-1] if self._sending else None
        if not self._sending:
            self._open.append(Exchange())
        self._sending = last == "H"
        return self._open[-1]

    async def _from_server(self, server: Side) -> None:
        while True:
            message = await read_message(server.reader)
            exchange = self._open[0] if self._open else Exchange()
            if exchange.reply_hold is None:
                await self._client.send(message.raw)
            else:
                exchange.withheld.append(message.raw)
                if message.kind in ASKS_FOR_DATA:
                    # Withholding this question would stop the server as well.
                    await self._client.send(b"".join(exchange.withheld))
                    exchange.withheld.clear()
            if message.kind == "Z" and self._open:
                if exchange.reply_hold is not None and not await exchange.reply_hold.stand():
                    self.drop()
                    return
                await self._client.send(b"".join(exchange.withheld))
                self._open.popleft()


def _raise_unless_lost(error: BaseException) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, OSError):
        raise error
