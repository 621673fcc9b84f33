"""Checks of one saver: deleting by run, copying, pruning."""

import pytest
from langgraph.checkpoint.base.id import uuid6

from tests.support.checkpoints import at, new_checkpoint

NAMESPACES = ("", "sub:1", "own")


async def everything(saver, way, thread_id):
    """All that can be read of a thread, but its thread id."""
    found = []
    for one in await way.all(saver, "list", {"configurable": {"thread_id": thread_id}}):
        parent = one.parent_config and one.parent_config["configurable"]["checkpoint_id"]
        place = one.config["configurable"]
        found.append((place["checkpoint_ns"], one.checkpoint, one.metadata, parent, one.pending_writes))
    return found


async def grown(saver, way, thread_id="t", ns="", metadata=None, count=3):
    """A thread of some steps: one channel changes, one is carried, each step has a write, and each a run."""
    place, versions = at(thread_id, ns=ns), {}
    for n in range(count):
        versions = {"changes": str(n + 1), "carried": "1"}
        made = new_checkpoint({"changes": ["x" * 3_000, n], "carried": "y" * 3_000}, versions, v=4)
        new = versions if n == 0 else {"changes": versions["changes"]}
        about = {"source": "loop", "step": n, "run_id": f"run-{n}", "parents": {}, **(metadata or {})}
        place = await way(saver, "put", place, made, about, new)
        await way(saver, "put_writes", place, [("w", f"{ns}{n}")], f"task-{n}", f"path {n}")
    return place


def ids(found):
    return [one.config["configurable"]["checkpoint_id"] for one in found]


# --- deleting by run ----------------------------------------------------------------------------------------------


async def deleting_by_run_takes_its_checkpoints_everywhere_and_nothing_else(saver, way):
    for thread in ("t", "u"):
        for ns in NAMESPACES[:2]:
            await grown(saver, way, thread, ns)
    for nothing in ([], ["no such run"]):
        before = [await everything(saver, way, thread) for thread in ("t", "u")]
        await way(saver, "delete_for_runs", nothing)
        assert [await everything(saver, way, thread) for thread in ("t", "u")] == before
    await way(saver, "delete_for_runs", ["run-0", "run-2"])
    for thread in ("t", "u"):
        left = await everything(saver, way, thread)
        assert sorted((ns, about["run_id"], writes) for ns, _, about, _, writes in left) == [
            ("", "run-1", [("task-1", "w", "1")]),
            ("sub:1", "run-1", [("task-1", "w", "sub:11")]),
        ]


# --- copying ------------------------------------------------------------------------------------------------------


async def a_copy_has_all_of_its_source(saver, way):
    for ns in NAMESPACES:
        await grown(saver, way, "t", ns)
    before = await everything(saver, way, "t")
    assert len(before) == 9
    await way(saver, "copy_thread", "t", "copy")
    assert await everything(saver, way, "copy") == before
    assert await everything(saver, way, "t") == before
    for one in await way.all(saver, "list", {"configurable": {"thread_id": "copy"}}):
        assert one.config["configurable"]["thread_id"] == "copy"


async def a_copy_lives_on_its_own(saver, way):
    """Neither what is put, written, pruned or deleted on one side changes the other one."""
    last = await grown(saver, way, "t")
    await way(saver, "copy_thread", "t", "copy")
    copied = await everything(saver, way, "copy")
    await way(saver, "put_writes", last, [("w", "late")], "later")
    await way(saver, "put", last, new_checkpoint({"changes": "other"}, {"changes": "9"}), {}, {"changes": "9"})
    assert await everything(saver, way, "copy") == copied
    await way(saver, "prune", ["t"])
    assert await everything(saver, way, "copy") == copied
    source = await everything(saver, way, "t")
    there = at("copy", last["configurable"]["checkpoint_id"])
    await way(saver, "put", there, new_checkpoint({"changes": "own"}, {"changes": "8"}), {}, {"changes": "8"})
    assert await everything(saver, way, "t") == source
    copied = await everything(saver, way, "copy")
    await way(saver, "delete_thread", "t")
    assert await everything(saver, way, "copy") == copied


# --- pruning ------------------------------------------------------------------------------------------------------


async def pruning_keeps_the_newest_of_each_namespace_whole(saver, way):
    heads = {ns: await grown(saver, way, "t", ns) for ns in NAMESPACES}
    await grown(saver, way, "u")
    other = await everything(saver, way, "u")
    before = {ns: await way(saver, "get_tuple", place) for ns, place in heads.items()}
    await way(saver, "prune", ["t", "unknown"])
    left = await way.all(saver, "list", {"configurable": {"thread_id": "t"}})
    assert sorted(ids(left)) == sorted(place["configurable"]["checkpoint_id"] for place in heads.values())
    for ns, place in heads.items():
        kept = before[ns]._replace(parent_config=None)
        assert await way(saver, "get_tuple", place) == kept
        assert await way(saver, "get_tuple", at("t", ns=ns)) == kept
    assert await everything(saver, way, "u") == other


async def a_pruned_thread_goes_on(saver, way):
    place = await grown(saver, way)
    await way(saver, "prune", ["t"])
    made = new_checkpoint({"changes": "new", "carried": "y" * 3_000}, {"changes": "4", "carried": "1"})
    await way(saver, "put", place, made, {"step": 3}, {"changes": "4"})
    found = await way(saver, "get_tuple", at())
    assert found.parent_config == place
    assert found.checkpoint["channel_values"] == {"changes": "new", "carried": "y" * 3_000}


async def pruning_with_delete_leaves_nothing(saver, way):
    for thread in ("t", "u"):
        for ns in NAMESPACES:
            await grown(saver, way, thread, ns)
    other = await everything(saver, way, "u")
    await way(saver, "prune", ["t"], strategy="delete")
    assert await everything(saver, way, "t") == []
    assert [await way(saver, "get_tuple", at("t", ns=ns)) for ns in NAMESPACES] == [None] * 3
    assert await everything(saver, way, "u") == other


async def a_text_instead_of_a_list_of_threads_is_refused(saver, way):
    for thread in ("ab", "a", "b"):
        await grown(saver, way, thread)
    before = [await everything(saver, way, thread) for thread in ("ab", "a", "b")]
    for strategy in ("keep_latest", "delete"):
        with pytest.raises(TypeError, match="not a str"):
            await way(saver, "prune", "ab", strategy=strategy)
    assert [await everything(saver, way, thread) for thread in ("ab", "a", "b")] == before


async def an_unknown_strategy_is_refused_before_anything_changes(saver, way):
    await grown(saver, way)
    before = await everything(saver, way, "t")
    with pytest.raises(ValueError, match="keep_all"):
        await way(saver, "prune", ["t"], strategy="keep_all")
    assert await everything(saver, way, "t") == before


async def pruning_takes_a_subgraph_call_with_the_root_it_started_from(saver, way):
    """Calls of roots that stay, or are not stored yet, go on; a subgraph with a memory of its own keeps its latest."""
    first = await way(saver, "put", at(), new_checkpoint({"a": 1}), {"step": 0}, {"a": "1"})
    last = await way(saver, "put", first, new_checkpoint({"a": 2}, {"a": "2"}), {"step": 1}, {"a": "2"})
    old, new = (place["configurable"]["checkpoint_id"] for place in (first, last))
    roots = {"finished:1": old, "interrupted:2": new, "running:3": str(uuid6()), "own": old}
    for ns, root in roots.items():
        await grown(saver, way, "t", ns, {"parents": {"": root}})
    await way(saver, "prune", ["t"])
    left = await way.all(saver, "list", {"configurable": {"thread_id": "t"}})
    assert sorted(one.config["configurable"]["checkpoint_ns"] for one in left) == [
        "",
        "interrupted:2",
        "own",
        "running:3",
    ]
    assert await way(saver, "get_tuple", at("t", ns="finished:1")) is None
    writes = {one.config["configurable"]["checkpoint_ns"]: one.pending_writes for one in left}
    assert writes["running:3"] == [("task-2", "w", "running:32")]


async def pruning_keeps_writes_that_came_before_their_checkpoint(saver, way):
    place, coming = await grown(saver, way), new_checkpoint({"changes": 3}, {"changes": "4"})
    await way(saver, "put_writes", at("t", coming["id"]), [("w", "early")], "task")
    await way(saver, "prune", ["t"])
    await way(saver, "put", place, coming, {"step": 3}, {"changes": "4"})
    assert (await way(saver, "get_tuple", at())).pending_writes == [("task", "w", "early")]


async def pruning_keeps_the_history_a_delta_channel_is_made_of(saver, way):
    """The head holds no value: it is in an ancestor and in the writes since."""
    counts = {"counters_since_delta_snapshot": {"log": [2, 2]}}
    place, long_ago = at(), None
    for n in range(5):
        values = {"log": ["seed"]} if n == 1 else {}
        made = new_checkpoint(values, {"log": f"{n:03}"}, v=4)
        metadata = {"source": "loop", "step": n, **(counts if n > 1 else {})}
        place = await way(saver, "put", place, made, metadata, {"log": f"{n:03}"})
        long_ago = long_ago or place
        await way(saver, "put_writes", place, [("log", f"w{n}")], f"task-{n}")
    asked = {"config": at(), "channels": ["log"]}
    before = await way(saver, "get_delta_channel_history", **asked)
    assert before["log"]["seed"] == ["seed"]
    assert [write[2] for write in before["log"]["writes"]] == ["w1", "w2", "w3"]
    await way(saver, "prune", ["t"])
    assert await way(saver, "get_delta_channel_history", **asked) == before
    assert ids(await way.all(saver, "list", at())) == [place["configurable"]["checkpoint_id"]]
    assert await way(saver, "get_tuple", long_ago) is None


async def pruning_keeps_the_sends_of_an_old_head(saver, way):
    """A head of a format below 4 has its sends among the writes of the parent that goes."""
    first = await way(saver, "put", at(), new_checkpoint({}, v=1), {}, {})
    await way(saver, "put_writes", first, [("__pregel_tasks", "long ago")], "task")
    second = await way(saver, "put", first, new_checkpoint({}, v=1), {}, {})
    await way(saver, "put_writes", second, [("__pregel_tasks", "send")], "task")
    await way(saver, "put", second, new_checkpoint({}, v=1), {}, {})
    await way(saver, "prune", ["t"])
    found = await way(saver, "get_tuple", at())
    assert found.checkpoint["channel_values"] == {"__pregel_tasks": ["send"]}
    assert len(await way.all(saver, "list", at())) == 1


async def a_cycle_of_parents_ends(saver, way):
    """A root that is put again below its own child: the walk comes to an end, and no write comes twice."""
    root, child = new_checkpoint({}, {"log": "1"}), new_checkpoint({}, {"log": "2"})
    place = await way(saver, "put", at(), root, {}, {"log": "1"})
    await way(saver, "put_writes", place, [("log", "w")], "task")
    below = await way(saver, "put", place, child, {}, {"log": "2"})
    await way(saver, "put", below, root, {}, {"log": "1"})
    found = await way(saver, "get_delta_channel_history", config=below, channels=["log"])
    assert found == {"log": {"writes": [("task", "log", "w")]}}


CHECKS = (
    deleting_by_run_takes_its_checkpoints_everywhere_and_nothing_else,
    a_copy_has_all_of_its_source,
    a_copy_lives_on_its_own,
    pruning_keeps_the_newest_of_each_namespace_whole,
    a_pruned_thread_goes_on,
    pruning_with_delete_leaves_nothing,
    a_text_instead_of_a_list_of_threads_is_refused,
    an_unknown_strategy_is_refused_before_anything_changes,
    pruning_takes_a_subgraph_call_with_the_root_it_started_from,
    pruning_keeps_writes_that_came_before_their_checkpoint,
    pruning_keeps_the_history_a_delta_channel_is_made_of,
    pruning_keeps_the_sends_of_an_old_head,
    a_cycle_of_parents_ends,
)
