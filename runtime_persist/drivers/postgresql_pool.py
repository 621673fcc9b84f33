"""PostgreSQL connections, opened when they are needed and used by everyone, and the statements prepared on them.

Statement names are the hash of their text (design-review R7): a counter name could run another process's statement
behind a transaction pooler. Without a pooler a statement is parsed once a connection and then is one round trip.

Behind a transaction pooler a connection of ours is another server session each time, so a name may be unknown there
(26000) or taken (42P05). Neither ran anything. From the first such answer on this pool sends its statements without a
name: Parse, Bind, Execute and Sync in one exchange, which a pooler never splits. That is one round trip as well, and
what is run is always what was sent. (A pooler that follows names itself, as PgBouncer 1.21 and later can, never
answers so and the names stay.)
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import asyncpg

from runtime_persist.drivers.eager import in_task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime_persist.dialects import Compiled

CONNECTIONS_MAX = 10
_MISNAMED = (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError)
_LEAVING = "cannot switch to state"
# Our statements find rows by key, whatever their parameters: planning them anew each time costs as much as running
# them. Nothing depends on it.
_HINTS = {"plan_cache_mode": "force_generic_plan"}
# Array codecs are looked up in the catalogue at first use: done when a connection opens, not inside a command. The
# look-up switches JIT off and on again for the session; inside a transaction that is rolled back it leaves nothing
# behind, and a pooler keeps it on one server session.
_WARM_UP = "select $1::text[], $2::bytea[], $3::bigint[]"
# A firewall that forgot an idle connection answers nothing at all: the system finds out, instead of waiting for ever.
_SILENCE_SECONDS = 15
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": _SILENCE_SECONDS * 1000}
_SHORTEST_CONNECT_SECONDS = 0.05
_CLOSE_SECONDS = 5.0
"""A server that does not answer a farewell is not waited for."""


class RepeatJob(Exception):
    """A statement did not run, and its transaction or connection is spoilt: the job begins anew at once."""

    def __init__(self, native: BaseException) -> None:
        """Keep the native error, for the case that it never ends."""
        super().__init__(str(native))
        self.native = native


class CannotConnect(Exception):
    """No connection could be opened; nothing was sent."""

    def __init__(self, native: BaseException, began: float) -> None:
        """Keep the native error, and when connecting began."""
        super().__init__(str(native))
        self.native = native
        self.began = began


@dataclass(slots=True)
class Manners:
    """What is known of who answers at an address; all pools there share it.

    Attributes:
        names: statements can have names on the server (until a pooler shows itself).
        hints: settings can be given when a connection is opened (until a pooler refuses one).

    """

    names: bool = True
    hints: bool = True


class Connection:
    """A connection and the statements prepared on it."""

    def __init__(self, raw: asyncpg.Connection[Any], pool: Pool) -> None:
        """Belong to a pool, which knows whether names can be used."""
        self.raw = raw
        self.spent = False  # not to be used again: tables changed under its statements, or the server is leaving
        self._pool = pool
        self._named: dict[str, Any] = {}
        self._unnamed: dict[str, Any] = {}

    async def fetch(self, compiled: Compiled, params: Mapping[str, Any]) -> Sequence[Any]:
        """Run a statement and return its rows.

        Raises:
            RepeatJob: it did not run; the transaction it stood in has to begin anew.

        """
        filled = compiled.filled(params)
        arguments = [filled[name] for name in compiled.order]
        if self._pool.manners.names and not self.spent:
            try:
                return await self._run(self._named, compiled, compiled.server_name, arguments)
            except _MISNAMED as error:
                self._pool.manners.names = False
                native: BaseException = error
            except asyncpg.InvalidCachedStatementError as error:
                self.spent = True
                native = error
            if self.raw.is_in_transaction():
                raise RepeatJob(native) from native
        return await self._run(self._unnamed, compiled, "", arguments)

    async def fetch_many(self, compiled: Compiled, each: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
        """Run a statement that gives one row, once for each set of parameters, in one exchange and one transaction.

        Raises:
            RepeatJob: nothing ran.

        """
        arguments = [[filled[name] for name in compiled.order] for filled in map(compiled.filled, each)]
        await in_task()  # asyncpg waits with a timeout until the socket takes more
        with self._not_leaving():
            try:
                statement = await self._prepared(self._named, compiled, compiled.server_name)
                rows: Sequence[Any] = await statement.fetchmany(arguments)
            except _MISNAMED as native:
                self._pool.manners.names = False
                raise RepeatJob(native) from native
            except asyncpg.InvalidCachedStatementError as native:
                self.spent = True
                raise RepeatJob(native) from native
        return rows

    async def execute(self, command: str) -> None:
        """Run BEGIN, COMMIT or ROLLBACK (raises RepeatJob: it was not sent)."""
        with self._not_leaving():
            await self.raw.execute(command)

    async def _run(self, known: dict[str, Any], compiled: Compiled, name: str, arguments: list[Any]) -> Sequence[Any]:
        with self._not_leaving():
            statement = await self._prepared(known, compiled, name)
            rows: Sequence[Any] = await statement.fetch(*arguments)
        return rows

    async def _prepared(self, known: dict[str, Any], compiled: Compiled, name: str) -> Any:
        statement = known.get(compiled.server_name)
        if statement is None:
            # Without a name asyncpg only learns the types here and sends the text with every execution.
            statement = known[compiled.server_name] = await self.raw.prepare(compiled.sql, name=name)
        return statement

    def _not_leaving(self) -> _NotLeaving:
        return _NotLeaving(self)


class _NotLeaving:
    """Raises RepeatJob when nothing was sent, because the server said good-bye to an idle connection.

    asyncpg is reading that farewell just then: the connection is not closed yet, and takes nothing any more.
    """

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, native: BaseException | None, trace: object) -> None:
        if isinstance(native, asyncpg.InternalClientError):
            self._connection.spent = True
            if _LEAVING in str(native):
                raise RepeatJob(native) from native


class Pool:
    """A few connections. Everything happens on one event loop.

    Attributes:
        manners: what is known of who answers.
        losses: connections that ended by themselves.

    """

    def __init__(
        self, dsn: str, connect_timeout: float, size: int = CONNECTIONS_MAX, manners: Manners | None = None
    ) -> None:
        """Open nothing yet; at most ``size`` connections later."""
        self.manners = manners or Manners()
        self.losses = 0
        self._dsn = dsn
        self._connect_timeout = connect_timeout
        self._slots = asyncio.Semaphore(size)
        self._free: deque[Connection] = deque()
        self._in_use = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self, until: float | None) -> Connection:
        """Lend a connection; a new one has to be open at ``until`` (of the monotonic clock), or in time.

        Raises:
            CannotConnect: none could be opened.

        """
        await self._slots.acquire()
        try:
            return await self._take(until)
        except BaseException:
            self._slots.release()
            raise

    def give_back(self, connection: Connection) -> None:
        """Take a lent connection back."""
        self._give_back(connection)
        self._slots.release()

    async def close(self) -> None:
        """Close what is free; nothing is in use any more."""
        while self._free:
            with contextlib.suppress(Exception):  # the server may have closed it a moment ago
                await self._free.pop().raw.close(timeout=_CLOSE_SECONDS)

    def forget_free(self) -> None:
        """Let go of the connections that nobody uses: what ended one of them has probably ended them all."""
        while self._free:
            self._free.pop().raw.terminate()

    async def _take(self, until: float | None) -> Connection:
        while True:
            while self._free:
                connection = self._free.pop()  # the most recently used one is the least likely to have been dropped
                if not connection.raw.is_closed():
                    self._in_use += 1
                    return connection
                self.losses += 1
            self._in_use += 1
            began = time.monotonic()
            try:
                return await self._open(until)
            except asyncpg.TooManyConnectionsError as native:
                self._in_use -= 1
                if not self._in_use:
                    self._wake_all()
                    raise CannotConnect(native, began) from native
                # The server has no room for more than we have: one of ours becomes free.
                self._waiting.append(turn := asyncio.get_running_loop().create_future())
                await turn
            except BaseException as native:
                self._in_use -= 1
                self._wake_all()
                if isinstance(native, Exception):
                    raise CannotConnect(native, began) from native
                raise

    async def _open(self, until: float | None) -> Connection:
        seconds = self._connect_timeout
        if until is not None:
            seconds = min(seconds, max(until - time.monotonic(), _SHORTEST_CONNECT_SECONDS))
        await in_task()
        async with asyncio.timeout(seconds):
            raw = await self._connect(seconds)
            try:
                _keep_alive(raw)
                await raw.execute("START TRANSACTION READ ONLY")
                await raw.fetch(_WARM_UP, [], [], [])
                await raw.execute("ROLLBACK")
            except BaseException:
                raw.terminate()
                raise
        return Connection(raw, self)

    async def _connect(self, seconds: float) -> Any:
        options: dict[str, Any] = {"statement_cache_size": 0, "timeout": seconds}
        if self.manners.hints:
            try:
                return await asyncpg.connect(self._dsn, server_settings=_HINTS, **options)
            except (asyncpg.ProtocolViolationError, asyncpg.UndefinedObjectError):
                self.manners.hints = False  # a pooler that lets no settings through: it is only slower
        return await asyncpg.connect(self._dsn, **options)

    def _give_back(self, connection: Connection) -> None:
        self._in_use -= 1
        raw = connection.raw
        if raw.is_closed() or raw.is_in_transaction() or connection.spent:
            self.losses += raw.is_closed()
            raw.terminate()
            self.forget_free()
            self._wake_all()  # there may be room for another one now, or nobody left to wait for
            return
        self._free.append(connection)
        if self._waiting:
            self._wake(self._waiting.popleft())

    def _wake_all(self) -> None:
        while self._waiting:
            self._wake(self._waiting.popleft())

    @staticmethod
    def _wake(turn: asyncio.Future[None]) -> None:
        if not turn.done():
            turn.set_result(None)


async def connect_to_listen(dsn: str, seconds: float) -> asyncpg.Connection[Any]:
    """Open a connection that is not lent to anybody: it only waits for what arrives."""
    raw = await asyncpg.connect(dsn, statement_cache_size=0, timeout=seconds)
    _keep_alive(raw)
    return raw


def _keep_alive(raw: asyncpg.Connection[Any]) -> None:
    """Notice a connection that died without a word (asyncpg has no option for it; unix sockets need none)."""
    transport = getattr(raw, "_transport", None)
    found: Any = transport.get_extra_info("socket") if transport is not None else None
    if found is None or found.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        option = getattr(socket, name, None)  # not every system has all of them
        if option is not None:
            found.setsockopt(socket.IPPROTO_TCP, option, value)
