"""Thread ids: one documented form, the same on every database; anything else is refused before a write (pain H1)."""

import uuid

import pytest

from runtime_persist.errors import InvalidThreadId
from tests.support.checkpoints import Steps, at, new_checkpoint
from tests.support.graphs import chain, config, says

BAD = {
    "empty": "",
    "None": None,
    "bytes": b"x",
    "uuid": uuid.UUID(int=1),
    "float": 1.0,
    "bool": True,
    "list": ["t"],
    "NUL": "a\0b",
    "surrogate": "a\ud800b",
    "too long": "x" * 1_025,
    "too long in bytes": "ä" * 513,
}
GOOD = {
    "longest": "x" * 1_024,
    "longest in bytes": "ä" * 512,
    "spaces": " t ",
    "quotes": 'it\'s "t"; --',
    "emoji": "😀",
    "percent": "%s ?1 $1 :x",
    "newline": "a\nb",
}


@pytest.mark.parametrize("thread_id", GOOD.values(), ids=GOOD)
async def test_any_other_text_is_a_thread_of_its_own(saver, way, thread_id):
    await Steps(way, saver, thread_id).put(a=1)
    await Steps(way, saver, thread_id.swapcase() + "2").put(a=2) if len(thread_id) < 100 else None
    found = await way(saver, "get_tuple", at(thread_id))
    assert found.config["configurable"]["thread_id"] == thread_id
    assert found.checkpoint["channel_values"] == {"a": 1}


async def test_an_int_is_its_decimal_text(saver, way):
    steps = Steps(way, saver, 1)
    await steps.put(a=1)
    await way(saver, "put_writes", at("1", steps.ids[0]), [("x", 1)], "task")
    for thread_id in (1, "1"):
        found = await way(saver, "get_tuple", at(thread_id))
        assert found.config == at("1", steps.ids[0])
        assert found.pending_writes == [("task", "x", 1)]
        assert len(await way.all(saver, "list", at(thread_id))) == 1
    await way(saver, "delete_thread", 1)
    assert await way(saver, "get_tuple", at("1")) is None


@pytest.mark.parametrize("thread_id", BAD.values(), ids=BAD)
async def test_others_are_refused_by_every_method_and_nothing_is_written(saver, way, raw, thread_id):
    before = raw.dump()
    given = new_checkpoint({"a": 1})
    calls = [
        ("put", at(thread_id), given, {}, {"a": "1"}),
        ("put_writes", at(thread_id, given["id"]), [("a", 1)], "task"),
        ("get_tuple", at(thread_id)),
        ("delete_thread", thread_id),
    ]
    for method, *args in calls:
        with pytest.raises(InvalidThreadId) as caught:
            await way(saver, method, *args)
        assert caught.value.kind == "invalid"
    with pytest.raises(InvalidThreadId):
        await way.all(saver, "list", at(thread_id))
    assert raw.dump() == before


async def test_a_config_without_a_thread_id_is_refused(saver, way, raw):
    before = raw.dump()
    for given in ({}, {"configurable": {}}, {"configurable": {"checkpoint_ns": ""}}):
        with pytest.raises(InvalidThreadId, match="thread_id"):
            await way(saver, "get_tuple", given)
        with pytest.raises(InvalidThreadId, match="thread_id"):
            await way(saver, "put", given, new_checkpoint({"a": 1}), {}, {})
    assert raw.dump() == before


@pytest.mark.parametrize("thread_id", ["", "a\0b", "x" * 1_025], ids=["empty", "NUL", "too long"])
async def test_a_graph_hears_of_it_before_any_node_runs(saver, way, raw, thread_id):
    ran = []
    graph = chain({"node": lambda _: ran.append(1)}, checkpointer=saver)
    before = raw.dump()
    with pytest.raises(InvalidThreadId):
        await way(graph, "invoke", {"log": []}, config(thread_id))
    assert ran == []
    assert raw.dump() == before


async def test_a_graph_may_be_given_an_int(saver, way):
    graph = chain({"node": says("x")}, checkpointer=saver)
    await way(graph, "invoke", {"log": []}, config(7))
    await way(graph, "invoke", {"log": []}, config("7"))
    for thread_id in (7, "7"):
        assert (await way(graph, "get_state", config(thread_id))).values["log"] == ["x", "x"]
