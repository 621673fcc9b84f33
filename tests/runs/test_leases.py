"""runtime.lease: ownership in a user's hands."""

import pytest

from runtime_persist.errors import Fenced, LeaseLost, ThreadOwned
from tests.support.checkpoints import Steps, at
from tests.support.leases import run_out, take_away


async def test_leaving_the_block_releases_it(runtime, way):
    async with way.within(await way(runtime, "lease", thread_id="t")) as lease:
        assert (lease.thread_id, lease.epoch) == ("t", 1)
        assert (await way(runtime.runs, "get", lease.run_id)).shown == "running"
        await Steps(way, runtime.checkpointer.session(lease)).put(a=1)
    record = await way(runtime.runs, "get", lease.run_id)
    assert (record.status, record.phase) == ("succeeded", "released")
    assert (await way(runtime.checkpointer, "get_tuple", at())).checkpoint["channel_values"] == {"a": 1}


async def test_one_at_a_time(runtime, open_runtime, way):
    lease = await way(runtime, "lease", thread_id="t")
    with pytest.raises(ThreadOwned):
        await way(open_runtime(), "lease", thread_id="t")
    await way(runtime, "lease", thread_id="u")
    await way(lease, "release")
    await way(lease, "release")  # again: nothing
    again = await way(open_runtime(), "lease", thread_id="t")
    assert again.run_id != lease.run_id


async def test_an_error_inside_the_block_is_not_hidden_and_fails_the_run(runtime, way):
    async def block():
        async with way.within(await way(runtime, "lease", thread_id="t")):
            msg = "own"
            raise ValueError(msg)

    with pytest.raises(ValueError, match="own"):
        await block()
    (record,) = await way(runtime.runs, "list")
    assert (record.status, record.error_code) == ("failed", "ValueError")


async def test_leaving_after_a_takeover_says_so(runtime, way, raw):
    async def block():
        async with way.within(await way(runtime, "lease", thread_id="t")):
            take_away(raw)

    with pytest.raises(LeaseLost):
        await block()
    assert (await way(runtime.runs, "list"))[0].status == "running"


async def test_an_expired_lease_is_shown_as_unknown_and_can_be_taken(runtime, way, raw):
    lease = await way(runtime, "lease", thread_id="t")
    run_out(raw)
    assert (await way(runtime.runs, "get", lease.run_id)).shown == "unknown"
    other = await way(runtime, "lease", thread_id="t")
    assert (await way(runtime.runs, "get", lease.run_id)).status == "cancelled"
    with pytest.raises(Fenced):
        await way(lease, "release")
    await way(other, "release")
