"""The savers that take part: ours, and the published ones that are installed."""

import contextlib
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from runtime_persist.testing.postgres import PostgresNotFound, PostgresServer


@dataclass
class Entry:
    """A saver under test."""

    name: str
    saver: Any
    database: str
    sync: bool
    ours: bool = False


@contextlib.asynccontextmanager
async def sqlite_savers(folder):
    async with contextlib.AsyncExitStack() as stack:
        ours = stack.enter_context(WorkflowCheckpointAdapter.from_conn_string(folder / "ours.db"))
        savers = [
            Entry("runtime_persist (sync)", ours, "SQLite", sync=True, ours=True),
            Entry("runtime_persist (async)", ours, "SQLite", sync=False, ours=True),
            Entry("InMemorySaver", InMemorySaver(), "SQLite", sync=True),
        ]
        with contextlib.suppress(ModuleNotFoundError):
            from langgraph.checkpoint.sqlite import SqliteSaver
            from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

            peer = stack.enter_context(SqliteSaver.from_conn_string(str(folder / "peer.db")))
            apeer = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(str(folder / "apeer.db")))
            savers += [
                Entry("SqliteSaver", peer, "SQLite", sync=True),
                Entry("AsyncSqliteSaver", apeer, "SQLite", sync=False),
            ]
        yield savers


@contextlib.asynccontextmanager
async def with_postgresql(console):
    try:
        server = PostgresServer.start(settings={"fsync": "on", "full_page_writes": "on"})
    except PostgresNotFound as error:
        console.print(f"PostgreSQL left out: {error}")
        yield []
        return
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(server)
        ours = stack.enter_context(WorkflowCheckpointAdapter.from_conn_string(server.create_database()))
        savers = [
            Entry("runtime_persist (sync)", ours, "PostgreSQL", sync=True, ours=True),
            Entry("runtime_persist (async)", ours, "PostgreSQL", sync=False, ours=True),
        ]
        try:
            from langgraph.checkpoint.postgres import PostgresSaver
            from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
        except ModuleNotFoundError:
            console.print("PostgresSaver left out: pip install langgraph-checkpoint-postgres 'psycopg[binary]'")
        else:
            peer = stack.enter_context(PostgresSaver.from_conn_string(server.create_database()))
            peer.setup()
            apeer = await stack.enter_async_context(AsyncPostgresSaver.from_conn_string(server.create_database()))
            await apeer.setup()
            savers += [
                Entry("PostgresSaver", peer, "PostgreSQL", sync=True),
                Entry("AsyncPostgresSaver", apeer, "PostgreSQL", sync=False),
            ]
        yield savers
