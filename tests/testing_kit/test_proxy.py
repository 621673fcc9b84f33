"""The proxy before PostgreSQL: transparent, countable, and able to hold or cut one exchange."""

import asyncio
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import asyncpg
import pytest

from runtime_persist.testing.proxy import PostgresProxy, Statement

LOST = (asyncpg.ConnectionDoesNotExistError, asyncpg.InterfaceError, ConnectionError)


@pytest.fixture
def proxy(postgres_server) -> Iterator[PostgresProxy]:
    with PostgresProxy("127.0.0.1", postgres_server.port) as proxy:
        yield proxy


@pytest.fixture
def table(postgres_dsn) -> str:
    """A database with the table `t (a int)`; its address without the proxy."""

    async def run() -> None:
        connection = await asyncpg.connect(postgres_dsn)
        await connection.execute("create table t (a int)")
        await connection.close()

    asyncio.run(run())
    return postgres_dsn


async def rows(dsn: str) -> list[int]:
    connection = await asyncpg.connect(dsn)
    found = await connection.fetch("select a from t order by a")
    await connection.close()
    return [row["a"] for row in found]


def inserts(statement: Statement) -> bool:
    return statement.sql.startswith("insert")


def test_it_is_transparent(proxy, table):
    async def run() -> None:
        connection = await asyncpg.connect(proxy.dsn(table))
        async with connection.transaction():
            await connection.executemany("insert into t values ($1)", [(a,) for a in range(100)])
        await connection.copy_records_to_table("t", records=[(a,) for a in range(100, 200)])
        assert await connection.fetchval("select count(*) from t") == 200
        big = "x" * 3_000_000
        assert await connection.fetchval("select $1::text", big) == big
        with pytest.raises(asyncpg.PostgresSyntaxError):
            await connection.fetch("selekt $1", 1)
        async with connection.transaction():
            assert len([row async for row in connection.cursor("select a from t", prefetch=7)]) == 200
        heard: asyncio.Queue[str] = asyncio.Queue()
        await connection.add_listener("news", lambda *message: heard.put_nowait(message[-1]))
        await connection.execute("notify news, 'hello'")
        assert await heard.get() == "hello"
        await connection.remove_listener("news", lambda: None)
        await connection.close()

    asyncio.run(run())


def test_a_client_that_prefers_tls_goes_on_without(proxy, table):
    async def run() -> None:
        address = urlsplit(proxy.dsn(table))._replace(query="sslmode=prefer").geturl()
        connection = await asyncpg.connect(address)
        assert await connection.fetchval("select 1") == 1
        await connection.close()

    asyncio.run(run())


def test_it_goes_to_a_unix_socket_too(postgres_server, table):
    async def run(dsn: str) -> None:
        connection = await asyncpg.connect(dsn)
        assert await connection.fetchval("select inet_server_addr() is null")
        await connection.close()

    with PostgresProxy(str(postgres_server.socket_dir), postgres_server.port) as proxy:
        asyncio.run(run(proxy.dsn(table)))


def test_dsn_keeps_the_login_and_parameters(proxy):
    made = proxy.dsn("postgresql://a:b%40c@h:1/d?host=/run&sslmode=require&application_name=x")
    assert made == f"postgresql://a:b%40c@127.0.0.1:{proxy.port}/d?application_name=x&sslmode=disable"


def test_round_trips_and_messages_are_counted(proxy, table):
    async def run() -> None:
        connection = await asyncpg.connect(proxy.dsn(table))
        statement = await connection.prepare("insert into t values ($1)", name="ins")
        proxy.reset()
        assert (proxy.round_trips, proxy.messages, proxy.statements) == (0, {}, [])
        await statement.fetch(1)
        assert proxy.round_trips == 1
        assert proxy.messages == {"B": 1, "E": 1, "S": 1}
        proxy.reset()
        await connection.fetch("select 1")  # unknown: prepared first, with a Flush
        assert proxy.round_trips == 2
        assert proxy.messages["P"] == proxy.messages["H"] == 1
        await connection.close()

    asyncio.run(run())


def test_statements_are_reported_with_name_and_sql(proxy, table):
    async def run() -> None:
        connection = await asyncpg.connect(proxy.dsn(table))
        statement = await connection.prepare("insert into t values ($1)", name="ins")
        proxy.reset()
        async with connection.transaction():
            await statement.fetch(1)
        await connection.close()

    asyncio.run(run())
    assert proxy.statements == [
        Statement("", "BEGIN;"),
        Statement("ins", "insert into t values ($1)"),
        Statement("", "COMMIT;"),
    ]


@pytest.mark.parametrize("when", ["before_send", "after_reply"])
def test_a_held_exchange_goes_on_when_released(proxy, table, when):
    async def run() -> None:
        connection = await asyncpg.connect(proxy.dsn(table))
        with proxy.hold(when, inserts) as hold:
            task = asyncio.create_task(connection.execute("insert into t values ($1)", 1))
            found = await asyncio.to_thread(hold.wait_reached)
            assert found.sql == "insert into t values ($1)"
            assert found.name.startswith("__asyncpg")
            # The server has it or not; another connection is not held up by it.
            assert await rows(proxy.dsn(table)) == ([] if when == "before_send" else [1])
            assert not task.done()
        assert await task == "INSERT 0 1"
        # Once: the next one passes.
        await connection.execute("insert into t values ($1)", 2)
        assert await rows(table) == [1, 2]
        await connection.close()

    asyncio.run(run())


@pytest.mark.parametrize(("when", "expected"), [("before_send", []), ("after_reply", [1])])
def test_a_dropped_exchange_is_a_lost_connection(proxy, table, when, expected):
    async def run() -> None:
        connection = await asyncpg.connect(proxy.dsn(table))
        other = await asyncpg.connect(proxy.dsn(table))
        hold = proxy.hold(when, inserts)
        task = asyncio.create_task(connection.execute("insert into t values ($1)", 1))
        await asyncio.to_thread(hold.wait_reached)
        hold.drop()
        with pytest.raises(LOST):
            await task
        assert connection.is_closed()
        assert await other.fetchval("select 1") == 1
        assert await rows(table) == expected
        await other.close()

    asyncio.run(run())


def test_a_commit_whose_answer_is_lost_is_committed(proxy, table):
    async def run() -> None:
        connection = await asyncpg.connect(proxy.dsn(table))
        hold = proxy.hold("after_reply", lambda statement: statement.sql.startswith("COMMIT"))
        hold.drop()  # decided before it is reached
        with pytest.raises(LOST):
            async with connection.transaction():
                await connection.execute("insert into t values (1)")
        assert hold.wait_reached().sql == "COMMIT;"
        assert await rows(table) == [1]

    asyncio.run(run())


def test_a_prepared_statement_is_held_without_its_sql_being_sent_again(proxy, table):
    async def run() -> None:
        connection = await asyncpg.connect(proxy.dsn(table))
        statement = await connection.prepare("insert into t values ($1)", name="ins")
        await statement.fetch(1)
        hold = proxy.hold("after_reply", lambda statement: statement.name == "ins")
        task = asyncio.create_task(statement.fetch(2))
        assert await asyncio.to_thread(hold.wait_reached) == Statement("ins", "insert into t values ($1)")
        hold.release()
        await task
        await connection.close()

    asyncio.run(run())


def test_each_hold_takes_one_connection(proxy, table):
    async def run() -> None:
        first, second = [await asyncpg.connect(proxy.dsn(table)) for _ in range(2)]
        holds = [proxy.hold("after_reply", inserts) for _ in range(2)]
        tasks = [
            asyncio.create_task(connection.execute("insert into t values ($1)", number))
            for number, connection in enumerate((first, second))
        ]
        for hold in holds:
            await asyncio.to_thread(hold.wait_reached)
            hold.release()
        await asyncio.gather(*tasks)
        for connection in (first, second):
            await connection.close()

    asyncio.run(run())


def test_a_held_statement_can_be_cancelled_by_its_client(proxy, table):
    async def run() -> None:
        connection = await asyncpg.connect(proxy.dsn(table))
        with proxy.hold("after_reply", inserts) as hold:
            task = asyncio.create_task(connection.execute("insert into t values ($1)", 1))
            await asyncio.to_thread(hold.wait_reached)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await connection.close()

    asyncio.run(run())


def test_a_hold_that_is_not_reached_says_so(proxy):
    hold = proxy.hold("before_send", inserts)
    with pytest.raises(TimeoutError, match="before_send"):
        hold.wait_reached(timeout=0.01)
    assert not hold.reached


def test_an_error_in_the_predicate_is_shown_where_the_test_waits(proxy, table):
    hold = proxy.hold("before_send", lambda statement: statement.nothing)
    assert asyncio.run(rows(proxy.dsn(table))) == []
    with pytest.raises(AttributeError):
        hold.wait_reached()


def test_an_unknown_place_to_hold_is_refused(proxy):
    with pytest.raises(ValueError, match="before_send, after_reply"):
        proxy.hold("sometimes", inserts)


def test_kill_all_drops_every_connection_and_new_ones_are_served(proxy, table):
    async def run() -> None:
        first, second = [await asyncpg.connect(proxy.dsn(table)) for _ in range(2)]
        hold = proxy.hold("before_send", inserts)
        task = asyncio.create_task(first.execute("insert into t values ($1)", 1))
        await asyncio.to_thread(hold.wait_reached)
        assert proxy.kill_all() == 2
        for lost in (task, second.fetchval("select 1")):
            with pytest.raises(LOST):
                await lost
        assert await rows(proxy.dsn(table)) == []

    asyncio.run(run())


def test_new_connections_can_be_refused(proxy, table):
    proxy.refuse_new()
    with pytest.raises((*LOST, asyncpg.PostgresError)):
        asyncio.run(rows(proxy.dsn(table)))
    proxy.refuse_new(False)
    assert asyncio.run(rows(proxy.dsn(table))) == []


def test_a_server_that_is_not_there_is_a_refused_connection():
    with PostgresProxy("127.0.0.1", 1) as proxy, pytest.raises((*LOST, asyncpg.PostgresError)):
        asyncio.run(rows(proxy.dsn("postgresql://a@h/d")))


def test_closing_frees_what_is_held(postgres_server, table):
    with PostgresProxy("127.0.0.1", postgres_server.port) as proxy:
        hold = proxy.hold("after_reply", inserts)

        async def run() -> None:
            connection = await asyncpg.connect(proxy.dsn(table))
            with pytest.raises(LOST):
                await connection.execute("insert into t values ($1)", 1)

        client = threading.Thread(target=asyncio.run, args=(run(),))
        client.start()
        hold.wait_reached()
    began = time.monotonic()
    client.join()
    assert time.monotonic() - began < 5
    hold.release()  # too late, and no error
