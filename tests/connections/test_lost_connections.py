"""Connections end: by an administrator, a pooler's idle time, a restart, a limit (user pains F2 and F3)."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from runtime_persist import Runtime
from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from runtime_persist.errors import ConnectionLost, DatabaseUnavailable, InvalidUrl, RuntimePersistError
from tests.fixtures.raw import DEADLINE_SECONDS, PostgresRaw, wait_until
from tests.fixtures.recycled import BETWEEN_TESTS
from tests.support.checkpoints import Steps, at, new_checkpoint
from tests.support.graphs import chain, config, says

END_ALL = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
)
SESSIONS = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' "
    f"AND application_name <> '{BETWEEN_TESTS}'"
)
OF_COMMANDS = f"{SESSIONS} AND query NOT LIKE 'SELECT pg_notify%'"
"""What is told to other processes has a session of its own, when there is something to tell."""
WAITING = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture
def raw(postgres_raw):
    """A connection of the test's own (it does not end itself)."""
    return postgres_raw()


# --- ended from outside ---------------------------------------------------------------------------------------------


def test_f2_ended_between_two_steps_the_next_step_is_stored_once(postgres_url, raw, way, opened):
    saver = opened(WorkflowCheckpointAdapter.from_conn_string(postgres_url))

    async def body():
        steps = Steps(way, saver)
        for number in range(4):
            await steps.put(n=number)
            assert await asyncio.to_thread(raw.value, END_ALL) >= 1 if way.asynchronous else raw.value(END_ALL) >= 1
        found = await way(saver, "get_tuple", at())
        assert found.checkpoint["channel_values"] == {"n": 3}
        assert len(await way.all(saver, "list", at())) == 4

    way.run(body())


def test_f2_all_idle_connections_ended_at_once_cost_one_reconnect(postgres_url, raw, worlds):
    world = worlds(postgres_url)
    futures = [world.engine.coordinator.commit(world.start_run(f"t{n}")) for n in range(30)]
    assert all(future.result(DEADLINE_SECONDS) for future in futures)
    world.raw.close()
    world.raw = raw
    assert raw.value(SESSIONS) > 1
    raw.value(END_ALL)
    world.commit(world.start_run("after"))
    # Those that were ended may take a moment to go, and the one that tells to have told something.
    wait_until(lambda: raw.value(OF_COMMANDS) == 1, "one new connection, and none of the old ones")


def test_f2_ended_during_a_put_it_is_stored_exactly_once(postgres_url, postgres_raw, worlds):
    """The put waits for a row when its session is ended, and is sent again behind the callers' back."""
    world = worlds(postgres_url)
    held = world.owned()
    holder, admin = postgres_raw(), postgres_raw()
    holder.rows("BEGIN")
    holder.rows("SELECT 1 FROM rp_runs WHERE run_id = ? FOR UPDATE", held.run_id)
    future = world.engine.coordinator.commit(world.commit_checkpoint(held))
    world.raw.wait_for_lock_wait()
    first = admin.value(WAITING)
    admin.rows("SELECT pg_terminate_backend(?::int)", first)
    wait_until(lambda: [row["pid"] for row in admin.rows(WAITING)] not in ([], [first]), "the put waits again")
    holder.rows("COMMIT")
    assert not future.result(DEADLINE_SECONDS).replayed
    assert world.count("rp_checkpoints") == 1
    assert world.run(held.run_id)["epoch"] == held.epoch


def test_f2_what_ended_one_connection_is_taken_to_have_ended_the_idle_ones(postgres_url, postgres_raw, worlds):
    """A firewall or pooler drops them all, and says nothing: they are not tried one after the other."""
    world = worlds(postgres_url)
    futures = [world.engine.coordinator.commit(world.start_run(f"t{n}")) for n in range(30)]
    assert all(future.result(DEADLINE_SECONDS) for future in futures)
    held = world.owned()
    world.engine.notifications.flush()
    holder, admin = postgres_raw(), postgres_raw()
    before = admin.value(SESSIONS)
    holder.rows("BEGIN")
    holder.rows("SELECT 1 FROM rp_runs WHERE run_id = ? FOR UPDATE", held.run_id)
    future = world.engine.coordinator.commit(world.commit_checkpoint(held))
    world.raw.wait_for_lock_wait()
    (first,) = admin.rows(WAITING)
    admin.rows("SELECT pg_terminate_backend(?::int)", first["pid"])
    holder.rows("COMMIT")
    future.result(DEADLINE_SECONDS)
    others = 3  # the holder, the world's own, and the one that tells other processes
    assert before > others + 1
    wait_until(lambda: admin.value(SESSIONS) == others + 1, "only the new connection is left")


def test_f2_ended_when_the_put_was_stored_and_only_the_answer_is_missing(postgres_url, proxy, worlds):
    world = worlds(proxy.dsn(postgres_url), beside=postgres_url)
    held = world.owned()
    world.commit(world.commit_checkpoint(held, checkpoint_id="c1"))
    hold = proxy.hold("after_reply", lambda statement: statement.name.startswith("rp_"))
    future = world.engine.coordinator.commit(world.commit_checkpoint(held, checkpoint_id="c2", body=b"2"))
    hold.wait_reached()
    hold.drop()
    assert future.result(DEADLINE_SECONDS).replayed, "its receipt was found"
    assert world.count("rp_checkpoints") == 2


def test_f2_a_run_keeps_its_lease_over_a_lost_connection(postgres_url, raw, opened):
    runtime = opened(Runtime.open(postgres_url))
    calls = []

    def slow(_):
        calls.append(raw.value(END_ALL))  # "the model took minutes"
        return {"log": ["slow"]}

    graph = runtime.bind(chain({"a": says("a"), "slow": slow, "b": says("b")}), name="g")
    assert graph.invoke({"log": []}, config())["log"] == ["a", "slow", "b"]
    (run,) = runtime.runs.list()
    assert (run.status, run.epoch, run.attempt_no, len(calls)) == ("succeeded", 1, 1, 1)


# --- restarts, limits, hosts that are not there ---------------------------------------------------------------------


def crash(server):
    """Kill one session's process: the server ends all others, recovers, and accepts connections again."""
    admin = PostgresRaw(server.dsn())
    os.kill(admin.value("SELECT pg_backend_pid()"), signal.SIGKILL)
    admin.connection.terminate()
    admin._runner.close()


def test_a_server_that_crashes_and_recovers_in_the_middle_loses_nothing_and_stores_nothing_twice(own_server, worlds):
    dsn = own_server.create_database()
    world = worlds(dsn, beside=None)
    world.raw.close()
    acknowledged = []
    half = threading.Event()

    def writes(thread_id):
        parent = None
        for number in range(20):
            checkpoint_id = f"c{number:02}"
            world.commit(world.put_checkpoint(thread_id, expects=parent, checkpoint_id=checkpoint_id))
            acknowledged.append((thread_id, checkpoint_id))
            parent = checkpoint_id
            if len(acknowledged) > 12:
                half.set()

    with ThreadPoolExecutor(2) as threads:
        writing = [threads.submit(writes, thread_id) for thread_id in ("t1", "t2")]
        assert half.wait(DEADLINE_SECONDS)
        crash(own_server)
        for future in writing:
            future.result(DEADLINE_SECONDS)
    world.raw = PostgresRaw(dsn)
    rows = world.raw.rows("SELECT thread_id, checkpoint_id FROM rp_checkpoints")
    assert sorted((row["thread_id"], row["checkpoint_id"]) for row in rows) == sorted(acknowledged)
    assert len(acknowledged) == 40
    assert "was terminated by signal 9" in own_server.log()


def test_fewer_connections_than_we_would_like_are_enough(own_server, worlds):
    """53300: what was refused waits for one of ours, or for somebody to leave."""
    dsn = own_server.create_database()
    admin = PostgresRaw(own_server.dsn())
    admin.rows("CREATE ROLE two LOGIN CONNECTION LIMIT 2")
    admin.rows(f"ALTER DATABASE {dsn.rpartition('/')[2]} OWNER TO two")
    admin.close()
    world = worlds(dsn.replace("postgres@", "two@"), beside=dsn)
    commands = [world.put_checkpoint(f"t{n}", expects=None) for n in range(60)]
    futures = [world.engine.coordinator.commit(command) for command in commands]
    assert not any(future.result(DEADLINE_SECONDS).replayed for future in futures)
    assert world.count("rp_checkpoints") == 60
    assert world.raw.value(SESSIONS) <= 2
    assert 'too many connections for role "two"' in own_server.log()


def test_when_others_have_all_connections_the_command_waits_for_one(own_server, worlds):
    dsn = own_server.create_database()
    admin = PostgresRaw(own_server.dsn())
    admin.rows("CREATE ROLE one LOGIN CONNECTION LIMIT 1")
    admin.rows(f"ALTER DATABASE {dsn.rpartition('/')[2]} OWNER TO one")
    admin.close()
    url = dsn.replace("postgres@", "one@")
    world = worlds(url, beside=dsn)
    assert world.raw.value(END_ALL) == 1
    wait_until(lambda: world.raw.value(SESSIONS) == 0, "our connection is gone")
    other = PostgresRaw(url)
    future = world.engine.coordinator.commit(world.put_checkpoint(expects=None))
    wait_until(lambda: 'too many connections for role "one"' in own_server.log(), "a refused connection")
    assert not future.done()
    other.close()
    assert not future.result(DEADLINE_SECONDS).replayed


@pytest.fixture
def silent_port():
    """A host that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def test_a_silent_host_is_given_up_after_connect_timeout(silent_port, postgres_url, proxy, worlds):
    world = worlds(proxy.dsn(postgres_url) + "&connect_timeout=0.3", beside=postgres_url)
    world.engine._driver._pool.forget_free()
    world.engine._driver._pool._dsn = f"postgresql://me:hush@127.0.0.1:{silent_port}/db?sslmode=disable"
    error = world.engine.coordinator.commit(world.start_run()).exception(DEADLINE_SECONDS)
    assert isinstance(error, ConnectionLost)
    assert "0.3 s" in str(error)
    assert world.count("rp_runs") == 0


@pytest.mark.parametrize("auto_setup", [True, False])
def test_a_silent_host_is_a_typed_error_when_it_is_opened(silent_port, auto_setup):
    url = f"postgresql://me:hush@127.0.0.1:{silent_port}/db?sslmode=disable&connect_timeout=0.3"
    with pytest.raises((ConnectionLost, DatabaseUnavailable)) as caught:
        Runtime.open(url, auto_setup=auto_setup).checkpointer.get_tuple(at())
    assert "hush" not in str(caught.value)


def test_a_server_that_is_gone_for_good_is_a_typed_error_in_bounded_tries(postgres_url, proxy, worlds):
    world = worlds(proxy.dsn(postgres_url) + "&connect_timeout=0.3", beside=postgres_url)
    proxy.refuse_new()
    proxy.kill_all()
    error = world.engine.coordinator.commit(world.start_run()).exception(DEADLINE_SECONDS)
    assert isinstance(error, ConnectionLost)
    proxy.refuse_new(False)
    assert not world.commit(world.start_run()).replayed, "and it works again as soon as the server is back"


def test_closing_does_not_wait_for_a_server_that_is_gone(postgres_url, proxy, worlds):
    world = worlds(proxy.dsn(postgres_url) + "&connect_timeout=600", beside=postgres_url)
    proxy.refuse_new()
    proxy.kill_all()
    future = world.engine.coordinator.commit(world.start_run())
    world.engine.close()
    assert isinstance(future.exception(0), ConnectionLost)


def test_the_system_watches_silent_connections(postgres_url, worlds):
    world = worlds(postgres_url)
    world.commit(world.start_run())
    (connection, *_) = world.engine._driver._pool._free
    found = connection.raw._transport.get_extra_info("socket")
    assert found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


# --- no secrets in messages -----------------------------------------------------------------------------------------

SECRET = "s3cret-word"  # noqa: S105 (the point)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@127.0.0.1:1/db?connect_timeout=0.2",
        f"postgresql://me@127.0.0.1:1/db?password={SECRET}&connect_timeout=0.2",
        f"postgresql://me:{SECRET}@no-such-host.invalid/db?connect_timeout=0.2",
        f"postgresql://me:{SECRET}#1@127.0.0.1/db",
        f"postgresql://me:{SECRET}/1@127.0.0.1/db",
        f"postgresql:me:{SECRET}@127.0.0.1/db",
        f"postgresql://me:{SECRET}@127.0.0.1/db?colour=blue",
    ],
)
def test_no_password_in_any_message(url):
    with pytest.raises(RuntimePersistError) as caught:
        Runtime.open(url, auto_setup=False).checkpointer.get_tuple(at())
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in f"{error} {error!r} {getattr(error, 'details', '')}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


@pytest.mark.parametrize("given", ["soon", ""])
def test_a_connect_timeout_that_is_no_number_is_refused(given):
    with pytest.raises(InvalidUrl, match="connect_timeout"):
        Runtime.open(f"postgresql://127.0.0.1:1/db?connect_timeout={given}")


# --- many at once ---------------------------------------------------------------------------------------------------


def test_f3_two_hundred_puts_at_once_share_ten_connections_and_none_waits_for_a_stranger(
    postgres_url, postgres_raw, opened
):
    """One thread's row is locked from outside: the 199 others are stored meanwhile."""
    saver = opened(WorkflowCheckpointAdapter.from_conn_string(postgres_url))
    first = saver.put(at("t0"), new_checkpoint({"n": 0}), {}, {"n": "1"})
    holder, looker = postgres_raw(), postgres_raw()
    holder.rows("BEGIN")
    assert holder.rows("SELECT 1 FROM rp_threads FOR UPDATE")

    async def main():
        locked = asyncio.create_task(saver.aput(first, new_checkpoint({"n": 1}, {"n": "2"}), {}, {"n": "2"}))
        await asyncio.to_thread(looker.wait_for_lock_wait)
        others = [saver.aput(at(f"t{n}"), new_checkpoint({"n": 0}), {}, {"n": "1"}) for n in range(1, 200)]
        await asyncio.gather(*others)
        assert not locked.done()
        connections = await asyncio.to_thread(looker.value, SESSIONS)
        await asyncio.to_thread(holder.rows, "COMMIT")
        await locked
        return connections

    connections = asyncio.run(main()) - 1  # the holder's
    assert 2 <= connections <= 10
    assert looker.value("SELECT count(*) FROM rp_checkpoints") == 201
