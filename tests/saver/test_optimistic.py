"""L0: a saver without a lease refuses stale writers per invocation, and nothing else (architecture §5, R6)."""

import pytest
from langgraph.runtime import RunControl, Runtime

from runtime_persist.errors import StaleWriter
from tests.support.checkpoints import Steps, at, new_checkpoint
from tests.support.graphs import asks, chain, config, nested, resume, says


def invocation(place=None, **more):
    """A config as LangGraph hands it to the saver inside one invocation: its control object is its identity."""
    return at(**(place or {}), **more, __pregel_runtime=Runtime(control=RunControl()))


def step(given, parent):
    """The same invocation's config with another parent."""
    return {"configurable": given["configurable"] | {"checkpoint_id": parent}}


def checkpoints(count):
    return [new_checkpoint({"a": n}, {"a": str(n)}) for n in range(count)]


async def put(saver, way, given, made):
    return await way(saver, "put", given, made, {}, dict(made["channel_versions"]))


async def head(saver, way):
    return (await way(saver, "get_tuple", at("t"))).checkpoint["id"]


async def loaded(saver, way, thread_head):
    """An invocation that loaded the head, and its config for the next put."""
    given = invocation()
    found = await way(saver, "get_tuple", given)
    assert (found.checkpoint["id"] if found else None) == thread_head
    return step(given, thread_head) if thread_head else given


async def test_the_first_put_of_a_stale_writer_is_refused(saver, way):
    first, theirs, ours, next_ = checkpoints(4)
    await put(saver, way, at(), first)
    slow = await loaded(saver, way, first["id"])
    quick = await loaded(saver, way, first["id"])
    await put(saver, way, quick, theirs)
    with pytest.raises(StaleWriter) as caught:
        await put(saver, way, slow, ours)
    assert (caught.value.kind, caught.value.details["head"]) == ("conflict", theirs["id"])
    assert await head(saver, way) == theirs["id"]
    assert await way(saver, "get_tuple", at("t", ours["id"])) is None
    await put(saver, way, step(quick, theirs["id"]), next_)
    assert await head(saver, way) == next_["id"]


async def test_of_two_writers_that_start_a_thread_one_is_refused(saver, way):
    theirs, ours = checkpoints(2)
    slow, quick = await loaded(saver, way, None), await loaded(saver, way, None)
    await put(saver, way, quick, theirs)
    with pytest.raises(StaleWriter):
        await put(saver, way, slow, ours)
    assert await head(saver, way) == theirs["id"]


async def test_a_later_put_whose_head_moved_is_refused(saver, way):
    first, second, theirs, third = checkpoints(4)
    given = await loaded(saver, way, None)
    await put(saver, way, given, first)
    await put(saver, way, step(given, first["id"]), second)
    other = await loaded(saver, way, second["id"])
    await put(saver, way, other, theirs)
    with pytest.raises(StaleWriter):
        await put(saver, way, step(given, second["id"]), third)
    assert await head(saver, way) == theirs["id"]


async def test_a_refused_invocation_writes_nothing_more(saver, way):
    """LangGraph reports a failed put late: whatever it sends meanwhile is refused too."""
    first, theirs, ours = checkpoints(3)
    await put(saver, way, at(), first)
    slow = await loaded(saver, way, first["id"])
    await put(saver, way, await loaded(saver, way, first["id"]), theirs)
    with pytest.raises(StaleWriter):
        await put(saver, way, slow, ours)
    for _ in range(2):
        with pytest.raises(StaleWriter):
            await way(saver, "put_writes", step(slow, ours["id"]), [("a", 1)], "task")
        with pytest.raises(StaleWriter):
            await put(saver, way, step(slow, theirs["id"]), checkpoints(1)[0])
    assert slow["configurable"]["__pregel_runtime"].control.drain_requested
    assert await head(saver, way) == theirs["id"]


async def test_a_put_that_does_not_follow_the_invocations_own_last_put_is_refused(saver, way):
    first, second, third = checkpoints(3)
    given = await loaded(saver, way, None)
    await put(saver, way, given, first)
    await put(saver, way, step(given, first["id"]), second)
    with pytest.raises(StaleWriter):
        await put(saver, way, step(given, first["id"]), third)


async def test_a_fork_is_accepted_and_becomes_the_head(saver, way):
    """An invocation that asked for an id knows that it leaves the head behind."""
    first, second, fork, then = checkpoints(4)
    await put(saver, way, at(), first)
    await put(saver, way, at("t", first["id"]), second)
    given = invocation()
    await way(saver, "get_tuple", step(given, first["id"]))
    await way(saver, "get_tuple", given)  # LangGraph looks at the latest too
    await put(saver, way, step(given, first["id"]), fork)
    assert await head(saver, way) == fork["id"]
    await put(saver, way, step(given, fork["id"]), then)
    assert await head(saver, way) == then["id"]


async def test_a_namespace_that_was_listed_is_a_fork(saver, way):
    """LangGraph's replay of a subgraph loads by ``list(before=…)`` and puts without a parent."""
    steps = Steps(way, saver, ns="sub:1")
    await steps.put(a=1)
    (made,) = checkpoints(1)
    given = invocation({"ns": "sub:1"})
    await way.first(saver, "list", given, before=at("t", "\U0010fffe"), limit=1)
    await put(saver, way, given, made)
    found = await way(saver, "get_tuple", at("t", ns="sub:1"))
    assert found.checkpoint["id"] == made["id"]


async def test_somebody_who_reads_an_old_state_does_not_switch_protection_off(saver, way):
    first, second, theirs, ours = checkpoints(4)
    await put(saver, way, at(), first)
    await put(saver, way, at("t", first["id"]), second)
    slow = await loaded(saver, way, second["id"])
    await put(saver, way, await loaded(saver, way, second["id"]), theirs)
    await way(saver, "get_tuple", at("t", second["id"]))  # a user interface shows the old state
    await way(saver, "get_tuple", step(invocation(), second["id"]))
    with pytest.raises(StaleWriter):
        await put(saver, way, slow, ours)


async def test_direct_writes_are_accepted(saver, way):
    """Without a runtime, and without having loaded: a migration, a test, the conformance kit."""
    first, second, third = checkpoints(3)
    await put(saver, way, at(), first)
    await put(saver, way, at("t", first["id"]), second)
    await put(saver, way, at("t", first["id"]), third)
    assert await head(saver, way) == third["id"]


async def test_storing_the_same_bytes_again_changes_nothing(saver, way, raw):
    first, second = checkpoints(2)
    await put(saver, way, at(), first)
    await put(saver, way, at("t", first["id"]), second)
    before = raw.dump()
    await put(saver, way, at(), first)
    assert raw.dump() == before
    assert await head(saver, way) == second["id"]


async def test_storing_other_bytes_under_an_id_replaces_them_and_leaves_the_head(saver, way):
    first, second = checkpoints(2)
    await put(saver, way, at(), first)
    await put(saver, way, at("t", first["id"]), second)
    changed = first | {"channel_values": {"a": "other" * 1_000}}
    await put(saver, way, at(), changed)
    found = await way(saver, "get_tuple", at("t", first["id"]))
    assert found.checkpoint["channel_values"] == {"a": "other" * 1_000}
    assert await head(saver, way) == second["id"]
    assert len(await way.all(saver, "list", at())) == 2


async def test_unsafe_lets_a_stale_writer_through(open_saver, way):
    """What the stock savers do, for comparison."""
    saver = open_saver(concurrency="unsafe")
    first, theirs, ours = checkpoints(3)
    await put(saver, way, at(), first)
    slow = await loaded(saver, way, first["id"])
    await put(saver, way, await loaded(saver, way, first["id"]), theirs)
    await put(saver, way, slow, ours)
    assert await head(saver, way) == ours["id"]


# --- the same through graphs ------------------------------------------------------------------------------------------


async def test_a_graph_whose_thread_was_moved_on_raises_stale_writer(saver, way):
    inner = chain({"quick": says("quick")}, checkpointer=saver)

    def overtaken(_):
        inner.invoke({"log": []}, config())
        return {"log": ["slow"]}

    graph = chain({"slow": overtaken, "after": says("after")}, checkpointer=saver)
    await way(inner, "invoke", {"log": []}, config())
    with pytest.raises(StaleWriter):
        await way(graph, "invoke", {"log": []}, config(), durability="sync")
    assert (await way(graph, "get_state", config())).values["log"] == ["quick", "quick"]


async def test_time_travel_and_edits_are_accepted(saver, way):
    graph = chain({"a": says("a"), "b": says("b")}, checkpointer=saver)
    await way(graph, "invoke", {"log": []}, config())
    history = await way.all(graph, "get_state_history", config())
    before_b = next(state for state in history if state.next == ("b",))
    await way(graph, "invoke", None, before_b.config)
    assert (await way(graph, "get_state", config())).values["log"] == ["a", "b"]
    await way(graph, "update_state", config(), {"log": ["edit"]})
    forked = await way(graph, "update_state", before_b.config, {"log": ["fork"]})
    assert (await way(graph, "get_state", config())).config == forked
    assert (await way(graph, "get_state", config())).values["log"] == ["a", "fork"]
    await way(graph, "update_state", config(), None, as_node="__copy__")
    assert (await way(graph, "get_state", config())).values["log"] == ["a", "fork"]
    await way(graph, "invoke", {"log": ["more"]}, config())
    assert (await way(graph, "get_state", config())).values["log"] == ["a", "fork", "more", "a", "b"]


async def test_bulk_updates_are_accepted(saver, way):
    from langgraph.types import StateUpdate

    graph = chain({"a": says("a"), "b": says("b")}, checkpointer=saver)
    updates = [
        [StateUpdate({"log": ["one"]}, "a")],
        [StateUpdate({"log": ["two"]}, "b")],
        [StateUpdate({"log": ["three"]}, "a")],
    ]
    await way(graph, "bulk_update_state", config(), updates)
    assert (await way(graph, "get_state", config())).values["log"] == ["one", "two", "three"]


async def test_interrupts_inside_stateful_subgraphs_resume_and_replay(saver, way):
    graph = nested(chain({"ask": asks("why?"), "then": says("then")}, checkpointer=True), checkpointer=saver)
    await way(graph, "invoke", {"log": []}, config())
    await way(graph, "invoke", resume("because"), config())
    expected = ["before", "before", "because", "then", "after"]
    assert (await way(graph, "get_state", config())).values["log"] == expected
    history = await way.all(graph, "get_state_history", config())
    before_inner = next(state for state in history if state.next == ("inner",))
    await way(graph, "invoke", None, before_inner.config)
    await way(graph, "invoke", resume("again"), config())
    assert "again" in (await way(graph, "get_state", config())).values["log"]
