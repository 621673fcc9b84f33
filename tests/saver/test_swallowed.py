"""LangGraph swallows a saver's error in five situations (contract §2.4): the owner of the run hears of it all the same.

In each the lease is lost in the middle of a node, and nothing but the refused writes can tell.
"""

import asyncio

import pytest

from runtime_persist import operation
from runtime_persist.errors import LeaseLost
from tests.support.checkpoints import at
from tests.support.graphs import asks, chain, config, fails, nested, says
from tests.support.way import ASYNC

DURABILITIES = ["sync", "async", "exit"]


@pytest.fixture
def loses(raw):
    """A node after which the lease is somebody else's."""

    def node(_):
        raw.rows("UPDATE rp_runs SET epoch = epoch + 1")
        return {"log": ["lost"]}

    return node


async def assert_told_and_settled(runtime, way, call, raw):
    """The caller gets LeaseLost; no row of the old epoch was written after the loss; the run is not touched."""
    with pytest.raises(LeaseLost) as caught:
        await call
    assert caught.value.kind == "fenced"
    (run,) = await way(runtime.runs, "list")
    assert (run.status, run.epoch) == ("running", 2)
    stored = raw.rows("SELECT checkpoint_id FROM rp_checkpoints WHERE checkpoint_ns = ''")
    found = await way(runtime.checkpointer, "get_tuple", at())
    assert "lost" not in (found.checkpoint["channel_values"].get("log", []) if found else [])
    assert len(stored) <= 2  # the input and the step before the loss


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_a_subgraph_that_interrupts(runtime, way, raw, loses, durability):
    graph = runtime.bind(nested(chain({"loses": loses, "ask": asks("why?")})), name="g")
    call = way(graph, "invoke", {"log": []}, config(), durability=durability)
    with pytest.raises(LeaseLost):
        await call
    (run,) = await way(runtime.runs, "list")
    assert (run.status, run.epoch) == ("running", 2)


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_a_node_that_raises(runtime, way, raw, loses, durability):
    def loses_and_raises(state):
        loses(state)
        msg = "the node's own error"
        raise ValueError(msg)

    graph = runtime.bind(chain({"node": loses_and_raises}), name="g")
    await assert_told_and_settled(runtime, way, way(graph, "invoke", {"log": []}, config(), durability=durability), raw)


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_a_later_node_that_raises(runtime, way, raw, loses, durability):
    graph = runtime.bind(chain({"loses": loses, "raises": fails(ValueError("own"))}), name="g")
    await assert_told_and_settled(runtime, way, way(graph, "invoke", {"log": []}, config(), durability=durability), raw)


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_a_stream_that_is_closed_early(runtime, way, raw, loses, durability):
    graph = runtime.bind(chain({"loses": loses, "then": says("then"), "end": says("end")}), name="g")
    call = way.first(graph, "stream", {"log": []}, config(), durability=durability, stream_mode="updates")
    await assert_told_and_settled(runtime, way, call, raw)


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_a_caller_that_is_cancelled(runtime, raw, loses, durability):
    started = asyncio.Event()

    async def waits(_):
        started.set()
        await asyncio.Event().wait()

    graph = runtime.bind(chain({"loses": loses, "waits": waits}), name="g")
    call = asyncio.ensure_future(graph.ainvoke({"log": []}, config(), durability=durability))
    waiting = asyncio.ensure_future(started.wait())
    await asyncio.wait([call, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    call.cancel()
    await assert_told_and_settled(runtime, ASYNC, call, raw)


@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_an_error_that_bubbles_up_out_of_a_tool(runtime, way, raw, loses, durability):
    """The journal's errors pass through nodes as bubbles, which LangGraph would drop without a word."""

    @operation(name="charge")
    def charge():
        return "charged"

    def node(state):
        loses(state)
        return {"log": [charge()]}

    graph = runtime.bind(chain({"node": node, "after": says("after")}), name="g")
    await assert_told_and_settled(runtime, way, way(graph, "invoke", {"log": []}, config(), durability=durability), raw)


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_a_graph_that_would_end_well(runtime, way, raw, loses, durability):
    graph = runtime.bind(chain({"loses": loses, "then": says("then")}), name="g")
    await assert_told_and_settled(runtime, way, way(graph, "invoke", {"log": []}, config(), durability=durability), raw)


async def test_the_run_stops_at_its_next_step(runtime, way, raw, loses):
    """The first refused write asks the graph to drain: with async durability it would run every node to the end."""
    ran = []

    def noted(name):
        def node(_):
            ran.append(name)
            return {"log": [name]}

        return node

    graph = runtime.bind(chain({"loses": loses, **{f"n{i}": noted(f"n{i}") for i in range(20)}}), name="g")
    with pytest.raises(LeaseLost):
        await way(graph, "invoke", {"log": []}, config(), durability="sync")
    assert ran == []
