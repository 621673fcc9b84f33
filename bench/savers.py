"""The savers that take part, all opened at once so that they can take turns inside a round.

Ours and the SQLite peers run WAL with ``synchronous=FULL``; the PostgreSQL server runs with fsync. Every saver has a
database of its own.
"""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.memory import InMemorySaver

from runtime_persist import Runtime
from runtime_persist.testing.postgres import PostgresNotFound, PostgresServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bench.noise import Machine

POOL = 16
_LEASE_SECONDS = 3600.0
SQLITE, POSTGRESQL, MEMORY = "SQLite", "PostgreSQL", "memory"
SERVER_SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
}


@dataclass(frozen=True)
class Saver:
    """One column of the tables.

    Attributes:
        key: its name on the command line and in the results.
        title: its name in tables.
        database: what it writes to.
        sync: it is driven by threads through its sync methods, else by tasks through its async ones.
        opener: (stack, where) -> the saver; where is a file path or a PostgreSQL URL.
        ours: it is runtime_persist.
        owned: each thread is written under the lease of a run (ours only).

    """

    key: str
    title: str
    database: str
    sync: bool
    opener: Callable[..., Any]
    ours: bool = False
    owned: bool = False


@dataclass
class Open:
    """An opened saver."""

    saver: Saver
    where: str
    inner: Any
    runtime: Runtime | None = None
    _sessions: dict[str, Any] = field(default_factory=dict)

    def of_thread(self, thread_id: str) -> Any:
        """Return the saver that writes this thread: itself, or one under the lease of a run."""
        if not self.saver.owned:
            return self.inner
        if thread_id not in self._sessions:
            self._sessions[thread_id] = self.inner.session(self.runtime.lease(thread_id=thread_id))
        return self._sessions[thread_id]

    def method(self, name: str, thread_id: str = "") -> Callable[..., Any]:
        """Return a method of the saver in the form this entry is driven by; ``list`` gives all it yields."""
        inner = self.of_thread(thread_id) if thread_id else self.inner
        found = getattr(inner, name if self.saver.sync else f"a{name}")
        if name != "list":
            return found
        if self.saver.sync:
            return lambda *given, **named: list(found(*given, **named))

        async def listed(*given, **named):
            return [one async for one in found(*given, **named)]

        return listed


async def _runtime(stack, where):
    # Hundreds of leases are held at once here, far more than a process owns: their renewals would be measured along.
    return stack.enter_context(Runtime.open(where, lease_ttl=_LEASE_SECONDS))


async def _memory(_stack, _where):
    return InMemorySaver()


async def _sqlite(stack, where):
    from langgraph.checkpoint.sqlite import SqliteSaver

    saver = stack.enter_context(SqliteSaver.from_conn_string(where))
    saver.setup()
    return saver


async def _async_sqlite(stack, where):
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    saver = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(where))
    await saver.setup()
    return saver


def _pool_options(where, size):
    from psycopg.rows import dict_row

    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    return {"conninfo": where, "min_size": size, "max_size": size, "open": False, "kwargs": options}


async def _postgres(stack, where):
    from langgraph.checkpoint.postgres import PostgresSaver
    from psycopg_pool import ConnectionPool

    pool = stack.enter_context(ConnectionPool(**_pool_options(where, POOL)))
    pool.wait()
    saver = PostgresSaver(pool)
    saver.setup()
    return saver


async def async_postgres(stack, where, pool_size=POOL):
    """Open the peer on a pool: its documented form for production."""
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg_pool import AsyncConnectionPool

    pool = await stack.enter_async_context(AsyncConnectionPool(**_pool_options(where, pool_size)))
    await pool.wait()
    saver = AsyncPostgresSaver(pool)
    await saver.setup()
    return saver


def _ours(key: str, title: str, database: str, *, sync: bool, owned: bool = False) -> Saver:
    return Saver(key, f"**{title}**", database, sync, _runtime, ours=True, owned=owned)


SAVERS = (
    Saver("memory", "InMemorySaver", MEMORY, False, _memory),
    _ours("sqlite-sync", "ours, sync", SQLITE, sync=True),
    Saver("SqliteSaver", "SqliteSaver", SQLITE, True, _sqlite),
    _ours("sqlite-async", "ours, async", SQLITE, sync=False),
    _ours("sqlite-owned", "ours, async, owned run", SQLITE, sync=False, owned=True),
    Saver("AsyncSqliteSaver", "AsyncSqliteSaver", SQLITE, False, _async_sqlite),
    _ours("postgres-sync", "ours, sync", POSTGRESQL, sync=True),
    Saver("PostgresSaver", f"PostgresSaver (pool of {POOL})", POSTGRESQL, True, _postgres),
    _ours("postgres-async", "ours, async", POSTGRESQL, sync=False),
    _ours("postgres-owned", "ours, async, owned run", POSTGRESQL, sync=False, owned=True),
    Saver("AsyncPostgresSaver", f"AsyncPostgresSaver (pool of {POOL})", POSTGRESQL, False, async_postgres),
)
BY_KEY = {saver.key: saver for saver in SAVERS}
TITLES = {saver.key: saver.title for saver in SAVERS} | {"none": "no saver (async)", "none-sync": "no saver (sync)"}


class Lab:
    """A folder, a PostgreSQL server when it is needed and there is one, and the savers opened on them.

    Attributes:
        machine: what others are measured with.
        folder: for files of all kinds.
        server: the server, once a saver needed it.
        left_out: what could not take part, and why.

    """

    def __init__(self, machine: Machine, stack: contextlib.AsyncExitStack) -> None:
        self.machine = machine
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rp-bench-")))
        self.server: PostgresServer | None = None
        self.left_out: dict[str, str] = {}
        self._stack = stack
        self._files = 0

    def postgresql(self) -> PostgresServer | None:
        """Return the PostgreSQL server, started now if need be."""
        if self.server is None and POSTGRESQL not in self.left_out:
            try:
                self.server = self._stack.enter_context(PostgresServer.start(settings=SERVER_SETTINGS))
            except PostgresNotFound as error:
                self.left_out[POSTGRESQL] = str(error)
            else:
                self.machine.count_as_ours(self.server.root / "data")
        return self.server

    def place(self, database: str) -> str:
        """Return a new empty database: a URL or a file path."""
        if database == POSTGRESQL:
            # The unix socket: what is measured is the saver, not this machine's TCP.
            server = self.postgresql()
            return server.socket_dsn(server.create_database().rsplit("/", 1)[1])
        self._files += 1
        return str(self.folder / f"{self._files}.db")

    def can_open(self, saver: Saver) -> bool:
        """Return whether its database is there."""
        return saver.database != POSTGRESQL or self.postgresql() is not None

    async def open(self, saver: Saver, stack: contextlib.AsyncExitStack | None = None) -> Open:
        """Open a saver on a new database; it is closed with ``stack`` (the lab, by default)."""
        where = self.place(saver.database)
        inner = await saver.opener(stack or self._stack, where)
        if saver.ours:
            return Open(saver, where, inner.checkpointer, inner)
        return Open(saver, where, inner)

    async def open_all(self, savers: Iterable[Saver]) -> dict[str, Open]:
        """Open those savers whose database and package are there, by key; say which are left out."""
        opened = {}
        for saver in savers:
            if not self.can_open(saver):
                continue
            try:
                opened[saver.key] = await self.open(saver)
            except ModuleNotFoundError as error:
                self.left_out[saver.key] = f"{error.name} is not installed (make bench installs the extra `bench`)"
        return opened


@contextlib.asynccontextmanager
async def lab(machine: Machine):
    """Open a lab, and close it with all that was opened in it."""
    async with contextlib.AsyncExitStack() as stack:
        yield Lab(machine, stack)
