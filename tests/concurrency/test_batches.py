"""Group commit on PostgreSQL: one exchange for what queued together; nobody fails or waits with a neighbour."""

import asyncio
import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from runtime_persist.drivers.postgresql_batches import BATCH_JOBS_MAX
from runtime_persist.errors import LeaseLost, StaleWriter
from runtime_persist.testing.proxy import PostgresProxy
from tests.fixtures.raw import DEADLINE_SECONDS, wait_until
from tests.fixtures.world import World

COMMANDS = BATCH_JOBS_MAX + 3
"""Threads of a test: a few are used up before, the others are one batch."""
LOCK_THREAD = "SELECT 1 FROM rp_threads WHERE thread_id = ? FOR UPDATE"


@pytest.fixture
def proxy(postgres_server):
    with PostgresProxy("127.0.0.1", postgres_server.port) as proxy:
        yield proxy


@pytest.fixture
def world(proxy, postgres_url, postgres_raw, open_engine):
    engine = open_engine(proxy.dsn(postgres_url))
    with World(engine) as world:
        world.raw.close()
        world.raw = postgres_raw()  # beside the proxy
        yield world
    engine.close()


@contextmanager
def gathering(world):
    """Nothing is sent inside the block: what is submitted arrives together behind it."""
    open_ = threading.Event()
    world.engine._driver._loop.call_soon_threadsafe(open_.wait, DEADLINE_SECONDS)
    yield
    open_.set()


def sent_together(world, commands):
    with gathering(world):
        return [world.engine.coordinator.commit(command) for command in commands]


def settled(futures):
    return [future.exception(DEADLINE_SECONDS) for future in futures]


def known_threads(world, count=COMMANDS):
    """Threads with a first checkpoint; the commands that put their second one."""
    names = [f"t{n}" for n in range(count)]
    assert settled(sent_together(world, [world.put_checkpoint(name, expects=None) for name in names])) == [None] * count
    return [world.put_checkpoint(name, expects="c1", parent_id="c1", checkpoint_id="c2", body=name.encode())
            for name in names]  # fmt: skip


def test_commands_that_queued_are_one_exchange(world, proxy):
    commands = known_threads(world)
    world.commit(commands.pop())
    settled(sent_together(world, [commands.pop() for _ in range(2)]))  # prepares the statement of a batch
    proxy.reset()
    assert settled(sent_together(world, commands)) == [None] * len(commands)
    assert proxy.messages == {"B": len(commands), "E": len(commands), "S": 1}
    assert proxy.round_trips == 1
    assert world.count("rp_checkpoints") == 2 * COMMANDS


def test_more_commands_than_a_batch_holds_are_as_few_exchanges_as_they_need(world, proxy):
    commands = known_threads(world, 3 * BATCH_JOBS_MAX + 2)
    settled(sent_together(world, [commands.pop() for _ in range(2)]))  # prepares the statement of a batch
    proxy.reset()
    assert settled(sent_together(world, commands)) == [None] * len(commands)
    assert proxy.messages["B"] == len(commands)
    assert 3 <= proxy.messages["S"] <= 5  # the second connection prepares the statement, once


def test_a_refused_command_fails_alone_with_its_reason(world):
    commands = known_threads(world)
    stale = world.put_checkpoint("t7", expects="nobody", checkpoint_id="c3")
    futures = sent_together(world, [*commands[:7], stale, *commands[7:]])
    errors = settled(futures)
    assert type(errors.pop(7)) is StaleWriter
    assert errors == [None] * COMMANDS
    assert world.count("rp_checkpoints") == 2 * COMMANDS


def test_a_lost_lease_among_good_ones_is_the_only_refusal(world):
    held = [world.owned(f"t{n}") for n in range(6)]
    world.take_over(held[2])
    errors = settled(sent_together(world, [world.commit_checkpoint(one) for one in held]))
    assert [type(error) for error in errors if error is not None] == [LeaseLost]
    assert type(errors[2]) is LeaseLost
    assert world.count("rp_checkpoints") == 5


def test_a_locked_thread_holds_up_nobody_else(world, postgres_raw):
    commands = known_threads(world)
    holder = postgres_raw()
    holder.rows("BEGIN")
    holder.rows(LOCK_THREAD, "t7")
    futures = sent_together(world, commands)
    locked = futures.pop(7)
    assert settled(futures) == [None] * len(futures)
    assert not locked.done()
    holder.rows("COMMIT")
    assert settled([locked]) == [None]


def test_content_that_somebody_else_is_storing_holds_up_only_who_needs_it(world, postgres_raw):
    """It cannot be skipped: the batch gives up after a moment, and each command waits for its own."""
    commands = known_threads(world)
    (blob,) = commands[7].row.blobs
    holder = postgres_raw()
    holder.rows("BEGIN")
    holder.rows(
        "INSERT INTO rp_blobs (space, owner, address, size, content, created_us) VALUES (?, ?, ?, 1, ?, 1)",
        world.space, commands[7].row.owner, blob.address, blob.content,
    )  # fmt: skip
    futures = sent_together(world, commands)
    waiting = futures.pop(7)
    assert settled(futures) == [None] * len(futures)
    assert not waiting.done()
    holder.rows("COMMIT")
    assert settled([waiting]) == [None]
    assert world.head("t7") == "c2"


def test_the_patience_of_a_batch_ends_with_it(world):
    """The limit is the transaction's: the session that is used next waits for its locks as ever."""
    settled(sent_together(world, known_threads(world)))
    driver = world.engine._driver
    assert driver._batching._free
    for connection in driver._batching._free:
        shown = asyncio.run_coroutine_threadsafe(connection.raw.fetchval("SHOW lock_timeout"), driver._loop)
        assert shown.result(DEADLINE_SECONDS) == "0"


def test_commands_of_one_run_keep_their_order_across_kinds(world):
    held, other = world.owned("mine"), world.owned("other")
    commands = []
    for number in range(12):
        commands += [
            world.commit_writes(held, "a", task_id=f"w{number:02}"),
            world.commit_checkpoint(held, checkpoint_id=f"c{number:02}", body=b"%d" % number),
            world.commit_checkpoint(other, checkpoint_id=f"c{number:02}", body=b"%d" % number),
        ]
    assert settled(sent_together(world, commands)) == [None] * len(commands)
    assert world.head("mine") == world.head("other") == "c11"
    rows = world.raw.rows(
        "SELECT checkpoint_id AS id, xmin::text::bigint AS at, ctid FROM rp_checkpoints WHERE thread_id = 'mine' "
        "UNION ALL SELECT task_id, xmin::text::bigint, ctid FROM rp_writes WHERE thread_id = 'mine'"
    )
    when = {row["id"]: row["at"] for row in rows}
    ordered = [when[name] for number in range(12) for name in (f"w{number:02}", f"c{number:02}")]
    assert ordered == sorted(ordered)


def test_threads_that_do_not_exist_yet_are_made(world):
    commands = [world.put_checkpoint(f"new{n}", expects=None) for n in range(COMMANDS)]
    assert settled(sent_together(world, commands)) == [None] * COMMANDS
    assert world.count("rp_threads") == COMMANDS


def test_a_command_the_database_itself_refuses_fails_alone(world):
    held = [world.owned(f"t{n}") for n in range(5)]
    commands = [world.complete(one, world.begun(one)) for one in held]
    object.__setattr__(commands[2], "try_status", "nonsense")
    errors = settled(sent_together(world, commands))
    assert errors.pop(2) is not None
    assert errors == [None] * 4


@pytest.mark.parametrize("when", ["before_send", "after_reply"])
def test_a_batch_whose_connection_is_lost_is_committed_once(world, proxy, when):
    commands = known_threads(world, BATCH_JOBS_MAX + 2)
    settled(sent_together(world, [commands.pop(), commands.pop()]))
    hold = proxy.hold(when, lambda statement: "INSERT INTO rp_checkpoints" in statement.sql)
    futures = sent_together(world, commands)
    hold.wait_reached()
    hold.drop()
    assert settled(futures) == [None] * len(commands)
    replayed = [future.result().replayed for future in futures]
    assert all(replayed) if when == "after_reply" else not any(replayed)
    assert world.count("rp_checkpoints") == 2 * (BATCH_JOBS_MAX + 2)
    wait_until(lambda: world.raw.lock_waits() == 0, "nobody waits")


def test_a_command_that_cannot_be_written_as_a_statement_fails_alone(world):
    commands = known_threads(world)
    object.__setattr__(commands[3].row, "body", "no bytes")
    errors = settled(sent_together(world, commands))
    assert errors.pop(3) is not None
    assert errors == [None] * (COMMANDS - 1)


def test_a_command_whose_plan_fails_before_its_first_step_fails_alone(world):
    commands = known_threads(world)
    object.__setattr__(commands[3], "row", None)
    errors = settled(sent_together(world, commands))
    assert "AttributeError" in str(errors.pop(3))
    assert errors == [None] * (COMMANDS - 1)


def test_a_batch_of_more_than_the_socket_takes_at_once_is_one_exchange(world, proxy):
    commands = known_threads(world, BATCH_JOBS_MAX + 2)
    settled(sent_together(world, [commands.pop() for _ in range(2)]))  # prepares the statement of a batch
    commands = [dataclasses.replace(c, row=dataclasses.replace(c.row, body=c.row.body * 30_000)) for c in commands]
    proxy.reset()
    assert settled(sent_together(world, commands)) == [None] * len(commands)
    assert proxy.messages == {"B": len(commands), "E": len(commands), "S": 1}


def test_what_an_event_loop_holds_back_goes_along_with_whoever_comes_next(world):
    """The loop is blocked in the turn in which it sent a command, as a node that sleeps blocks it."""
    first, second = (world.put_checkpoint(name, expects=None) for name in ("t1", "t2"))
    world.engine._driver._crowded = True  # several came at once a moment ago

    async def blocked():
        held_back = world.engine.coordinator.commit(first)
        with ThreadPoolExecutor(1) as other:
            other.submit(world.commit, second).result(DEADLINE_SECONDS)
        return held_back.result(DEADLINE_SECONDS)

    assert not asyncio.run(blocked()).replayed
    assert world.count("rp_checkpoints") == 2
