"""The outcome of what was done where it was asked for: it says what a future says, and is never waited for."""

import asyncio

import pytest

from runtime_persist.drivers.base import Settled


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
