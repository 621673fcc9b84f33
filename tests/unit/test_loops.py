"""One engine for every thread and every event loop; what a cancelled, closed or forked caller leaves behind."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from runtime_persist.engine import arun, run
from runtime_persist.engine.flow import wait
from runtime_persist.errors import Closed
from runtime_persist.queries import spaces
from tests.fixtures.raw import DEADLINE_SECONDS, wait_until
from tests.fixtures.world import World

THREADS, EACH = 4, 5


class Gate:
    """A hook that stops the driver at one cut until it is opened."""

    def __init__(self, cut: str) -> None:
        self.cut = cut
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self, cut: str) -> None:
        if cut == self.cut:
            self.reached.set()
            assert self.opened.wait(DEADLINE_SECONDS)

    def wait_reached(self) -> None:
        assert self.reached.wait(DEADLINE_SECONDS)


@pytest.fixture
def gate() -> Gate:
    return Gate("start_owned_run:before:commit")


@pytest.fixture
def gated(engine_url, open_engine, gate):
    """A world whose owned starts stop right before COMMIT."""
    with World(open_engine(engine_url, hook=gate)) as world:
        yield world
        gate.opened.set()


def test_many_loops_and_threads_at_once(world):
    def asynchronously(number):
        async def main():
            commands = [world.start_run(f"{number}") for _ in range(EACH)]
            return await asyncio.gather(*(arun(wait(world.engine.coordinator.commit(c))) for c in commands))

        return asyncio.run(main())

    def synchronously(number):
        return [run(wait(world.engine.coordinator.commit(world.start_run(f"{number}")))) for _ in range(EACH)]

    with ThreadPoolExecutor(2 * THREADS) as pool:
        futures = [pool.submit(call, n) for n in range(THREADS) for call in (asynchronously, synchronously)]
        receipts = [receipt for future in futures for receipt in future.result(DEADLINE_SECONDS)]
    assert len({receipt.result["run_id"] for receipt in receipts}) == 2 * THREADS * EACH
    numbers = world.raw.rows("SELECT thread_id, thread_run_no FROM rp_runs ORDER BY thread_id, thread_run_no")
    assert [row["thread_run_no"] for row in numbers] == [*range(1, 2 * EACH + 1)] * THREADS


def test_one_engine_serves_one_loop_after_another(world):
    for _ in range(3):
        assert asyncio.run(arun(wait(world.engine.coordinator.commit(world.start_run())))).kind == "start_run"


def test_a_sync_call_inside_a_running_loop_does_not_hang(world):
    async def main():
        return run(wait(world.engine.coordinator.commit(world.start_run())))

    assert asyncio.run(main()).result["run_id"]


def test_a_cancelled_caller_leaves_the_command_committed_whole(gated, gate):
    command = gated.start_owned_run()

    async def main():
        task = asyncio.create_task(arun(wait(gated.engine.coordinator.commit(command))))
        await asyncio.to_thread(gate.wait_reached)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    gate.opened.set()
    assert gated.commit(command).replayed  # it waits its turn: the first one is through by then
    assert gated.events(command.request.run_id)[-1] == "run.running"
    assert gated.count("rp_attempts") == 1


def test_a_job_that_runs_cannot_be_cancelled(gated, gate):
    command = gated.start_owned_run()
    future = gated.engine.coordinator.commit(command)
    gate.wait_reached()
    assert not future.cancel()
    gate.opened.set()
    assert future.result(DEADLINE_SECONDS).result["run_id"] == command.request.run_id
    assert gated.run(command.request.run_id)["status"] == "running"


def test_closing_finishes_what_was_sent(shared_url, open_engine):
    engine = open_engine(shared_url)
    with World(engine) as world:
        futures = [engine.coordinator.commit(world.start_run(f"{n}")) for n in range(30)]
        engine.close()
        assert all(future.done() for future in futures)
        assert {future.result().kind for future in futures} == {"start_run"}
        assert world.count("rp_runs") == 30


def test_closing_does_not_leave_a_caller_waiting_who_was_to_be_tried_again(shared_url, open_engine):
    failed = threading.Event()

    def fails_once(cut):
        if cut == "start_run:before:begin" and not failed.is_set():
            failed.set()
            raise sqlite3.OperationalError("database is locked") if "sqlite" in shared_url else ConnectionError

    engine = open_engine(shared_url, hook=fails_once)
    with World(engine) as world:
        future = engine.coordinator.commit(world.start_run())
        assert failed.wait(DEADLINE_SECONDS)
        engine.close()
        assert future.done()
        error = future.exception()
        assert error is None or error.kind == "retry"
        assert world.count("rp_runs") == (error is None)


def test_after_closing_nothing_is_accepted_and_nothing_hangs(engine_url, open_engine):
    engine = open_engine(engine_url)
    coordinator = engine.coordinator
    with World(engine) as world:
        command = world.start_run()
    engine.close()
    engine.close()
    with pytest.raises(Closed):
        coordinator.commit(command)
    with pytest.raises(Closed):
        coordinator.read("read_space", lambda: spaces.secret("default"))


def test_sending_while_closing_is_done_or_refused(shared_url, open_engine):
    for _ in range(5):
        engine = open_engine(shared_url)
        with World(engine) as world:
            begun = threading.Event()
            outcome: list[object] = []

            def send(world=world, begun=begun, outcome=outcome):
                while True:
                    begun.set()
                    try:
                        outcome.append(world.engine.coordinator.commit(world.start_run()))
                    except Closed:
                        return

            sender = threading.Thread(target=send)
            sender.start()
            assert begun.wait(DEADLINE_SECONDS)
            engine.close()
            sender.join(DEADLINE_SECONDS)
            assert not sender.is_alive()
            assert all(future.done() for future in outcome)


FORKING = """
import os, signal, sys
from runtime_persist.engine import Engine
from runtime_persist.errors import Closed
from tests.fixtures.world import World

engine = Engine(sys.argv[1])
world = World(engine)
held = world.owned()
world.commit(world.renew(held))
child = os.fork()
if child == 0:
    signal.alarm(20)
    try:
        engine.coordinator.commit(world.renew(held))
    except Closed as error:
        assert "fork" in error.message
        engine.close()  # returns, and harms nobody
        own = Engine(sys.argv[1])
        World(own).commit(world.begin(held))
        own.close()
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
world.commit(world.commit_checkpoint(held))
assert world.events(held.run_id)[-1] == "operation.started"
world.raw.close()
engine.close()
"""


def test_a_forked_child_is_refused_and_can_open_its_own(shared_url):
    # Python 3.12 and later warn of the fork itself: that is what the test is about.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING, shared_url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    unexpected = [line for line in done.stderr.splitlines() if "WAL-reset" not in line]
    assert (done.returncode, unexpected) == (0, [])


def test_heartbeats_go_on_while_the_callers_loop_is_blocked(frequent_heartbeats, engine_url, open_engine):
    """Timers live on the engine's own threads: a node that blocks its loop does not lose its lease."""
    from runtime_persist.engine import ownership, requests, settling
    from tests.fixtures.world import SERDE

    engine = open_engine(engine_url)
    with World(engine) as world:

        async def main():
            owned = await arun(
                ownership.start(engine, SERDE, requests.request(engine, SERDE, "g", 1, thread_id="t"), "t")
            )
            first = owned.renewed_at
            wait_until(lambda: owned.renewed_at > first, "a renewal")  # blocks this loop
            owned.check()
            return await arun(settling.finish(engine, owned, 2))

        assert asyncio.run(main()) == "succeeded"
        assert world.count("rp_runs") == 1
