"""Channels that store only what each step wrote, and channels that became such: the state is the same at every step."""

import operator
from typing import Annotated, TypedDict

from langgraph.channels.delta import DeltaChannel
from langgraph.graph import START, StateGraph

from tests.support.graphs import config


def joined(state, given):
    return [*state, *(word for words in given for word in words)]


class Plain(TypedDict):
    log: Annotated[list[str], operator.add]


class Delta(TypedDict):
    log: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=3)]


def graph(schema, saver):
    builder = StateGraph(schema)
    builder.add_node("answers", lambda state: {"log": [f"answer {len(state['log'])}"]})
    builder.add_edge(START, "answers")
    return builder.compile(checkpointer=saver)


async def states(made, way):
    """The log at every checkpoint, newest first; each also loaded by its id."""
    found = []
    for one in await way.all(made, "get_state_history", config()):
        alone = await way(made, "get_state", one.config)
        assert alone.values.get("log") == one.values.get("log")
        found.append(list(one.values.get("log", [])))
    return found


async def talk(made, way, *words):
    for word in words:
        await way(made, "invoke", {"log": [word]}, config())


async def test_every_state_is_what_a_plain_channel_has(open_saver, way):
    saver, other = open_saver(space="delta"), open_saver(space="plain")
    delta, plain = graph(Delta, saver), graph(Plain, other)
    for made in (delta, plain):
        await talk(made, way, "a", "b", "c", "d")
    found = await states(delta, way)
    assert found == await states(plain, way)
    assert found[0] == ["a", "answer 1", "b", "answer 3", "c", "answer 5", "d", "answer 7"]


async def test_a_thread_whose_channel_became_one_goes_on_from_its_value(saver, way):
    plain, delta = graph(Plain, saver), graph(Delta, saver)
    await talk(plain, way, "a", "b")
    before = await states(plain, way)
    assert await states(delta, way) == before
    await talk(delta, way, "c", "d")
    found = await states(delta, way)
    assert found[-len(before) :] == before
    assert found[0] == ["a", "answer 1", "b", "answer 3", "c", "answer 5", "d", "answer 7"]
