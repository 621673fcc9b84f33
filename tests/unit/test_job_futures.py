"""What a driver answers with says what a future says; nobody can cancel it."""

import asyncio
import threading
from concurrent.futures import InvalidStateError

import pytest

from runtime_persist.drivers.futures import Pending, Settled


def test_it_says_what_a_future_says_that_is_done():
    heard = []
    settled = Settled(7)
    settled.add_done_callback(heard.append)
    assert heard == [settled]
    assert (settled.result(), settled.result(timeout=0), settled.exception()) == (7, 7, None)
    assert (settled.done(), settled.running(), settled.cancelled(), settled.cancel()) == (True, False, False, False)
    assert "7" in repr(settled)


def test_it_raises_its_error_each_time():
    settled = Settled(error=LookupError("gone"))
    for _ in range(2):
        with pytest.raises(LookupError, match="gone"):
            settled.result()
    assert isinstance(settled.exception(), LookupError)


def test_an_event_loop_can_wait_for_it():
    async def main():
        with pytest.raises(LookupError):
            await asyncio.wrap_future(Settled(error=LookupError()))
        return await asyncio.wrap_future(Settled(7))

    assert asyncio.run(main()) == 7


def test_a_pending_one_says_so_and_then_what_it_was_given():
    pending, heard = Pending(), []
    pending.add_done_callback(heard.append)
    assert (pending.done(), pending.running(), pending.cancelled(), pending.cancel()) == (False, True, False, False)
    assert heard == []
    assert pending.set_running_or_notify_cancel()
    with pytest.raises(TimeoutError):
        pending.result(timeout=0)
    pending.set_result(7)
    assert (pending.result(), pending.exception(), pending.done(), pending.running()) == (7, None, True, False)
    pending.add_done_callback(heard.append)
    assert heard == [pending, pending]
    assert "7" in repr(pending)


@pytest.mark.parametrize("given", ["set_result", "set_exception"])
def test_an_outcome_is_given_once(given):
    pending = Pending()
    getattr(pending, given)(ValueError("first"))
    for again in (pending.set_result, pending.set_exception):
        with pytest.raises(InvalidStateError):
            again(None)
    assert "first" in str(pending.exception() or pending.result())


def test_a_callback_that_fails_takes_nothing_from_the_others(caplog):
    pending, heard = Pending(), []
    pending.add_done_callback(lambda _: 1 / 0)
    pending.add_done_callback(heard.append)
    pending.set_exception(LookupError("gone"))
    assert heard == [pending]
    assert "ZeroDivisionError" in caplog.text
    with pytest.raises(LookupError, match="gone"):
        pending.result()


def test_many_threads_that_wait_are_all_woken_and_every_callback_is_called_once():
    for number in range(200):
        pending, got, called = Pending(), [], []
        begun = threading.Barrier(4)

        def wait(pending=pending, got=got, begun=begun):
            begun.wait()
            got.append(pending.result())

        def listen(pending=pending, called=called, begun=begun):
            begun.wait()
            pending.add_done_callback(lambda done: called.append(done.result()))

        threads = [threading.Thread(target=target) for target in (wait, wait, listen)]
        for thread in threads:
            thread.start()
        begun.wait()
        pending.set_result(number)
        for thread in threads:
            thread.join()
        assert (got, called) == ([number] * 2, [number])


def test_an_event_loop_can_wait_for_a_pending_one():
    async def main():
        pending = Pending()
        threading.Timer(0, pending.set_result, ["told"]).start()
        return await asyncio.wrap_future(pending)

    assert asyncio.run(main()) == "told"
