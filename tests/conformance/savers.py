"""The savers that are judged, each on the database that RP_TWO_WRITERS names: two processes open the same one."""

import asyncio
import os
from contextlib import asynccontextmanager

from langgraph.checkpoint.conformance import checkpointer_test
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from runtime_persist import Runtime
from tests.fixtures.raw import connect
from tests.support.leases import run_out


def url():
    return os.environ["RP_TWO_WRITERS"]


@checkpointer_test(name="InMemorySaver")
async def memory():
    yield InMemorySaver()


@checkpointer_test(name="AsyncSqliteSaver")
async def sqlite():
    async with AsyncSqliteSaver.from_conn_string(url().removeprefix("sqlite:///")) as saver:
        yield saver


@checkpointer_test(name="AsyncPostgresSaver")
async def postgres():
    async with AsyncPostgresSaver.from_conn_string(url()) as saver:
        await saver.setup()
        yield saver


@checkpointer_test(name="runtime_persist")
async def ours():
    async with Runtime.open(url()) as runtime:
        yield runtime.checkpointer


def _run_out(runtime: Runtime) -> None:
    raw = connect(runtime.engine)
    run_out(raw)
    raw.close()


@asynccontextmanager
async def takeover(_saver, thread_id):
    """A lease runs out, and somebody else takes the thread."""
    async with Runtime.open(url()) as first, Runtime.open(url()) as second:
        first.engine.heartbeats.close()
        stale = await first.alease(thread_id=thread_id)
        await asyncio.to_thread(_run_out, second)
        async with await second.alease(thread_id=thread_id) as lease:
            yield first.checkpointer.session(stale), second.checkpointer.session(lease)


ours.session = takeover
