"""A graph that is called inside a node with a thread id of its own: whose lease it has, and what its end means."""

import pytest
from langgraph.config import get_config

from runtime_persist.commands.renew_lease import RenewLease
from runtime_persist.commands.start_owned_run import StartOwnedRun
from runtime_persist.errors import LeaseLost, ThreadMismatch, ThreadOwned
from tests.fixtures.raw import wait_until
from tests.support.graphs import chain, config, says
from tests.support.leases import run_out
from tests.support.programs import nesting

HELLO = {"log": []}
INNER = config("inner thread")


def outer_of(runtime, way, call):
    """A bound graph whose second node calls something."""

    def node(_):
        return {"log": call(HELLO, INNER)["log"]}

    return runtime.bind(chain({"first": says("first"), "calls": node, "last": says("last")}), name="outer")


def expiry(raw):
    rows = raw.rows("SELECT thread_id, expires_us FROM rp_runs WHERE phase <> 'released'")
    return {row["thread_id"]: row["expires_us"] for row in rows}


async def ends(runtime, way):
    found = await way(runtime.runs, "list")
    return {run.thread_id: (run.status, run.error_code or run.stop_reason, run.phase) for run in reversed(found)}


async def test_it_has_a_lease_of_its_own_which_does_not_outlive_that_of_the_outer_run(runtime, way, raw):
    found = []

    def node(_):
        found.append(expiry(raw))
        return {"log": ["inner"]}

    inner = runtime.bind(chain({"node": node}), name="inner")
    output = await way(outer_of(runtime, way, inner.invoke), "invoke", HELLO, config())
    assert output["log"] == ["first", "inner", "last"]
    (leases,) = found
    assert leases["t"] >= leases["inner thread"]
    assert await ends(runtime, way) == dict.fromkeys(["t", "inner thread"], ("succeeded", None, "released"))


async def test_the_youngest_run_is_renewed_first(frequent_heartbeats, open_runtime, monkeypatch):
    """So that also after every heartbeat the lease of the outer run ends last."""
    runtime, renewed = open_runtime(), []
    commit = runtime.engine.coordinator.commit

    def watched(command):
        if isinstance(command, RenewLease):
            renewed.append(command.run_id)
        return commit(command)

    monkeypatch.setattr(runtime.engine.coordinator, "commit", watched)
    leases = [runtime.lease(thread_id=name) for name in ("old", "middle", "young")]
    old, middle, young = (lease.run_id for lease in leases)
    renewed.clear()
    wait_until(lambda: len(renewed) >= 8, "three heartbeats")
    first = renewed.index(young)
    assert renewed[first : first + 6] == [young, middle, old] * 2


@pytest.mark.parametrize("caught", [True, False], ids=["caught", "not caught"])
async def test_losing_its_lease_fails_the_inner_call_only(runtime, way, raw, caught):
    def loses(_):
        raw.rows("UPDATE rp_runs SET epoch = epoch + 1 WHERE thread_id = 'inner thread'")

    inner = runtime.bind(chain({"node": loses, "never": says("never")}), name="inner")

    def call(given, where):
        with pytest.raises(LeaseLost) as error:
            inner.invoke(given, where)
        if caught:
            return {"log": [error.value.code]}
        raise error.value

    outer = outer_of(runtime, way, call)
    if caught:
        assert (await way(outer, "invoke", HELLO, config()))["log"] == ["first", "LEASE_LOST", "last"]
    else:
        with pytest.raises(LeaseLost):
            await way(outer, "invoke", HELLO, config())
    end = ("succeeded", None, "released") if caught else ("failed", "LEASE_LOST", "released")
    assert (await ends(runtime, way))["t"] == end


async def test_a_live_run_of_its_thread_is_left_alone(runtime, open_runtime, way):
    inner = runtime.bind(chain({"node": says("inner")}), name="inner")
    lease = open_runtime().lease(thread_id="inner thread")
    with pytest.raises(ThreadOwned) as error:
        await way(outer_of(runtime, way, inner.invoke), "invoke", HELLO, config())
    assert error.value.details["run_id"] == lease.run_id
    assert await ends(runtime, way) == {
        "t": ("failed", "THREAD_OWNED", "released"),
        "inner thread": ("running", None, "active"),
    }
    lease.release()
    again = await way(outer_of(runtime, way, inner.invoke), "invoke", None, config())
    assert again["log"] == ["first", "inner", "last"]


async def test_an_outer_run_that_lost_its_lease_starts_nothing(runtime, way, raw):
    ran = []
    inner = runtime.bind(chain({"node": ran.append}), name="inner")

    def call(given, where):
        raw.rows("UPDATE rp_runs SET epoch = epoch + 1 WHERE thread_id = 't'")
        return inner.invoke(given, where)

    with pytest.raises(LeaseLost):
        await way(outer_of(runtime, way, call), "invoke", HELLO, config())
    assert ran == []
    assert list(await ends(runtime, way)) == ["t"]


async def test_an_outer_run_that_loses_its_lease_while_it_starts_one_leaves_none_running(
    runtime, way, raw, monkeypatch
):
    ran = []
    inner = runtime.bind(chain({"node": ran.append}), name="inner")
    commit = runtime.engine.coordinator.commit

    def watched(command):
        if isinstance(command, StartOwnedRun) and command.thread_id == "inner thread":
            raw.rows("UPDATE rp_runs SET epoch = epoch + 1 WHERE thread_id = 't'")
        return commit(command)

    monkeypatch.setattr(runtime.engine.coordinator, "commit", watched)
    with pytest.raises(LeaseLost):
        await way(outer_of(runtime, way, inner.invoke), "invoke", HELLO, config())
    assert ran == []
    assert (await ends(runtime, way))["inner thread"] == ("failed", "LEASE_LOST", "released")


async def test_after_a_crash_inside_it_the_node_that_called_it_starts_it_again(runtime, fork, way, raw, shared_url):
    child = fork(nesting, shared_url)
    child.until("in node")
    child.kill()
    assert expiry(raw)["t"] >= expiry(raw)["inner thread"]
    run_out(raw)
    inner = runtime.bind(chain({"node": says("inner")}), name="inner")
    output = await way(outer_of(runtime, way, inner.invoke), "invoke", None, config())
    assert output["log"] == ["first", "inner", "last"]
    found = [(run.thread_id, run.status, run.stop_reason, run.attempt_no) for run in await way(runtime.runs, "list")]
    assert sorted(found, key=repr) == [
        ("inner thread", "cancelled", "superseded", 1),
        ("inner thread", "succeeded", None, 1),
        ("t", "succeeded", None, 2),
    ]


async def test_a_graph_with_a_saver_of_its_own_is_unleased_and_refused_where_a_live_run_is(runtime, open_runtime, way):
    inner = chain({"node": says("inner")}, checkpointer=runtime.checkpointer)
    outer = outer_of(runtime, way, inner.invoke)
    assert (await way(outer, "invoke", HELLO, config()))["log"] == ["first", "inner", "last"]
    assert inner.get_state(INNER).values["log"] == ["inner"]
    assert list(await ends(runtime, way)) == ["t"]
    with open_runtime().lease(thread_id="inner thread"), pytest.raises(ThreadOwned):
        await way(outer, "invoke", HELLO, config())


async def test_the_outer_runs_own_saver_is_not_lent_to_another_thread(runtime, way):
    """Nothing tells a saver when such a graph ends, so its lease could not be given back: the error says what can."""
    inner = chain({"node": says("inner")})

    def call(given, where):
        own = get_config()["configurable"]
        return inner.invoke(given, {"configurable": own | where["configurable"]})

    with pytest.raises(ThreadMismatch, match=r"runtime\.bind"):
        await way(outer_of(runtime, way, call), "invoke", HELLO, config())
    assert await ends(runtime, way) == {"t": ("failed", "THREAD_MISMATCH", "released")}
    assert (await way(runtime.checkpointer, "get_tuple", INNER)) is None
