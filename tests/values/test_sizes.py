"""Large values: the cap is asked before anything is written; storing takes at most four times the size (E3, L1)."""

import operator
import tracemalloc
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import ToolMessage
from langgraph.graph import START, StateGraph

from runtime_persist import operation
from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from runtime_persist.errors import OperationUnsupported, ValueTooLarge
from tests.values.graphs import at, keeps

MB = 1_000_000


class Grows(TypedDict):
    log: Annotated[list[str], operator.add]


def doubling(**options: Any) -> Any:
    """A node that returns its reducer channel whole, so that it doubles each time."""
    builder = StateGraph(Grows)
    builder.add_node("again", lambda state: {"log": state["log"]})
    builder.add_edge(START, "again")
    builder.add_conditional_edges("again", lambda _: "again")
    return builder.compile(**options)


@pytest.mark.parametrize("level", ["L0", "L1"])
def test_a_channel_that_doubles_is_told_by_name_size_and_cap_and_the_last_good_state_is_kept(
    open_runtime, raw_of, level
):
    runtime = open_runtime(max_value_bytes=64_000)
    graph = doubling(checkpointer=runtime.checkpointer)
    target = runtime.bind(graph, name="doubling") if level == "L1" else graph
    with pytest.raises(ValueTooLarge) as caught:
        # durability="sync": otherwise the graph does not wait for its writes and may double far beyond the refused one.
        target.invoke({"log": ["x" * 1_000]}, {**at("t"), "recursion_limit": 14}, durability="sync")
    assert caught.value.details["channel"] == "log"
    assert caught.value.details["size"] > caught.value.details["max_bytes"] == 64_000
    for said in ("log", "64,000", f"{caught.value.details['size']:,}"):
        assert said in str(caught.value)
    assert len(runtime.checkpointer.get_tuple(at("t")).checkpoint["channel_values"]["log"]) == 32
    assert len(list(graph.get_state_history(at("t")))) == 7


def test_a_value_of_the_cap_is_stored_and_one_byte_more_is_not(open_runtime, raw_of):
    runtime = open_runtime(max_value_bytes=MB)
    graph = keeps(lambda: bytes(MB), checkpointer=runtime.checkpointer)
    assert graph.invoke({}, at("t"))["value"] == bytes(MB)
    raw = raw_of(runtime)
    before = raw.dump()
    with pytest.raises(ValueTooLarge) as caught:
        graph.update_state(at("t"), {"value": bytes(MB + 1)}, as_node="second")
    assert caught.value.details["size"] == MB + 1
    assert raw.dump() == before


def test_twenty_megabytes_pass(runtime):
    value = {"pdf": bytes(range(256)) * 80_000}
    graph = keeps(lambda: value, checkpointer=runtime.checkpointer)
    graph.invoke({}, at("t"))
    assert graph.get_state(at("t")).values["value"] == value


def test_five_megabytes_of_metadata_pass_and_are_capped_too(open_runtime):
    note = {"note": "x" * (5 * MB)}
    runtime = open_runtime()
    keeps(lambda: 1, checkpointer=runtime.checkpointer).invoke({}, {**at("t"), "metadata": note})
    assert runtime.checkpointer.get_tuple(at("t")).metadata["note"] == note["note"]
    capped = open_runtime(max_value_bytes=MB)
    with pytest.raises(ValueTooLarge, match="metadata"):
        keeps(lambda: 1, checkpointer=capped.checkpointer).invoke({}, {**at("u"), "metadata": note})


def test_results_of_operations_and_inputs_of_runs_are_capped(open_runtime):
    runtime = open_runtime(max_value_bytes=100_000)

    @operation(name="gives")
    def gives():
        return "x" * MB

    bound = runtime.bind(keeps(gives), name="keeps")
    with pytest.raises(OperationUnsupported, match="max_value_bytes"):
        bound.invoke({}, at("t"))
    with pytest.raises(ValueTooLarge):
        bound.invoke({"value": "x" * MB}, at("u"))
    with pytest.raises(ValueTooLarge):
        runtime.runs.start("keeps", {"value": "x" * MB}, thread_id="v")


@pytest.mark.parametrize("kind", ["bytes", "in a dict", "in a message"])
def test_storing_takes_at_most_four_times_the_value_in_memory(shared_url, kind):
    size = 40 * MB
    content = bytes(range(256)) * (size // 256)
    value: Any = {
        "bytes": lambda: content,
        "in a dict": lambda: {"pdf": content},
        "in a message": lambda: [ToolMessage("x", tool_call_id="1", artifact={"pdf": content})],
    }[kind]()
    with WorkflowCheckpointAdapter.from_conn_string(shared_url) as saver:
        graph = keeps(lambda: 1, checkpointer=saver)
        graph.invoke({}, at("t"))
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            graph.update_state(at("t"), {"value": value}, as_node="second")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak - before <= 4 * size
