"""Rows B1 and B3: what is left after a kill inside a put, and after a cancelled call."""

import asyncio

import pytest
from langgraph.graph import START, StateGraph

from tests.support.graphs import State, config
from tests.support.leases import run_out
from tests.user_pains.programs_ownership import dies_in_a_write, letters


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("method", ["put", "put_writes"])
def test_b1_no_effect_is_repeated_after_a_kill_in_a_write(runtime, fork, raw, shared_url, tmp_path, method, when):
    """B1: durability sync, task writes 300 ms late, SIGKILL around the put of step 1 and around those writes."""
    path = tmp_path / "letters"
    assert fork(dies_in_a_write, shared_url, str(path), method, when).ended() == -9
    assert path.read_text() in ({"a"} if method == "put" else {"a", "ab"})  # late task writes do not hold b up
    run_out(raw)
    graph = runtime.bind(letters(str(path)), name="g")
    assert graph.invoke(None, config(), durability="sync") == {"log": ["a", "b"], "n": 2}
    assert graph.get_state(config()).values["n"] == 2
    assert path.read_text() == "ab"


def two(slow):
    """A graph of two nodes side by side."""
    builder = StateGraph(State)

    async def fast(_):
        RAN.append("fast")
        return {"log": ["fast"]}

    builder.add_node("fast", fast)
    builder.add_node("slow", slow)
    builder.add_edge(START, "fast")
    builder.add_edge(START, "slow")
    return builder.compile()


RAN = []


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_b3_a_cancelled_parallel_step_shows_what_was_cancelled_and_keeps_the_rest(runtime, durability):
    """B3: the fast result is kept, the slow task is shown as cancelled, and only it runs again."""
    RAN.clear()
    began = asyncio.Event()

    async def waits(_):
        began.set()
        await asyncio.Event().wait()

    async def works(_):
        RAN.append("slow")
        return {"log": ["slow"]}

    chunks, first = [], asyncio.Event()

    async def call():
        streamed = runtime.bind(two(waits), name="g").astream(
            {"log": ["in"]}, config(), durability=durability, stream_mode="updates"
        )
        async for chunk in streamed:
            chunks.append(chunk)
            first.set()

    task = asyncio.ensure_future(call())
    await began.wait()
    await first.wait()  # the fast one has ended, and LangGraph knows it
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert chunks == [{"fast": {"log": ["fast"]}}]
    graph = runtime.bind(two(works), name="g")
    state = await graph.aget_state(config())
    assert {one.name: (one.result, one.error) for one in state.tasks} == {
        "fast": ({"log": ["fast"]}, None),
        "slow": (None, "CancelledError()"),
    }
    assert state.next == ("slow",)
    (run,) = await runtime.runs.alist()
    assert (run.status, run.phase) == ("cancelled", "released")
    output = await graph.ainvoke(None, config(), durability=durability)
    assert (output["log"], RAN) == (["in", "fast", "slow"], ["fast", "slow"])
