"""A bound graph prunes threads to their heads: it knows how a DeltaChannel's value is made, so no history stays."""

import operator
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from runtime_persist import operation
from runtime_persist.errors import LeaseExpired, ThreadOwned
from tests.support.graphs import asks, chain, config, resume, says
from tests.support.leases import run_out

MEANWHILE: list[Any] = []
"""What happens once, while a value is being made."""


def joined(state, given):
    if MEANWHILE:
        MEANWHILE.pop()()
    return [*state, *(word for words in given for word in words)]


class DeltaState(TypedDict, total=False):
    log: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=1_000)]
    never: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=1_000)]
    n: Annotated[int, operator.add]


def delta(**nodes):
    builder = StateGraph(DeltaState)
    last = START
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(last, name)
        last = name
    return builder


def adds(word):
    return lambda _: {"log": word, "n": 1}


def bound(runtime, builder, **options):
    return runtime.bind(builder.compile(**options), name="g")


def rows(raw, table="rp_checkpoints"):
    return raw.rows(f"SELECT * FROM {table} WHERE thread_id = 't'")


async def shown(graph, way):
    """All that a thread's latest state says (of its subgraphs too), but where it came from."""

    def one(found):
        return (
            found.values,
            found.next,
            found.config,
            found.created_at,
            [(i.id, i.value) for i in found.interrupts],
            [
                (task.id, task.name, task.error, one(task.state) if hasattr(task.state, "values") else None)
                for task in found.tasks
            ],
        )

    return one(await way(graph, "get_state", config(), subgraphs=True))


async def test_the_head_stays_with_all_its_values_and_no_history(runtime, way, raw):
    graph = bound(runtime, delta(a=adds(["a"]), b=adds(["b"])))
    await way(graph, "invoke", {"log": ["one"]}, config())
    await way(graph, "invoke", {"log": ["two"]}, config())
    before = await shown(graph, way)
    assert len(rows(raw)) > 2
    await way(graph, "prune", ["t"])
    assert await shown(graph, way) == before
    (head,) = rows(raw)
    assert (head["hidden"], rows(raw, "rp_writes")) == (0, [])
    (only,) = await way.all(graph, "get_state_history", config())
    assert (only.values["log"], only.parent_config) == (["one", "a", "b", "two", "a", "b"], None)
    again = await way(graph, "invoke", {"log": ["three"]}, config())
    assert again == {"log": [*only.values["log"], "three", "a", "b"], "never": [], "n": 6}
    assert (await way(graph, "get_state", config())).values == again


async def test_doing_it_again_changes_nothing(runtime, way, raw):
    graph = bound(runtime, delta(a=adds(["a"])))
    await way(graph, "invoke", {"log": ["one"]}, config())
    await way(graph, "prune", ["t"])
    first = rows(raw), rows(raw, "rp_heads")
    await way(graph, "prune", ["t"])
    assert (rows(raw), rows(raw, "rp_heads")) == first


async def test_an_interrupt_its_writes_and_its_journal_are_unchanged(runtime, way, raw):
    sent = []

    @operation(name="send", on_unknown="ask")
    def send(what: str) -> str:
        sent.append(what)
        return what

    def asking(_):
        return {"log": [send("mail"), interrupt("sure?")]}

    def beside(_):
        return {"log": ["beside"]}

    builder = delta(a=adds(["a"]))
    for name, node in {"asking": asking, "beside": beside}.items():
        builder.add_node(name, node)
        builder.add_edge("a", name)
    graph = bound(runtime, builder)
    await way(graph, "invoke", {"log": ["one"]}, config(), durability="sync")
    before, writes = await shown(graph, way), len(rows(raw, "rp_writes"))
    await way(graph, "prune", ["t"])
    assert await shown(graph, way) == before
    (head,) = rows(raw)
    kept = rows(raw, "rp_writes")
    assert {row["checkpoint_id"] for row in kept} == {head["checkpoint_id"]}
    assert {row["channel"] for row in kept} >= {"__interrupt__", "log"}
    assert len(kept) < writes
    assert (await way(graph, "invoke", resume("yes"), config()))["log"] == ["one", "a", "mail", "yes", "beside"]
    assert sent == ["mail"]


async def test_the_heads_of_subgraphs_stay_the_same_way(runtime, way, raw):
    inner = delta(first=adds(["first"]), ask=lambda _: {"log": [interrupt("sure?")]}).compile()
    stateful = delta(only=adds(["only"])).compile(checkpointer=True)
    graph = bound(runtime, delta(a=adds(["a"]), stateful=stateful, inner=inner))
    await way(graph, "invoke", {"log": ["one"]}, config())
    before = await shown(graph, way)
    await way(graph, "prune", ["t"])
    assert await shown(graph, way) == before
    assert sorted(row["checkpoint_ns"].split(":")[0] for row in rows(raw)) == ["", "inner", "stateful"]
    assert [row["hidden"] for row in rows(raw)] == [0, 0, 0]
    first = before[0]["log"]
    after = await way(graph, "invoke", resume("yes"), config())
    assert after["log"][len(first) :][-2:] == ["first", "yes"]


async def test_a_subgraph_that_is_not_found_in_the_graph_keeps_its_history_hidden(runtime, way, raw):
    tools = {"inner": delta(first=adds(["first"]), ask=lambda _: {"log": [interrupt("sure?")]}).compile()}

    def calls(state):
        return {"log": tools["inner"].invoke({"log": []})["log"]}

    graph = bound(runtime, delta(a=adds(["a"]), calls=calls))
    await way(graph, "invoke", {"log": ["one"]}, config())
    await way(graph, "prune", ["t"])
    assert [row["hidden"] for row in rows(raw) if not row["checkpoint_ns"]] == [0]
    assert any(row["hidden"] for row in rows(raw) if row["checkpoint_ns"])
    assert (await way(graph, "invoke", resume("yes"), config()))["log"] == ["one", "a", "first", "yes"]


async def test_a_graph_without_delta_channels_is_pruned_too(runtime, way, raw):
    graph = runtime.bind(chain({"a": says("a"), "ask": asks("why?"), "b": says("b")}), name="g")
    await way(graph, "invoke", {"log": []}, config())
    before = await shown(graph, way)
    await way(graph, "prune", ["t"])
    assert await shown(graph, way) == before
    assert len(rows(raw)) == 1
    assert (await way(graph, "invoke", resume("because"), config()))["log"] == ["a", "because", "b"]


async def test_a_live_run_is_not_pruned_and_its_thread_is_intact(runtime, open_runtime, way, raw):
    refused = []

    def node(_):
        other = bound(open_runtime(), builder)
        before = rows(raw)
        for strategy in ("keep_latest", "delete"):
            with pytest.raises(ThreadOwned) as caught:
                other.prune(["t"], strategy=strategy)
            refused.append(caught.value.details["run_id"])
        assert rows(raw) == before
        return {"log": ["node"]}

    builder = delta(a=adds(["a"]), node=node)
    output = await way(bound(runtime, builder), "invoke", {"log": ["one"]}, config(), durability="sync")
    (run,) = await way(runtime.runs, "list")
    assert (output["log"], refused, run.status) == (["one", "a", "node"], [run.run_id] * 2, "succeeded")


async def test_a_checkpoint_that_is_stored_meanwhile_is_what_stays(runtime, way, raw):
    graph = bound(runtime, delta(a=adds(["a"])))
    await way(graph, "invoke", {"log": ["one"]}, config())
    MEANWHILE.append(lambda: graph.update_state(config(), {"log": ["edited"]}))
    await way(graph, "prune", ["t"])
    assert MEANWHILE == []
    assert [row["hidden"] for row in rows(raw)] == [0]
    assert (await way(graph, "get_state", config())).values["log"] == ["one", "a", "edited"]


async def test_delete_deletes_and_what_is_no_strategy_or_no_list_is_refused(runtime, way, raw):
    graph = bound(runtime, delta(a=adds(["a"])))
    await way(graph, "invoke", {"log": ["one"]}, config())
    before = rows(raw)
    with pytest.raises(TypeError, match="list of thread ids"):
        await way(graph, "prune", "t")
    with pytest.raises(ValueError, match="keep_latest, delete"):
        await way(graph, "prune", ["t"], strategy="all")
    assert rows(raw) == before
    await way(graph, "prune", ["t", "unknown"], strategy="delete")
    assert rows(raw) == []


@pytest.mark.parametrize("whose", ["the graph's", "the saver's"])
async def test_a_run_that_goes_on_after_an_edit_is_not_given_its_input_again(runtime, way, raw, whose):
    def leaves(_):
        run_out(raw)

    def made(node):
        """For the saver's prune without DeltaChannels: with them their history would stay anyway."""
        builder = delta(a=node).compile() if whose == "the graph's" else chain({"a": node})
        return runtime.bind(builder, name="g")

    with pytest.raises(LeaseExpired):
        await way(made(leaves), "invoke", {"log": ["in"]}, config(), durability="sync")
    graph = made(adds(["a"]))
    await way(graph, "update_state", config(), {"log": ["edited"]}, as_node="__start__")
    await way(graph if whose == "the graph's" else runtime.checkpointer, "prune", ["t"])
    assert (await way(graph, "invoke", None, config()))["log"] == ["in", "edited", "a"]
    await way(graph, "prune", ["t"])
    assert [row["hidden"] for row in rows(raw)] == [0]
