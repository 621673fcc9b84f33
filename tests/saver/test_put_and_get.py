"""put and get_tuple: what LangGraph's loop relies on (contract §1)."""

import copy

from tests.support.checkpoints import Steps, at, new_checkpoint


async def test_nothing_stored_reads_as_none_and_creates_nothing(saver, way, raw):
    before = raw.dump()
    assert await way(saver, "get_tuple", at("nobody")) is None
    assert await way(saver, "get_tuple", at("nobody", "some-id")) is None
    assert await way.all(saver, "list", at("nobody")) == []
    await way(saver, "delete_thread", "nobody")
    assert [raw.dump()[table] for table in ("rp_checkpoints", "rp_writes", "rp_blobs", "rp_heads")] == [
        before[table] for table in ("rp_checkpoints", "rp_writes", "rp_blobs", "rp_heads")
    ]


async def test_reading_an_unknown_thread_writes_nothing(saver, way, raw):
    before = raw.dump()
    await way(saver, "get_tuple", at("nobody"))
    await way.all(saver, "list", at("nobody"))
    assert raw.dump() == before


async def test_a_checkpoint_comes_back_as_it_was_given(saver, way):
    given = new_checkpoint({"a": [1, {"b": [2, b"\0"]}], "n": None}, v=1, versions_seen={"node": {"a": "1"}})
    given["updated_channels"] = ["a"]
    given["a_key_of_the_future"] = {"x": 1}
    kept = copy.deepcopy(given)
    await way(saver, "put", at(), given, {"source": "input", "step": -1}, given["channel_versions"])
    found = await way(saver, "get_tuple", at())
    assert found.checkpoint == kept
    assert given == kept
    assert found.metadata == {"source": "input", "step": -1}


async def test_configs_are_normal_and_leak_no_foreign_keys(saver, way):
    given = new_checkpoint({"a": 1})
    stored = await way(saver, "put", at(private="x", other=1), given, {}, {"a": "1"})
    assert stored == at("t", given["id"])
    later = new_checkpoint({"a": 2}, {"a": "2"})
    await way(saver, "put", {**stored, "tags": ["x"]}, later, {}, {"a": "2"})
    found = await way(saver, "get_tuple", {"configurable": {"thread_id": "t", "other": object()}})
    assert found.config == at("t", later["id"])
    assert found.parent_config == at("t", given["id"])
    assert [one.config for one in await way.all(saver, "list", at(other=2))] == [found.config, found.parent_config]


async def test_the_parent_is_what_the_config_names(saver, way):
    first, second, fork = (new_checkpoint({"a": n}, {"a": str(n)}) for n in range(3))
    await way(saver, "put", at(), first, {}, {"a": "0"})
    await way(saver, "put", at("t", first["id"]), second, {}, {"a": "1"})
    await way(saver, "put", at("t", first["id"]), fork, {}, {"a": "2"})
    parents = {
        one.config["configurable"]["checkpoint_id"]: one.parent_config for one in await way.all(saver, "list", at())
    }
    assert parents == {first["id"]: None, second["id"]: at("t", first["id"]), fork["id"]: at("t", first["id"])}


async def test_no_checkpoint_id_none_and_empty_all_mean_the_latest(saver, way):
    steps = Steps(way, saver)
    await steps.put(a=1)
    await steps.put(a=2)
    for configurable in ({}, {"checkpoint_id": None}, {"checkpoint_id": ""}):
        found = await way(saver, "get_tuple", {"configurable": {"thread_id": "t", "checkpoint_ns": "", **configurable}})
        assert found.checkpoint["id"] == steps.ids[-1]
    older = await way(saver, "get_tuple", at("t", steps.ids[0]))
    assert older.checkpoint["channel_values"] == {"a": 1}
    assert await way(saver, "get_tuple", at("t", "no-such-id")) is None


async def test_no_namespace_is_the_root_in_every_method(saver, way):
    root = {"configurable": {"thread_id": "t"}}
    given = new_checkpoint({"a": 1})
    stored = await way(saver, "put", root, given, {}, {"a": "1"})
    await way(
        saver, "put_writes", {"configurable": {"thread_id": "t", "checkpoint_id": given["id"]}}, [("a", 2)], "task"
    )
    found = await way(saver, "get_tuple", root)
    assert found.config == stored == at("t", given["id"])
    assert found.pending_writes == [("task", "a", 2)]


async def test_namespaces_and_threads_do_not_see_each_other(saver, way):
    for thread, ns in (("t", ""), ("t", "sub:1"), ("t", "sub:1|deep:2"), ("u", "")):
        steps = Steps(way, saver, thread, ns)
        await steps.put(a=f"{thread}/{ns}")
    for thread, ns in (("t", ""), ("t", "sub:1"), ("t", "sub:1|deep:2"), ("u", "")):
        found = await way(saver, "get_tuple", at(thread, ns=ns))
        assert found.checkpoint["channel_values"] == {"a": f"{thread}/{ns}"}
        assert found.config["configurable"]["checkpoint_ns"] == ns


async def test_channels_that_did_not_change_are_carried_over(saver, way, raw):
    steps = Steps(way, saver)
    await steps.put(big="x" * 10_000, small=1)
    for n in range(3):
        await steps.put(other=n)
    found = await way(saver, "get_tuple", at())
    assert found.checkpoint["channel_values"] == {"big": "x" * 10_000, "small": 1, "other": 2}
    assert raw.value("SELECT count(*) FROM rp_blobs") == 1


async def test_a_carried_channel_keeps_its_stored_value_whatever_the_put_brings(saver, way):
    """LangGraph hands the full state over; what did not get a new version is not written again."""
    first = new_checkpoint({"a": "stored"})
    stored = await way(saver, "put", at(), first, {}, {"a": "1"})
    second = new_checkpoint({"a": "changed in place", "b": 1}, {"a": "1", "b": "1"})
    await way(saver, "put", stored, second, {}, {"b": "1"})
    found = await way(saver, "get_tuple", at())
    assert found.checkpoint["channel_values"] == {"a": "stored", "b": 1}


async def test_another_saver_object_carries_channels_over_too(open_saver, engine_url, way, raw_of):
    """A cold process knows no manifest: it reads the parent's before it stores the next step."""
    if engine_url.endswith(":memory:"):
        engine_url = ""  # a private database: the second object shares the first one's
    first = open_saver()
    steps = Steps(way, first)
    await steps.put(big="y" * 10_000, gone=1, kept=None)
    second = open_saver() if engine_url else first
    second._core._manifests.clear()
    steps.saver = second
    await steps.put("gone", other=2)
    second._core._manifests.clear()
    await steps.put(other=3)
    found = await way(first, "get_tuple", at())
    assert found.checkpoint["channel_values"] == {"big": "y" * 10_000, "kept": None, "other": 3}
    assert raw_of(first).value("SELECT count(*) FROM rp_blobs") == 1


async def test_a_put_without_new_versions_keeps_all_values(open_saver, way):
    """``update_state(as_node="__copy__")`` puts the whole state and says that no version is new."""
    saver = open_saver()
    steps = Steps(way, saver)
    await steps.put(a="x" * 1_000, b=1)
    for cold in (False, True):
        if cold:
            saver._core._manifests.clear()
        copied = new_checkpoint(dict(steps.values), dict(steps.versions))
        await way(saver, "put", steps.config, copied, {"source": "fork"}, {})
        found = await way(saver, "get_tuple", at("t", copied["id"]))
        assert found.checkpoint["channel_values"] == {"a": "x" * 1_000, "b": 1}


async def test_a_put_without_a_parent_stores_every_value_it_brings(saver, way):
    """A copy into another thread: nothing is new, nothing is stored yet."""
    given = new_checkpoint({"a": 1, "b": "x" * 1_000})
    await way(saver, "put", at("copy"), given, {}, {})
    found = await way(saver, "get_tuple", at("copy"))
    assert found.checkpoint["channel_values"] == {"a": 1, "b": "x" * 1_000}


async def test_a_new_version_without_a_value_is_a_tombstone(saver, way):
    steps = Steps(way, saver)
    await steps.put(a=1, b=2)
    await steps.put("a", c=3)
    await steps.put(c=4)
    found = await way(saver, "get_tuple", at())
    assert found.checkpoint["channel_values"] == {"b": 2, "c": 4}
    assert found.checkpoint["channel_versions"] == {"a": "2", "b": "1", "c": "2"}
    old = await way(saver, "get_tuple", at("t", steps.ids[0]))
    assert old.checkpoint["channel_values"] == {"a": 1, "b": 2}
    await steps.put(a=5)
    assert (await way(saver, "get_tuple", at())).checkpoint["channel_values"] == {"a": 5, "b": 2, "c": 4}


async def test_a_version_is_compared_as_it_is_stored(saver, way):
    """Integer versions (other tools write them) carry over like texts."""
    first = new_checkpoint({"a": "x"}, {"a": 1})
    stored = await way(saver, "put", at(), first, {}, {"a": 1})
    second = new_checkpoint({"a": "x", "b": 2.5}, {"a": 1, "b": 2})
    await way(saver, "put", stored, second, {}, {"b": 2})
    found = await way(saver, "get_tuple", at())
    assert found.checkpoint["channel_versions"] == {"a": 1, "b": 2}
    assert found.checkpoint["channel_values"] == {"a": "x", "b": 2.5}


async def test_every_read_gives_fresh_objects(saver, way):
    steps = Steps(way, saver)
    await steps.put(a=[1], b={"k": []})
    await way(saver, "put_writes", steps.config, [("a", [2])], "task")
    first = await way(saver, "get_tuple", at())
    first.checkpoint["channel_values"]["a"].append(9)
    first.checkpoint["channel_values"]["b"]["k"].append(9)
    first.checkpoint["channel_versions"]["a"] = "9"
    first.metadata["step"] = 9
    first.pending_writes[0][2].append(9)
    for found in (await way(saver, "get_tuple", at()), (await way.all(saver, "list", at()))[0]):
        assert found.checkpoint["channel_values"] == {"a": [1], "b": {"k": []}}
        assert found.checkpoint["channel_versions"] == {"a": "1", "b": "1"}
        assert found.metadata["step"] == 0
        assert found.pending_writes == [("task", "a", [2])]


async def test_what_was_put_is_stored_as_it_was_then(saver, way):
    """The running graph goes on changing the objects it handed over."""
    values = {"a": [1]}
    given = new_checkpoint(values)
    config = await way(saver, "put", at(), given, {}, {"a": "1"})
    values["a"].append(2)
    write = [3]
    await way(saver, "put_writes", config, [("a", write)], "task")
    write.append(4)
    found = await way(saver, "get_tuple", at())
    assert found.checkpoint["channel_values"] == {"a": [1]}
    assert found.pending_writes == [("task", "a", [3])]


async def test_odd_values_come_back_equal_on_every_database(saver, way):
    odd = {
        "nul": "a\0b",
        "emoji": "😀",
        "negative zero": -0.0,
        "inf": float("inf"),
        "none": None,
        "bytes": bytes(range(256)),
        "nested": {"deep": [["x", 1], {"y": {2, 3}}]},
        "big": "z" * 100_000,
        "empty": "",
    }
    given = new_checkpoint(odd)
    await way(saver, "put", at(), given, {"note": "a\0b", "deep": {"n": "a\0b"}}, given["channel_versions"])
    found = await way(saver, "get_tuple", at())
    assert found.checkpoint["channel_values"] == odd
    assert str(found.checkpoint["channel_values"]["negative zero"]) == "-0.0"
    assert found.metadata["deep"] == {"n": "a\0b"}


async def test_equal_content_is_stored_once_whatever_the_thread(saver, way, raw):
    for thread in ("t", "u"):
        steps = Steps(way, saver, thread)
        await steps.put(a="same" * 1_000)
        await way(saver, "put_writes", steps.config, [("a", "same" * 10_000)], "task")
    assert raw.value("SELECT count(*) FROM rp_blobs") == 2
