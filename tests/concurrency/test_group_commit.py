"""What queued while the file was locked is committed together; one refused command takes nothing of its neighbours."""

import sqlite3
import threading
from contextlib import closing

import pytest

from runtime_persist.engine import Engine, run
from runtime_persist.errors import StaleWriter
from tests.fixtures.raw import wait_until
from tests.fixtures.world import World

COMMANDS = 40


@pytest.fixture
def world(tmp_path):
    with closing(Engine(tmp_path / "x.db")) as engine, World(engine) as found:
        yield found


def queued_behind_a_lock(world, commands):
    """Send commands while another connection holds the file; return their futures and what the writer ran."""
    ran = []
    other = sqlite3.connect(world.engine.url.location, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    world.engine._driver._writer.set_trace_callback(ran.append)
    futures = [world.engine.coordinator.commit(command) for command in commands]
    other.execute("COMMIT")
    other.close()
    for future in futures:
        future.exception(30)
    world.engine._driver._writer.set_trace_callback(None)
    return futures, ran


def test_commands_that_queued_share_a_transaction(world):
    commands = [world.put_checkpoint(f"t{n}", expects=None) for n in range(COMMANDS)]
    futures, ran = queued_behind_a_lock(world, commands)
    assert all(not future.result().replayed for future in futures)
    assert world.count("rp_checkpoints") == COMMANDS
    assert sum(statement.startswith("COMMIT") for statement in ran) <= 2


def test_a_refused_command_takes_nothing_of_its_neighbours_with_it(world):
    commands = [world.put_checkpoint(f"t{n}", expects=None) for n in range(COMMANDS)]
    stale = world.put_checkpoint("t7", expects="nobody", checkpoint_id="c2")
    futures, _ = queued_behind_a_lock(world, [*commands[:20], stale, *commands[20:]])
    assert isinstance(futures[20].exception(), StaleWriter)
    assert all(future.exception() is None for future in [*futures[:20], *futures[21:]])
    assert world.count("rp_checkpoints") == world.count("rp_heads") == COMMANDS


def test_commands_of_one_run_keep_their_order(world):
    held = world.owned()
    commands = [world.commit_checkpoint(held, checkpoint_id=f"c{n:02}", body=b"%d" % n) for n in range(COMMANDS)]
    futures, _ = queued_behind_a_lock(world, commands)
    assert all(future.exception() is None for future in futures)
    assert world.head() == f"c{COMMANDS - 1:02}"
    order = world.raw.rows("SELECT checkpoint_id FROM rp_checkpoints ORDER BY rowid")
    assert [row["checkpoint_id"] for row in order] == [f"c{n:02}" for n in range(COMMANDS)]


def test_a_command_the_database_itself_refuses_fails_alone(world):
    """A value that breaks a CHECK ends the common transaction: every command then goes by itself."""
    good = [world.put_checkpoint(f"t{n}", expects=None) for n in range(4)]
    held = world.owned("mine")
    bad = world.complete(held, world.begun(held))
    object.__setattr__(bad, "try_status", "nonsense")
    futures, _ = queued_behind_a_lock(world, [good[0], good[1], bad, good[2], good[3]])
    assert futures[2].exception() is not None
    assert all(futures[n].exception() is None for n in (0, 1, 3, 4))
    assert world.count("rp_checkpoints") == 4


def test_a_caller_that_is_interrupted_while_it_commits_for_others_leaves_them_nothing_undone(tmp_path):
    """Ctrl-C reaches the thread that leads; what it took along is committed by the writer thread."""
    interrupted = threading.Event()

    def interrupt(cut):
        here = cut == "put_thread_checkpoint:before:commit" and threading.current_thread() is leader
        if here and not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt

    with closing(Engine(tmp_path / "x.db", hook=interrupt)) as engine, World(engine) as world:
        commands = [world.put_checkpoint(f"t{n}", expects=None) for n in range(COMMANDS)]
        driver, caught = engine._driver, []

        def lead():
            try:
                run(one(commands[-1]))
            except KeyboardInterrupt as error:
                caught.append(error)

        def one(command):
            yield engine.coordinator.commit(command)

        leader = threading.Thread(target=lead)
        driver._writing.acquire()  # so that all of them are in the queue when somebody leads
        futures = [engine.coordinator.commit(command) for command in commands[:-1]]
        driver._writing.release()
        leader.start()
        leader.join()
        assert all(future.exception(30) is None for future in futures)
        assert len(caught) == interrupted.is_set() == 1
        wait_until(lambda: world.count("rp_checkpoints") == COMMANDS, "the interrupted command, too, is committed")
