"""Whole graphs over the saver leave the same history as LangGraph's InMemorySaver."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError

from tests.support.graphs import asks, chain, config, fails, fanned, nested, resume, says


def shown(states):
    """A history without what differs by nature: ids and times, replaced by positions."""
    places = {state.config["configurable"]["checkpoint_id"]: n for n, state in enumerate(states)}
    return [
        (
            state.values,
            state.next,
            {key: value for key, value in state.metadata.items() if key not in {"run_id", "parents"}},
            None if state.parent_config is None else places.get(state.parent_config["configurable"]["checkpoint_id"]),
            [
                (task.name, task.path, repr(task.error), [i.value for i in task.interrupts], task.result)
                for task in state.tasks
            ],
        )
        for state in states
    ]


class Story:
    """Steps that are told to a graph, and what came of each."""

    def __init__(self, way, graph, durability) -> None:
        self.way, self.graph, self.durability = way, graph, durability
        self.told = []

    async def invoke(self, given, place=None):
        try:
            # One task at a time: which siblings of a failed task still finish is a race in LangGraph.
            place = {**(place or config()), "max_concurrency": 1}
            output = await self.way(self.graph, "invoke", given, place, durability=self.durability)
        except (ValueError, GraphRecursionError) as error:
            output = repr(error)
        self.told.append(repr(output).split("Interrupt(")[0])

    async def history(self):
        return await self.way.all(self.graph, "get_state_history", config())

    async def at_node(self, node):
        return next(state.config for state in await self.history() if state.next == (node,))


async def two_turns(story):
    await story.invoke({"log": ["hello"]})
    await story.invoke({"log": ["again"]})


async def interrupted(story):
    await story.invoke({"log": []})
    await story.invoke(resume("because"))
    await story.invoke({"log": ["next turn"]})
    await story.invoke({"log": ["dropped the question"]})


async def failed(story):
    await story.invoke({"log": []})
    story.flag.clear()
    await story.invoke(None)


async def forked(story):
    await story.invoke({"log": []})
    place = await story.at_node("b")
    await story.invoke(None, place)
    edited = await story.way(story.graph, "update_state", place, {"log": ["edited"]})
    await story.invoke(None, edited)


async def fanned_out(story):
    await story.invoke({"log": [], "items": [3, 2, 1]})


async def fanned_then_failed(story):
    await story.invoke({"log": [], "items": [3, 2, 1]})
    story.flag.clear()
    await story.invoke(None)


def unlucky(flag):
    def work(given):
        if flag and given["item"] == 1:
            msg = "one"
            raise ValueError(msg)
        return {"log": [given["item"]]}

    return work


def failing_once(flag):
    def node(state):
        if flag:
            msg = "not yet"
            raise ValueError(msg)
        return {"log": ["worked"]}

    return node


STORIES = {
    "two turns": (two_turns, lambda flag, **o: chain({"a": says("a"), "b": says("b")}, **o)),
    "interrupt and resume": (
        interrupted,
        lambda flag, **o: chain({"a": says("a"), "ask": asks("why?"), "b": says("b")}, **o),
    ),
    "error then resume": (
        failed,
        lambda flag, **o: chain({"a": says("a"), "b": failing_once(flag), "c": says("c")}, **o),
    ),
    "fork and edit": (forked, lambda flag, **o: chain({"a": says("a"), "b": says("b")}, **o)),
    "parallel sends": (fanned_out, lambda flag, **o: fanned(lambda given: {"log": [given["item"]]}, **o)),
    "a send that fails": (fanned_then_failed, lambda flag, **o: fanned(unlucky(flag), **o)),
    "stateless subgraph": (interrupted, lambda flag, **o: nested(chain({"x": says("x"), "ask": asks("q")}), **o)),
    "stateful subgraph": (
        interrupted,
        lambda flag, **o: nested(chain({"x": says("x"), "ask": asks("q")}, checkpointer=True), **o),
    ),
    "an error that stays": (two_turns, lambda flag, **o: chain({"a": says("a"), "b": fails(ValueError("no"))}, **o)),
}


async def told(way, tell, make, saver, durability):
    flag = [1]
    story = Story(way, make(flag, checkpointer=saver), durability)
    story.flag = flag
    await tell(story)
    return story.told, shown(await story.history())


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize(("tell", "make"), STORIES.values(), ids=STORIES)
async def test_history_is_that_of_the_memory_saver(saver, way, tell, make, durability):
    if durability == "exit" and tell is forked:
        durability = None  # nothing to fork from in between
    ours = await told(way, tell, make, saver, durability)
    theirs = await told(way, tell, make, InMemorySaver(), durability)
    assert ours == theirs


async def test_streams_and_state_are_the_same(saver, way):
    graphs = [chain({"a": says("a"), "b": says("b")}, checkpointer=s) for s in (saver, InMemorySaver())]
    ours, theirs = [
        await way.all(graph, "stream", {"log": []}, config(), stream_mode=["updates", "values", "tasks"])
        for graph in graphs
    ]
    assert [mode for mode, _ in ours] == [mode for mode, _ in theirs]
    assert [chunk for mode, chunk in ours if mode != "tasks"] == [chunk for mode, chunk in theirs if mode != "tasks"]
