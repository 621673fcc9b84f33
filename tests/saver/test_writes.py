"""put_writes: order, first and newest wins, writes before their checkpoint (contract §1)."""

from langgraph.checkpoint.base import WRITES_IDX_MAP

from tests.support.checkpoints import Steps, at, new_checkpoint


async def pending(saver, way, checkpoint_id=None, ns=""):
    return (await way(saver, "get_tuple", at("t", checkpoint_id, ns))).pending_writes


async def test_writes_arrive_before_their_checkpoint(saver, way):
    given = new_checkpoint({"a": 1})
    place = at("t", given["id"])
    await way(saver, "put_writes", place, [("a", 2), ("b", "x" * 20_000)], "task")
    assert await way(saver, "get_tuple", place) is None
    await way(saver, "put", at(), given, {}, {"a": "1"})
    assert await pending(saver, way) == [("task", "a", 2), ("task", "b", "x" * 20_000)]


async def test_of_regular_writes_the_first_wins(saver, way):
    place = await Steps(way, saver).put(a=1)
    await way(saver, "put_writes", place, [("a", "first")], "task")
    await way(saver, "put_writes", place, [("a", "again"), ("b", "new")], "task")
    assert await pending(saver, way) == [("task", "a", "first"), ("task", "b", "new")]


async def test_of_special_writes_the_newest_wins(saver, way):
    place = await Steps(way, saver).put(a=1)
    for channel in WRITES_IDX_MAP:
        for value in ("first", "newest"):
            await way(saver, "put_writes", place, [(channel, value)], "task")
    assert sorted(await pending(saver, way)) == sorted(("task", channel, "newest") for channel in WRITES_IDX_MAP)


async def test_mixed_writes_are_judged_one_by_one(saver, way):
    """The null task sends its accumulated list again; LangGraph mixes both kinds in one call."""
    place = await Steps(way, saver).put(a=1)
    await way(saver, "put_writes", place, [("a", 1), ("__resume__", "r1")], "task")
    await way(saver, "put_writes", place, [("a", 2), ("__resume__", "r2"), ("b", 3)], "task")
    assert sorted(await pending(saver, way)) == [("task", "__resume__", "r2"), ("task", "a", 1), ("task", "b", 3)]


async def test_special_writes_come_first_inside_a_task(saver, way):
    place = await Steps(way, saver).put(a=1)
    await way(saver, "put_writes", place, [("a", 1), ("__error__", "e")], "task")
    assert await pending(saver, way) == [("task", "__error__", "e"), ("task", "a", 1)]


async def test_order_is_by_task_path_then_task_then_position(saver, way):
    place = await Steps(way, saver).put(a=1)
    paths = {
        "a-task": "~__pregel_push, 0000000002",
        "z-task": "~__pregel_push, 0000000001",
        "m-task": "~__pregel_pull, node",
        "null": "",
    }
    for task, path in paths.items():
        await way(saver, "put_writes", place, [("x", 1), ("y", 2)], task, path)
    expected = [
        (task, channel, value)
        for task in ("null", "m-task", "z-task", "a-task")
        for channel, value in (("x", 1), ("y", 2))
    ]
    assert await pending(saver, way) == expected
    assert (await way.all(saver, "list", at()))[0].pending_writes == expected


async def test_the_task_path_can_be_named(saver, way):
    place = await Steps(way, saver).put(a=1)
    await way(saver, "put_writes", place, [("x", 1)], task_id="b", task_path="1")
    await way(saver, "put_writes", place, [("x", 2)], task_id="a", task_path="2")
    assert [write[0] for write in await pending(saver, way)] == ["b", "a"]


async def test_writes_belong_to_their_checkpoint_and_namespace(saver, way):
    steps, inner = Steps(way, saver), Steps(way, saver, ns="sub:1")
    first, second, sub = await steps.put(a=1), await steps.put(a=2), await inner.put(a=3)
    for place, value in ((first, "first"), (second, "second"), (sub, "sub")):
        await way(saver, "put_writes", place, [("x", value)], "task")
    assert await pending(saver, way) == [("task", "x", "second")]
    assert await pending(saver, way, steps.ids[0]) == [("task", "x", "first")]
    assert await pending(saver, way, ns="sub:1") == [("task", "x", "sub")]


async def test_late_writes_of_an_older_checkpoint_are_accepted(saver, way):
    """The next step does not wait for the writes of the one before (contract T18)."""
    steps = Steps(way, saver)
    first = await steps.put(a=1)
    await steps.put(a=2)
    await way(saver, "put_writes", first, [("x", "late")], "task")
    assert await pending(saver, way, steps.ids[0]) == [("task", "x", "late")]


async def test_no_writes_is_no_write(saver, way, raw):
    place = await Steps(way, saver).put(a=1)
    before = raw.dump()
    await way(saver, "put_writes", place, [], "task")
    assert raw.dump() == before


async def test_deleting_a_thread_takes_all_of_it_and_nothing_else(saver, way, raw):
    for thread in ("t", "u"):
        for ns in ("", "sub:1"):
            steps = Steps(way, saver, thread, ns)
            await steps.put(a=1)
            await way(saver, "put_writes", await steps.put(a=2), [("x", 1)], "task")
    await way(saver, "delete_thread", "t")
    for ns in ("", "sub:1"):
        assert await way(saver, "get_tuple", at("t", ns=ns)) is None
        assert (await way(saver, "get_tuple", at("u", ns=ns))).pending_writes == [("task", "x", 1)]
    assert await way.all(saver, "list", at("t")) == []
    for table in ("rp_checkpoints", "rp_writes", "rp_heads"):
        assert raw.value(f"SELECT count(*) FROM {table} WHERE thread_id = 't'") == 0
        assert raw.value(f"SELECT count(*) FROM {table} WHERE thread_id = 'u'") > 0


async def test_a_deleted_thread_begins_anew(saver, way):
    steps = Steps(way, saver)
    await steps.put(a="old")
    await way(saver, "delete_thread", "t")
    again = Steps(way, saver)
    await again.put(b="new")
    found = await way(saver, "get_tuple", at())
    assert found.checkpoint["channel_values"] == {"b": "new"}
    assert found.parent_config is None
    assert len(await way.all(saver, "list", at())) == 1
