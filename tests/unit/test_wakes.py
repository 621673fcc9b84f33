"""Waking other threads: held back and once where more may follow, never kept from a thread that is about to block."""

import asyncio
import contextlib
from concurrent.futures import Future

from runtime_persist.drivers import wakes
from runtime_persist.drivers.futures import Pending
from runtime_persist.engine.flow import run
from tests.fixtures.raw import DEADLINE_SECONDS


def test_it_wakes_at_once_where_nothing_is_held_back():
    woken = []
    wakes.wake(lambda: woken.append(1))
    assert woken == [1]


def test_what_is_woken_several_times_in_a_block_is_woken_once_behind_it_in_order():
    woken = []

    def first():
        woken.append("first")

    def second():
        woken.append("second")

    with wakes.held():
        wakes.wake(first)
        with wakes.held():
            wakes.wake(second)
        wakes.wake(first)
        assert woken == []
    assert woken == ["first", "second"]


def test_a_failure_in_the_block_wakes_all_the_same():
    woken = []
    with contextlib.suppress(LookupError), wakes.held():
        wakes.wake(lambda: woken.append(1))
        raise LookupError
    assert woken == [1]


def test_on_an_event_loop_it_is_held_back_until_all_that_is_ready_has_run():
    woken = []

    def wake():
        woken.append(asyncio.get_running_loop())

    async def one():
        wakes.hold_for_this_turn()
        wakes.wake(wake)
        assert woken == []

    async def main():
        await asyncio.gather(*(one() for _ in range(5)))
        await asyncio.sleep(0)
        assert len(woken) == 1

    asyncio.run(main())


def test_without_an_event_loop_it_is_not_held_back():
    woken = []
    wakes.hold_for_this_turn()
    wakes.wake(lambda: woken.append(1))
    assert woken == [1]


def test_a_thread_that_waits_for_an_answer_lets_go_of_what_it_held_back():
    """A sync call on an event loop: its turn does not end before the answer comes."""
    future: Future[str] = Future()

    def flow():
        return (yield future)

    async def main():
        wakes.hold_for_this_turn()
        wakes.wake(lambda: future.set_result("told"))
        return run(flow())

    assert asyncio.run(main()) == "told"


def test_a_loop_that_is_stopped_in_its_turn_keeps_nothing_back_from_whoever_comes_next_on_its_thread():
    woken = []
    loop = asyncio.new_event_loop()

    async def one():
        wakes.hold_for_this_turn()
        wakes.wake(lambda: woken.append("held back"))
        loop.stop()

    task = loop.create_task(one())
    loop.run_forever()
    loop.call_soon(loop.stop)
    assert woken == []
    wakes.wake(lambda: woken.append("next"))
    assert woken == ["held back", "next"]

    async def other():
        wakes.hold_for_this_turn()
        wakes.wake(lambda: woken.append("another loop"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(other())
    assert woken[2:] == ["another loop"]
    assert task.done()
    loop.close()


def test_who_waits_on_a_loop_s_thread_for_what_it_has_just_asked_for_wakes_the_thread_that_does_it():
    async def main():
        wakes.hold_for_this_turn()
        asked = Pending()
        wakes.wake(lambda: asked.set_result("here"))
        assert not asked.done()
        assert asked.result(timeout=DEADLINE_SECONDS) == "here"
        wakes.hold_for_this_turn()
        failed = Pending()
        wakes.wake(lambda: failed.set_exception(LookupError("gone")))
        assert isinstance(failed.exception(timeout=DEADLINE_SECONDS), LookupError)

    asyncio.run(main())
