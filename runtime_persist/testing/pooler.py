"""A small transaction pooler before PostgreSQL, as PgBouncer is in transaction mode without prepared statements.

    with TransactionPooler("127.0.0.1", server.port, sessions=2) as pooler:
        dsn = pooler.dsn(server.dsn(database))

Clients share a few server sessions. A client gets one with the first message of a transaction and gives it back with
the ReadyForQuery that says "idle"; the next time it gets another one, whichever has rested longest. While the others
are all in use it waits for one, so that what a program meets here does not depend on who else is at work.
Whatever a client left in a session (a prepared statement, a setting) the next client meets there, and the client
itself does not find again. Both directions are relayed all the time.

It also refuses what PgBouncer refuses by default: startup parameters other than the user, the database, the client
encoding and the application name. The server must not ask for a password.
"""

import asyncio
import contextlib
import itertools
import struct
import threading
from collections import defaultdict, deque
from concurrent.futures import Future
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from runtime_persist.testing._pg_wire import (
    CANCEL_REQUEST,
    ENDS_EXCHANGE,
    GSS_REQUEST,
    SSL_REQUEST,
    read_message,
    read_startup,
)

__all__ = ["TransactionPooler"]

_ACCEPTED = {"user", "database", "client_encoding", "application_name"}
_IDLE = b"I"
_READY = b"Z\0\0\0\5I"
_Started = tuple[asyncio.AbstractEventLoop, asyncio.Event, int]
_Place = tuple[str, str]


class _Session:
    """A connection to the server. It serves one client at a time, and remembers what the server said at first."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.greeting: list[bytes] = []
        self.client: _Client | None = None

    @property
    def dead(self) -> bool:
        return self.reader.at_eof() or self.writer.transport.is_closing()


class _Client:
    """A client: its place (user and database), and the session it has while a transaction runs."""

    def __init__(self, writer: asyncio.StreamWriter, place: _Place) -> None:
        self.writer = writer
        self.place = place
        self.session: _Session | None = None
        self.unanswered = 0  # exchanges that the server has not finished
        self.sending = False  # whether an exchange is begun and not ended yet


class TransactionPooler:
    """A pooler on 127.0.0.1. Use it as a context manager, or `close` it.

    Args:
        upstream_host: the server's address.
        upstream_port: its port.
        sessions: how many server sessions the clients of one user and database share.

    Attributes:
        port: where it listens.
        changes: how often a client was given another session than it had before.
        refused: startup parameters for which clients were sent away.
    """

    def __init__(self, upstream_host: str, upstream_port: int, *, sessions: int = 2) -> None:
        self.changes = 0
        self.refused: list[str] = []
        self._upstream = (upstream_host, upstream_port)
        self._limit = sessions
        self._sessions: defaultdict[_Place, list[_Session]] = defaultdict(list)
        self._resting: defaultdict[_Place, deque[_Session]] = defaultdict(deque)
        self._room = asyncio.Condition()
        self._keys = itertools.count(1)
        self._cancellable: dict[bytes, _Client] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        started: Future[_Started] = Future()
        self._thread = threading.Thread(target=self._run_thread, args=(started,), name="pooler", daemon=True)
        self._thread.start()
        self._loop, self._stop, self.port = started.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop every connection and end the pooler's thread."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def dsn(self, upstream_dsn: str) -> str:
        """The same database reached through the pooler (in plain text)."""
        parts = urlsplit(upstream_dsn)
        login = parts.netloc.rpartition("@")[0]
        netloc = f"{login}@127.0.0.1:{self.port}" if login else f"127.0.0.1:{self.port}"
        query = [(key, value) for key, value in parse_qsl(parts.query) if key not in {"host", "port", "sslmode"}]
        query.append(("sslmode", "disable"))
        return urlunsplit(parts._replace(netloc=netloc, query=urlencode(query, quote_via=quote)))

    # -- the thread -----------------------------------------------------------------------------------------

    def _run_thread(self, started: Future[_Started]) -> None:
        asyncio.run(self._run(started))

    async def _run(self, started: Future[_Started]) -> None:
        stop = asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        started.set_result((asyncio.get_running_loop(), stop, server.sockets[0].getsockname()[1]))
        await stop.wait()
        server.close()
        for session in [session for sessions in self._sessions.values() for session in sessions]:
            session.writer.transport.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a server's callback runs in a task
        self._tasks.add(task)
        client: _Client | None = None
        try:
            client = await self._welcome(reader, writer)
            if client is not None:
                await self._from_client(reader, client)
        except (OSError, EOFError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # a lost connection, or the end
        finally:
            if client is not None and client.session is not None:
                self._drop(client.session)  # its transaction is rolled back
            writer.close()
            self._tasks.discard(task)

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> _Client | None:
        code, raw = await read_startup(reader)
        while code in (SSL_REQUEST, GSS_REQUEST):
            writer.write(b"N")
            code, raw = await read_startup(reader)
        if code == CANCEL_REQUEST:
            await self._cancel(raw[8:])
            return None
        words = raw[8:].rstrip(b"\0").decode().split("\0")
        given = dict(zip(words[::2], words[1::2], strict=True))
        unknown = [name for name in given if name not in _ACCEPTED]
        if unknown:
            self.refused += unknown
            writer.write(_fatal("08P01", f"unsupported startup parameter: {unknown[0]}"))
            await writer.drain()
            return None
        client = _Client(writer, (given["user"], given.get("database", given["user"])))
        session = await self._session(client.place)
        key = struct.pack("!II", next(self._keys), 0)
        self._cancellable[key] = client
        writer.write(b"".join(session.greeting) + b"K\0\0\0\x0c" + key + _READY)
        await self._rest(client.place, session)
        return client

    async def _from_client(self, reader: asyncio.StreamReader, client: _Client) -> None:
        last: _Session | None = None
        while (message := await read_message(reader)).kind != "X":
            if client.session is None:
                session = await self._session(client.place, last)
                self.changes += last is not None and session is not last
                last = client.session = session
                session.client = client
            if message.kind in ENDS_EXCHANGE:
                client.unanswered += 1
                client.sending = False
            else:
                client.sending = True
            client.session.writer.write(message.raw)

    async def _from_server(self, place: _Place, session: _Session) -> None:
        try:
            while True:
                message = await read_message(session.reader)
                client = session.client
                if client is None:
                    continue  # said to nobody: a setting that was reloaded, a farewell
                client.writer.write(message.raw)
                if message.kind == "Z":
                    client.unanswered -= 1
                    if message.raw[5:6] == _IDLE and not client.unanswered and not client.sending:
                        client.session = session.client = None
                        await self._rest(place, session)
        except (OSError, asyncio.IncompleteReadError):
            if session.client is not None:
                session.client.writer.close()
        finally:
            self._drop(session)
            with contextlib.suppress(ValueError):
                self._sessions[place].remove(session)
            async with self._room:
                self._room.notify_all()

    # -- sessions -------------------------------------------------------------------------------------------

    async def _session(self, place: _Place, last: _Session | None = None) -> _Session:
        """The session that has rested longest, not the last one; a new one while there may be more; else wait."""
        async with self._room:
            while True:
                if len(self._sessions[place]) < self._limit:
                    return await self._open(place)
                resting = self._resting[place]
                for session in list(resting):
                    if session.dead:
                        resting.remove(session)
                    elif session is not last or self._limit == 1:
                        resting.remove(session)
                        return session
                await self._room.wait()

    async def _open(self, place: _Place) -> _Session:
        session = _Session(*await asyncio.open_connection(*self._upstream))
        user, database = place
        words = f"user\0{user}\0database\0{database}\0client_encoding\0utf-8\0\0".encode()
        session.writer.write(struct.pack("!II", 8 + len(words), 3 << 16) + words)
        while (message := await read_message(session.reader)).kind != "Z":
            if message.kind == "E":
                raise EOFError(message.raw)
            if message.kind != "K":
                session.greeting.append(message.raw)
        self._sessions[place].append(session)
        task = asyncio.create_task(self._from_server(place, session))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return session

    async def _rest(self, place: _Place, session: _Session) -> None:
        async with self._room:
            self._resting[place].append(session)
            self._room.notify_all()

    @staticmethod
    def _drop(session: _Session) -> None:
        session.client = None
        session.writer.transport.abort()

    async def _cancel(self, key: bytes) -> None:
        """Clients cancel what they wait for; here their transaction loses its session, which ends it as well."""
        client = self._cancellable.get(key)
        if client is not None and client.session is not None:
            self._drop(client.session)


def _fatal(state: str, text: str) -> bytes:
    fields = b"".join(kind + value.encode() + b"\0" for kind, value in [(b"S", "FATAL"), (b"C", state), (b"M", text)])
    return b"E" + struct.pack("!I", 5 + len(fields)) + fields + b"\0"
