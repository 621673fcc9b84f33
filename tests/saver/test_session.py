"""L1: a session writes under a lease; whoever lost it writes nothing, and hears of it (architecture §5)."""

import contextlib
import copy

import pytest

from runtime_persist.errors import (
    CheckpointConflict,
    Fenced,
    LeaseExpired,
    LeaseLost,
    LeaseReleased,
    ThreadMismatch,
    ThreadOwned,
)
from tests.support.checkpoints import Steps, at, new_checkpoint
from tests.support.graphs import chain, config, says


@pytest.fixture
def lease(runtime):
    return runtime.lease(thread_id="t")


@pytest.fixture
def session(runtime, lease):
    return runtime.checkpointer.session(lease)


def bump(raw, lease):
    raw.rows("UPDATE rp_runs SET epoch = epoch + 1 WHERE run_id = ?", lease.run_id)


def expire(raw, lease):
    raw.rows("UPDATE rp_runs SET expires_us = 0 WHERE run_id = ?", lease.run_id)


def release(raw, lease):
    raw.rows("UPDATE rp_runs SET phase = 'released', expires_us = 0 WHERE run_id = ?", lease.run_id)


def taken_and_released(raw, lease):
    bump(raw, lease)
    release(raw, lease)


LOSSES = {
    "taken over": (bump, LeaseLost),
    "taken over and released": (taken_and_released, LeaseLost),
    "expired": (expire, LeaseExpired),
    "released": (release, LeaseReleased),
}


async def test_its_rows_carry_run_and_epoch(session, way, raw, lease):
    steps = Steps(way, session)
    await steps.put(a=1)
    await way(session, "put_writes", await steps.put(a=2), [("x", 1)], "task")
    for table in ("rp_checkpoints", "rp_writes"):
        owners = {(row["run_id"], row["epoch"]) for row in raw.rows(f"SELECT run_id, epoch FROM {table}")}
        assert owners == {(lease.run_id, lease.epoch)}


@pytest.mark.parametrize("method", ["put", "put_writes"])
@pytest.mark.parametrize(("lose", "error"), LOSSES.values(), ids=LOSSES)
async def test_a_lost_lease_refuses_and_every_later_write_too(session, way, raw, lease, lose, error, method):
    place = await Steps(way, session).put(a=1)
    lose(raw, lease)
    before = raw.dump()
    arguments = {
        "put": (place, new_checkpoint({"a": 2}, {"a": "2"}), {}, {"a": "2"}),
        "put_writes": (place, [("x", 1)], "task"),
    }
    with pytest.raises(error) as first:
        await way(session, method, *arguments[method])
    assert isinstance(first.value, RuntimeError)
    assert first.value.kind == "fenced"
    raw.rows("UPDATE rp_runs SET epoch = ?, phase = 'active', expires_us = ?", lease.epoch, 2**62)
    for other, given in arguments.items():  # latched: what was refused once is not tried again
        with pytest.raises(error):
            await way(session, other, *given)
    with pytest.raises(error):
        session.check()
    after = raw.dump()
    assert after["rp_checkpoints"] == before["rp_checkpoints"]
    assert after["rp_writes"] == before["rp_writes"]


async def test_clones_share_what_went_wrong_and_what_is_cached(session, way, raw, lease):
    """LangGraph clones savers with copy.copy; a clone may not forget that the lease is lost."""
    clone = copy.copy(session)
    place = await Steps(way, clone).put(a=1)
    bump(raw, lease)
    with pytest.raises(LeaseLost):
        await way(clone, "put_writes", place, [("x", 1)], "task")
    for other in (session, copy.copy(session)):
        with pytest.raises(LeaseLost):
            other.check()


async def test_leaving_a_session_raises_what_went_wrong(session, way, raw, lease):
    async def swallowed():
        async with way.within(session):
            place = await Steps(way, session).put(a=1)
            bump(raw, lease)
            with contextlib.suppress(Fenced):  # as LangGraph does in five situations
                await way(session, "put_writes", place, [("x", 1)], "task")

    with pytest.raises(LeaseLost):
        await swallowed()


async def test_leaving_a_session_leaves_the_runtime_open(runtime, session, way):
    async with way.within(session):
        await Steps(way, session).put(a=1)
    assert await way(runtime.checkpointer, "get_tuple", at()) is not None


@pytest.mark.parametrize("method", ["put", "put_writes", "get_tuple", "delete_thread"])
async def test_another_thread_is_refused_and_its_own_goes_on(session, way, raw, method):
    place = await Steps(way, session).put(a=1)
    before = raw.dump()
    arguments = {
        "put": (at("u"), new_checkpoint({"a": 2}), {}, {"a": "1"}),
        "put_writes": (at("u", "c1"), [("x", 1)], "task"),
        "get_tuple": (at("u"),),
        "delete_thread": ("u",),
    }
    with pytest.raises(ThreadMismatch, match="'u'"):
        await way(session, method, *arguments[method])
    with pytest.raises(ThreadMismatch):
        await way.all(session, "list", at("u"))
    assert raw.dump() == before
    await way(session, "put_writes", place, [("x", 1)], "task")
    session.check()


async def test_a_put_again_with_the_same_bytes_changes_nothing(session, way, raw):
    given = new_checkpoint({"a": 1})
    for _ in range(2):
        await way(session, "put", at(), given, {}, {"a": "1"})
    assert raw.value("SELECT count(*) FROM rp_checkpoints") == 1
    session.check()


async def test_a_put_again_with_other_bytes_is_refused(runtime, session, way):
    given = new_checkpoint({"a": 1})
    await way(session, "put", at(), given, {}, {"a": "1"})
    with pytest.raises(CheckpointConflict):
        await way(session, "put", at(), given | {"channel_values": {"a": 2}}, {}, {"a": "1"})
    assert (await way(runtime.checkpointer, "get_tuple", at())).checkpoint["channel_values"] == {"a": 1}


async def test_while_it_lives_others_may_read_but_not_write(runtime, session, way, raw):
    saver = runtime.checkpointer
    place = await Steps(way, session).put(a=1)
    graph = chain({"node": says("x")}, checkpointer=saver)
    before = raw.dump()
    refused = [
        way(saver, "put", place, new_checkpoint({"a": 2}, {"a": "2"}), {}, {"a": "2"}),
        way(saver, "put", at(), new_checkpoint({"a": 2}), {}, {"a": "1"}),
        way(saver, "put_writes", place, [("x", 1)], "task"),
        way(saver, "delete_thread", "t"),
        way(graph, "update_state", config(), {"log": ["edit"]}, as_node="node"),
        way(graph, "invoke", {"log": []}, config()),
    ]
    for call in refused:
        with pytest.raises(ThreadOwned):
            await call
    assert raw.dump() == before
    assert (await way(saver, "get_tuple", at())).checkpoint["channel_values"] == {"a": 1}
    assert len(await way.all(saver, "list", at())) == 1
    await Steps(way, saver, "another thread").put(a=1)


@pytest.mark.parametrize("end", ["release", "expire"])
async def test_a_released_or_expired_lease_lets_others_write_again(runtime, session, way, raw, lease, end):
    place = await Steps(way, session).put(a=1)
    if end == "release":
        await way(lease, "release")
    else:
        expire(raw, lease)
    await way(runtime.checkpointer, "put", place, new_checkpoint({"a": 2}, {"a": "2"}), {}, {"a": "2"})
    assert (await way(runtime.checkpointer, "get_tuple", at())).checkpoint["channel_values"] == {"a": 2}
    with pytest.raises(Fenced):
        await way(session, "put_writes", place, [("x", "late")], "task")
    await way(runtime.checkpointer, "delete_thread", "t")
    assert await way(runtime.checkpointer, "get_tuple", at()) is None
