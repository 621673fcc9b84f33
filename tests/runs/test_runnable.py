"""A bound graph is a LangChain Runnable: whatever is called on it, each call of the graph is a run of its own."""

import asyncio
import threading
from collections import Counter

import pytest
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.config import get_config
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from runtime_persist.errors import InvalidThreadId, ThreadOwned
from tests.fixtures.raw import DEADLINE_SECONDS
from tests.support.graphs import asks, chain, config, says

HELLO = {"log": []}


class Described(TypedDict):
    log: list[str]


def bound(runtime, **nodes):
    return runtime.bind(chain(nodes or {"node": says("x")}), name="g")


async def statuses(runtime, way):
    return Counter((run.thread_id, run.status) for run in await way(runtime.runs, "list", limit=100))


def failing(state):
    if state["log"][-1] == "bad":
        msg = "no"
        raise ValueError(msg)
    return {"log": ["x"]}


# --- many inputs ------------------------------------------------------------------------------------------------------


async def test_each_input_of_a_batch_is_a_run_of_its_own_and_outputs_come_in_order(runtime, way):
    names = [f"t{n}" for n in range(5)]
    given = [{"log": [name]} for name in names]
    outputs = await way(bound(runtime), "batch", given, [config(name) for name in names])
    assert [output["log"] for output in outputs] == [[name, "x"] for name in names]
    assert await statuses(runtime, way) == {(name, "succeeded"): 1 for name in names}


@pytest.mark.parametrize("limit", [None, 1, 2])
async def test_inputs_of_one_thread_are_taken_in_their_order_beside_other_threads(runtime, way, limit):
    names = ["a", "b", "a", "a", "b", "c"]
    places = [{**config(name), **({"max_concurrency": limit} if limit else {})} for name in names]
    outputs = await way(bound(runtime), "batch", [{"log": [n]} for n in range(6)], places)
    a, b = [0, "x", 2, "x", 3, "x"], [1, "x", 4, "x"]
    assert [output["log"] for output in outputs] == [a[:2], b[:2], a[:4], a, b, [5, "x"]]
    assert await statuses(runtime, way) == {("a", "succeeded"): 3, ("b", "succeeded"): 2, ("c", "succeeded"): 1}


async def test_one_config_for_all_makes_them_turns_of_one_thread(runtime, way):
    outputs = await way(bound(runtime), "batch", [{"log": [n]} for n in range(3)], config())
    assert [output["log"] for output in outputs] == [[0, "x"], [0, "x", 1, "x"], [0, "x", 1, "x", 2, "x"]]


async def test_threads_of_a_batch_go_on_at_the_same_time(runtime, way):
    """Each node waits for the other one."""
    meeting, ameeting = threading.Barrier(2), asyncio.Barrier(2)

    def meets(_):
        meeting.wait(DEADLINE_SECONDS)
        return {"log": ["met"]}

    async def ameets(_):
        await asyncio.wait_for(ameeting.wait(), DEADLINE_SECONDS)
        return {"log": ["met"]}

    graph = bound(runtime, node=ameets if way.asynchronous else meets)
    outputs = await way(graph, "batch", [HELLO] * 2, [config("a"), config("b")])
    assert [output["log"] for output in outputs] == [["met"]] * 2


async def test_a_batch_runs_every_input_and_raises_the_first_error_or_returns_errors_in_place(runtime, way):
    graph = bound(runtime, node=failing)
    given = [{"log": [word]} for word in ("good", "bad", "good")]
    outputs = await way(graph, "batch", given, config("returned"), return_exceptions=True)
    assert [type(output) for output in outputs] == [dict, ValueError, dict]
    with pytest.raises(ValueError, match="no"):
        await way(graph, "batch", given, config("raised"))
    expected = {(name, status): n for name in ("returned", "raised") for status, n in (("succeeded", 2), ("failed", 1))}
    assert await statuses(runtime, way) == expected


async def test_outcomes_come_with_their_positions_as_the_runs_end(runtime, way):
    graph = bound(runtime, node=failing)
    given, places = [{"log": [word]} for word in ("good", "bad", "good")], [config(name) for name in "abc"]
    found = dict(await way.all(graph, "batch_as_completed", given, places, return_exceptions=True))
    assert {position: type(outcome) for position, outcome in found.items()} == {0: dict, 1: ValueError, 2: dict}
    with pytest.raises(ValueError, match="no"):
        await way.all(graph, "batch_as_completed", given, places)


async def test_a_batch_that_cannot_be_run_as_it_was_given_runs_nothing(runtime, way, raw):
    graph, before = bound(runtime), raw.dump()
    assert await way(graph, "batch", []) == []
    assert await way.all(graph, "batch_as_completed", []) == []
    with pytest.raises(ValueError, match="configs"):
        await way(graph, "batch", [HELLO] * 2, [config()])
    with pytest.raises(InvalidThreadId):
        await way(graph, "batch", [HELLO] * 2, [config(), config("")])
    assert raw.dump() == before


async def test_an_input_on_a_thread_that_somebody_else_owns_is_refused_and_the_others_run(runtime, open_runtime, way):
    with open_runtime().lease(thread_id="owned"):
        outputs = await way(
            bound(runtime), "batch", [HELLO] * 2, [config("owned"), config("free")], return_exceptions=True
        )
    assert [type(output) for output in outputs] == [ThreadOwned, dict]


async def test_a_cancelled_batch_leaves_its_runs_cancelled_once_their_loops_ended(runtime):
    started, ended = asyncio.Semaphore(0), []

    async def waits(_):
        started.release()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(get_config()["configurable"]["thread_id"])

    names = ["a", "b", "a"]
    graph = bound(runtime, node=waits)
    call = asyncio.ensure_future(graph.abatch([HELLO] * 3, [config(name) for name in names]))
    for _ in range(2):
        await started.acquire()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert sorted(ended) == ["a", "b"]  # the third one never began
    runs = await runtime.runs.alist()
    assert sorted((run.thread_id, run.status, run.phase) for run in runs) == [
        ("a", "cancelled", "released"),
        ("b", "cancelled", "released"),
    ]


# --- the rest of a Runnable -------------------------------------------------------------------------------------------


async def test_events_of_a_graph_come_from_a_run(runtime):
    graph = bound(runtime, a=says("a"), b=says("b"))
    events = [event async for event in graph.astream_events(HELLO, config(), version="v2")]
    assert [event["name"] for event in events if event["event"] == "on_chain_end"][:1] == ["a"]
    assert events[-1]["data"]["output"]["log"] == ["a", "b"]
    (run,) = await runtime.runs.alist()
    assert run.status == "succeeded"


async def test_events_that_are_closed_early_leave_the_run_cancelled(runtime):
    events = bound(runtime, a=says("a"), b=says("b")).astream_events(HELLO, config(), version="v2")
    await anext(events)
    await events.aclose()
    (run,) = await runtime.runs.alist()
    assert (run.status, run.phase) == ("cancelled", "released")


async def test_a_retried_call_is_a_run_each_time(runtime, way):
    failures = [1]

    def node(_):
        if failures:
            failures.pop()
            msg = "not yet"
            raise ValueError(msg)
        return {"log": ["x"]}

    patient = bound(runtime, node=node).with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
    assert (await way(patient, "invoke", HELLO, config()))["log"] == ["x"]
    assert await statuses(runtime, way) == {("t", "failed"): 1, ("t", "succeeded"): 1}


async def test_it_stands_in_chains(runtime, way):
    graph = bound(runtime)
    assert isinstance(graph, Runnable)
    words = graph | RunnableLambda(lambda state: state["log"])
    assert await way(words, "invoke", HELLO, config()) == ["x"]
    assert await way(words, "batch", [HELLO] * 2, [config("a"), config("b")]) == [["x"]] * 2
    assert await statuses(runtime, way) == {("t", "succeeded"): 1, ("a", "succeeded"): 1, ("b", "succeeded"): 1}


async def test_a_default_config_may_name_the_thread(runtime, way):
    graph = bound(runtime, ask=asks("why?"))
    mine = graph.with_config(config("mine"), tags=["a tag"])
    await way(mine, "invoke", HELLO)
    state = await way(mine, "get_state", config("mine"))
    assert (state.next, mine.config["tags"]) == (("ask",), ["a tag"])
    assert graph.config is None
    with pytest.raises(InvalidThreadId):
        await way(graph, "invoke", HELLO)


def test_it_is_described_as_the_graph_it_was_made_from(runtime):
    graph = StateGraph(Described).add_node("a", lambda _: {"log": ["a"]}).add_edge(START, "a").compile()
    made = runtime.bind(graph, name="g")
    for method in ("get_input_jsonschema", "get_output_jsonschema", "get_context_jsonschema"):
        assert getattr(made, method)() == getattr(graph, method)()
    assert made.input_schema.model_json_schema() == graph.input_schema.model_json_schema()
    assert made.get_graph().to_json() == graph.get_graph().to_json()
    assert (made.name, made.nodes, made.channels) == (graph.name, graph.nodes, graph.channels)
    assert made.graph is graph
    assert list(made.get_subgraphs()) == []
    assert made.checkpointer.owned_run is None
