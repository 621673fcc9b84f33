"""Connections that end between two steps (F2): quietly made anew; an owner that lost its lease meanwhile is told."""

from __future__ import annotations

import asyncio
import logging

import pytest

from runtime_persist import Runtime
from runtime_persist.errors import LeaseExpired, LeaseLost
from tests.connections.test_lost_connections import END_ALL, SESSIONS
from tests.support.checkpoints import Steps, at
from tests.support.graphs import chain, config, says
from tests.support.leases import run_out, take_away


@pytest.fixture
def raw(postgres_raw):
    """A connection of the test's own (it does not end itself)."""
    return postgres_raw()


def test_f2_each_step_after_all_sessions_ended_is_stored_once_after_one_quiet_reconnect(
    postgres_url, raw, way, opened, caplog
):
    caplog.set_level(logging.DEBUG, "runtime_persist")
    saver = opened(Runtime.open(postgres_url)).checkpointer

    async def body():
        steps = Steps(way, saver)
        for number in range(3):
            await steps.put(n=number)
            await way(saver, "put_writes", steps.config, [("n", number)], "task")
            ask = (lambda sql: asyncio.to_thread(raw.value, sql)) if way.asynchronous else None
            assert (await ask(END_ALL) if ask else raw.value(END_ALL)) >= 1
            found = await way(saver, "get_tuple", at())
            assert (found.checkpoint["channel_values"], found.pending_writes) == (
                {"n": number},
                [("task", "n", number)],
            )
            assert (await ask(SESSIONS) if ask else raw.value(SESSIONS)) == 1, "one reconnect"
        assert len(await way.all(saver, "list", at())) == 3

    way.run(body())
    assert [record for record in caplog.records if record.levelno >= logging.INFO] == []
    assert raw.value("SELECT count(*) FROM rp_checkpoints") == raw.value("SELECT count(*) FROM rp_writes") == 3


@pytest.mark.parametrize(("gone", "error"), [(run_out, LeaseExpired), (take_away, LeaseLost)])
def test_f2_a_lease_that_was_lost_while_the_connection_was_gone_is_a_typed_loss(
    postgres_url, raw, way, opened, gone, error
):
    runtime = opened(Runtime.open(postgres_url))
    said: list[dict[str, object]] = []

    def slow(_):
        gone(raw)
        raw.value(END_ALL)
        said.append(raw.dump())
        return {"log": ["slow"]}

    graph = runtime.bind(chain({"a": says("a"), "slow": slow, "b": says("b")}), name="g")

    async def body():
        with pytest.raises(error) as caught:
            await way(graph, "invoke", {"log": []}, config(), durability="sync")
        assert caught.value.details["run_id"]
        assert (await way(runtime.checkpointer, "get_tuple", at())).checkpoint["channel_values"]["log"] == ["a"]

    way.run(body())
    assert len(said) == 1
    assert raw.dump() == said[0], "nothing was written"
