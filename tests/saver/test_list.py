"""list: order, pages, before, limit, filters; nothing is held between two items (contract §1, user pain H5)."""

import pytest

from runtime_persist.errors import InvalidInput
from runtime_persist.model import limits
from tests.support.checkpoints import Steps, at, new_checkpoint


def ids(found):
    return [one.config["configurable"]["checkpoint_id"] for one in found]


async def five(saver, way, thread_id="t", ns=""):
    steps = Steps(way, saver, thread_id, ns)
    for n in range(5):
        await steps.put(a=n)
    return steps


async def test_newest_come_first_with_values_parents_and_writes(saver, way):
    steps = await five(saver, way)
    await way(saver, "put_writes", at("t", steps.ids[1]), [("x", 1)], "task")
    found = await way.all(saver, "list", at())
    assert ids(found) == steps.ids[::-1]
    assert [one.checkpoint["channel_values"] for one in found] == [{"a": n} for n in (4, 3, 2, 1, 0)]
    assert [one.parent_config for one in found] == [*(at("t", id_) for id_ in steps.ids[3::-1]), None]
    assert [one.pending_writes for one in found] == [[], [], [], [("task", "x", 1)], []]
    assert [one.metadata["step"] for one in found] == [4, 3, 2, 1, 0]


async def test_order_is_global_over_threads_and_namespaces(saver, way):
    steps = [Steps(way, saver, thread, ns) for thread, ns in (("t", ""), ("u", ""), ("t", "sub:1"))]
    put = []
    for n in range(6):
        await steps[n % 3].put(a=n)
        put.append(steps[n % 3].ids[-1])
    of_t = [id_ for n, id_ in enumerate(put) if n % 3 != 1]
    assert ids(await way.all(saver, "list", None)) == put[::-1]
    assert ids(await way.all(saver, "list", {})) == put[::-1]
    assert ids(await way.all(saver, "list", {"configurable": {"thread_id": "t"}})) == of_t[::-1]
    assert ids(await way.all(saver, "list", at("t"))) == steps[0].ids[::-1]
    assert ids(await way.all(saver, "list", at("t", ns="sub:1"))) == steps[2].ids[::-1]


async def test_a_checkpoint_id_lists_that_one(saver, way):
    steps = await five(saver, way)
    await five(saver, way, "u")
    assert ids(await way.all(saver, "list", at("t", steps.ids[2]))) == [steps.ids[2]]
    assert ids(await way.all(saver, "list", at("u", steps.ids[2]))) == []


async def test_before_is_strict_and_by_id_alone(saver, way):
    steps = await five(saver, way)
    for n in range(5):
        assert ids(await way.all(saver, "list", at(), before=at("t", steps.ids[n]))) == steps.ids[:n][::-1]
    elsewhere = at("another thread", steps.ids[2])
    assert ids(await way.all(saver, "list", at(), before=elsewhere)) == steps.ids[:2][::-1]
    assert ids(await way.all(saver, "list", at(), before=at("t", "\U0010fffe"))) == steps.ids[::-1]
    assert ids(await way.all(saver, "list", at(), before=at("t", steps.ids[4]), limit=2)) == steps.ids[2:4][::-1]


@pytest.mark.parametrize(("limit", "count"), [(None, 5), (0, 0), (1, 1), (2, 2), (5, 5), (99, 5)])
async def test_a_limit_gives_at_most_so_many(saver, way, limit, count):
    steps = await five(saver, way)
    assert ids(await way.all(saver, "list", at(), limit=limit)) == steps.ids[::-1][:count]


async def test_a_negative_limit_is_refused(saver, way):
    for limit in (-1, "1", "1; DROP TABLE rp_heads", 1.5):
        with pytest.raises(InvalidInput, match="limit"):
            await way.all(saver, "list", at(), limit=limit)


async def test_pages_join_without_gaps_or_repeats(saver, way, monkeypatch):
    monkeypatch.setattr(limits, "PAGE_ROWS", 2)
    steps = await five(saver, way)
    assert ids(await way.all(saver, "list", at())) == steps.ids[::-1]
    assert ids(await way.all(saver, "list", at(), limit=3)) == steps.ids[:1:-1]
    assert ids(await way.all(saver, "list", at(), filter={"step": 0})) == steps.ids[:1]
    assert ids(await way.all(saver, "list", at(), before=at("t", steps.ids[3]))) == steps.ids[2::-1]


async def test_equal_ids_of_several_threads_are_all_listed(saver, way, monkeypatch):
    """A copy keeps the ids of its source: an id is only unique inside a thread and namespace."""
    monkeypatch.setattr(limits, "PAGE_ROWS", 2)
    given = new_checkpoint({"a": 1})
    for thread in ("t", "u", "v"):
        for ns in ("", "sub:1"):
            await way(saver, "put", at(thread, ns=ns), given, {}, {"a": "1"})
    places = [tuple(one.config["configurable"].values()) for one in await way.all(saver, "list", None)]
    assert sorted(places) == sorted((thread, ns, given["id"]) for thread in "tuv" for ns in ("", "sub:1"))


async def test_an_iterator_may_be_abandoned(saver, way):
    """LangGraph's replay takes one item and drops the iterator."""
    steps = await five(saver, way)
    for _ in range(3):
        assert ids([await way.first(saver, "list", at())]) == steps.ids[-1:]
    await steps.put(a=9)
    assert (await way(saver, "get_tuple", at())).checkpoint["channel_values"] == {"a": 9}


async def test_the_saver_may_be_called_while_a_listing_is_open(saver, way):
    """get_tuple inside a list loop deadlocks in other savers; so would any write."""
    steps = await five(saver, way)
    seen = []

    async def one_inside(found):
        place = found.config
        inner = await way(saver, "get_tuple", place)
        seen.append(inner.checkpoint["channel_values"]["a"])
        await way(saver, "put_writes", place, [("x", len(seen))], "task")
        assert len(await way.all(saver, "list", at())) == 5

    if way.asynchronous:
        async for found in saver.alist(at()):
            await one_inside(found)
    else:
        for found in saver.list(at()):
            await one_inside(found)
    assert seen == [4, 3, 2, 1, 0]
    assert ids(await way.all(saver, "list", at())) == steps.ids[::-1]


METADATA = {
    "s": "x",
    "i": 1,
    "z": 0,
    "f": 1.0,
    "t": True,
    "n": None,
    "l": [1, 2],
    "d": {"b": 1, "c": 2},
    "a.b": "dot",
    "a-b": "hyphen",
    "1a": "digit",
    "nul": "\0abc",
}


MATCHES = [
    ({}, True),
    ({"s": "x"}, True),
    ({"s": "X"}, False),
    ({"i": 1, "s": "x"}, True),
    ({"i": 1, "s": "y"}, False),
    ({"i": "1"}, False),
    ({"i": 1.0}, True),
    ({"i": True}, False),
    ({"z": False}, False),
    ({"f": 1}, True),
    ({"t": True}, True),
    ({"t": 1}, False),
    ({"n": None}, True),
    ({"missing": None}, False),
    ({"missing": "x"}, False),
    ({"l": [1, 2]}, True),
    ({"l": (1, 2)}, True),
    ({"l": [1]}, False),
    ({"l": [2, 1]}, False),
    ({"d": {"c": 2, "b": 1}}, True),
    ({"d": {"b": 1}}, False),
    ({"a.b": "dot"}, True),
    ({"d.b": 1}, False),
    ({"a-b": "hyphen"}, True),
    ({"1a": "digit"}, True),
    ({"nul": "abc"}, True),  # LangGraph takes NUL out of metadata
    ({"s') OR '1'='1": "x"}, False),
    ({"odd key'\"": 1}, False),
]


async def test_filters_are_equality_of_whole_values(saver, way):
    await way(saver, "put", at(), new_checkpoint({"a": 1}), METADATA, {"a": "1"})
    await way(saver, "put", at("u"), new_checkpoint({"a": 1}), {"other": 1}, {"a": "1"})
    for wanted, found in MATCHES:
        assert (wanted, len(await way.all(saver, "list", at(), filter=wanted))) == (wanted, found)
    assert len(await way.all(saver, "list", None, filter={"s": "x"})) == 1
    assert len(await way.all(saver, "list", None, filter={})) == 2
