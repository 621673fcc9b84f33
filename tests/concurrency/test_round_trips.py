"""Hot commands cost one round trip on PostgreSQL, and one BEGIN IMMEDIATE on SQLite, in steady state."""

from collections.abc import Callable, Iterator

import pytest

from runtime_persist.testing.proxy import PostgresProxy
from tests.fixtures.world import World


def checkpoints(world, held):
    return [world.commit_checkpoint(held, checkpoint_id=name, body=name.encode()) for name in ("c1", "c2")]


def task_writes(world, held):
    return [world.commit_writes(held, "a", "b", task_id=name) for name in ("t1", "t2")]


def begun(world, held):
    return [world.begin(held, ordinal) for ordinal in ("#1", "#2")]


def tried(world, held):
    operation = world.begun(held)
    return [world.next_try(held, operation, 2), world.next_try(held, operation, 3)]


def completed(world, held):
    operations = [world.begun(held, ordinal=ordinal) for ordinal in ("#1", "#2")]
    return [world.complete(held, operation, f"result of {operation}") for operation in operations]


def renewed(world, held):
    return [world.renew(held), world.renew(held)]


def put_checkpoints(world, _held):
    return [
        world.put_checkpoint("free", expects=parent, checkpoint_id=name, body=name.encode())
        for parent, name in [(None, "c1"), ("c1", "c2")]
    ]


def put_writes(world, _held):
    return [world.put_writes("a", "b", thread_id="free", task_id=name) for name in ("t1", "t2")]


HOT = {
    "commit_workflow_checkpoint": checkpoints,
    "commit_workflow_task_writes": task_writes,
    "begin_operation": begun,
    "start_attempt": tried,
    "complete_operation": completed,
    "renew_lease": renewed,
    "put_thread_checkpoint": put_checkpoints,
    "put_thread_writes": put_writes,
}
each = pytest.mark.parametrize("make", HOT.values(), ids=HOT)


@pytest.fixture
def proxy(postgres_server) -> Iterator[PostgresProxy]:
    with PostgresProxy("127.0.0.1", postgres_server.port) as proxy:
        yield proxy


@pytest.fixture
def proxied(proxy, postgres_url, open_engine) -> Iterator[World]:
    engine = open_engine(proxy.dsn(postgres_url))
    with World(engine) as world:
        yield world
    engine.close()  # before the proxy


@each
def test_a_hot_command_is_one_round_trip(proxied, proxy, make: Callable):
    warming, measured = make(proxied, proxied.owned())
    proxied.commit(warming)
    proxied.engine.notifications.flush()  # it tells other processes of the run behind its commit
    proxy.reset()
    receipt = proxied.commit(measured)
    assert not receipt.replayed
    assert proxy.messages == {"B": 1, "E": 1, "S": 1}
    assert proxy.round_trips == 1
    assert [statement.name[:3] for statement in proxy.statements] == ["rp_"]


def test_the_statements_name_is_the_hash_of_its_text(proxied, proxy):
    held = proxied.owned()
    proxied.commit(proxied.renew(held))
    proxied.engine.notifications.flush()
    proxy.reset()
    proxied.commit(proxied.renew(held))
    proxied.commit(proxied.renew(held))
    first, second = proxy.statements
    assert first == second
    assert "asyncpg" not in first.name


@each
def test_a_hot_command_is_one_transaction_on_sqlite(sqlite_url, open_engine, make: Callable):
    engine = open_engine(sqlite_url)
    with World(engine) as world:
        warming, measured = make(world, world.owned())
        world.commit(warming)
        seen: list[str] = []
        engine._driver._writer.set_trace_callback(seen.append)
        world.commit(measured)
        engine._driver._writer.set_trace_callback(None)
    assert [sql for sql in seen if sql.startswith(("BEGIN", "COMMIT", "ROLLBACK"))] == ["BEGIN IMMEDIATE", "COMMIT"]


@each
def test_a_refused_command_is_rolled_back_on_sqlite(sqlite_url, open_engine, make: Callable):
    engine = open_engine(sqlite_url)
    with World(engine) as world:
        held = world.owned()
        _, refused = make(world, held)
        if hasattr(refused, "epoch"):
            world.take_over(held)
        else:
            world.owned("free")
        seen: list[str] = []
        engine._driver._writer.set_trace_callback(seen.append)
        assert engine.coordinator.commit(refused).exception(20) is not None
        engine._driver._writer.set_trace_callback(None)
    assert [sql for sql in seen if sql.startswith(("BEGIN", "COMMIT", "ROLLBACK"))] == ["BEGIN IMMEDIATE", "ROLLBACK"]
