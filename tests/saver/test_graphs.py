"""A graph streams the same over this saver as over LangGraph's InMemorySaver (histories: tests/equality)."""

from langgraph.checkpoint.memory import InMemorySaver

from tests.support.graphs import chain, config, says


async def test_streams_and_state_are_the_same(saver, way):
    graphs = [chain({"a": says("a"), "b": says("b")}, checkpointer=s) for s in (saver, InMemorySaver())]
    ours, theirs = [
        await way.all(graph, "stream", {"log": []}, config(), stream_mode=["updates", "values", "tasks"])
        for graph in graphs
    ]
    assert [mode for mode, _ in ours] == [mode for mode, _ in theirs]
    assert [chunk for mode, chunk in ours if mode != "tasks"] == [chunk for mode, chunk in theirs if mode != "tasks"]
