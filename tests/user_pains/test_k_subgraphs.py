"""K1 and K2: forks of threads with DeltaChannels; time travel into subgraphs, and a pause that is answered twice."""

import operator
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt

from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from runtime_persist.errors import InvalidInput, LeaseExpired
from tests.equality.history import Told, differences
from tests.support.deltas import Both, Seldom, both, delta_chain, echoes
from tests.support.graphs import chain, config, nested, resume
from tests.support.journal import Outside
from tests.support.leases import run_out
from tests.support.way import ASYNC, SYNC
from tests.user_pains import programs_subgraphs as programs

HELLO = {"log": []}


# --- K1: a DeltaChannel beside a plain one ---------------------------------------------------------------------------


class Plain(TypedDict, total=False):
    """Both channels before one of them became a DeltaChannel."""

    delta: Annotated[list[Any], operator.add]
    plain: Annotated[list[Any], operator.add]


@pytest.fixture
def saver(shared_url, opened):
    """A saver on a database that another process opens too."""
    return opened(WorkflowCheckpointAdapter.from_conn_string(shared_url))


@pytest.fixture
def reloaded(shared_url, fork):
    """Reads both channels of every state in a new process; they are equal in each. Returns the latest."""

    def reload(schema=Both, states=None):
        found = fork(programs.reads_both, shared_url, schema).result()
        assert [delta for delta, _ in found] == [plain for _, plain in found]
        assert states is None or len(found) == states + 1
        return found[0][1]

    return reload


async def old_state(way, graph, held):
    """The place where the plain channel held this, at the end of a turn."""
    states = await way.all(graph, "get_state_history", config())
    return next(state.config for state in states if state.values.get("plain") == held and not state.next)


I1 = ["i1", "after 1", "after 2"]


@pytest.mark.parametrize("schema", [Both, Seldom])
async def test_k1_a_delta_channel_is_what_the_plain_one_is_after_a_fork_and_an_edit(saver, reloaded, way, schema):
    graphs = [delta_chain(schema, checkpointer=one) for one in (saver, InMemorySaver())]
    outputs = []
    for graph in graphs:
        found = [await way(graph, "invoke", both(item), config()) for item in ("i1", "i2")]
        place = await old_state(way, graph, I1)
        found.append(await way(graph, "invoke", both("i3"), place))
        edited = await way(graph, "update_state", place, both("edited"))
        found.append((await way(graph, "get_state", edited)).values)
        found.append(await way(graph, "invoke", both("i4"), config()))
        outputs.append(found)
    assert outputs[0] == outputs[1]
    assert all(output["delta"] == output["plain"] for output in outputs[0])
    assert outputs[0][2]["plain"] == [*I1, "i3", "after 4", "after 5"]
    assert outputs[0][3]["plain"] == [*I1, "edited"]
    assert reloaded(schema) == [*I1, "edited", "i4", "after 5", "after 6"]


@pytest.mark.parametrize("schema", [Both, Seldom])
async def test_k1_a_live_thread_moves_from_a_plain_channel_to_a_delta_channel(saver, reloaded, way, schema):
    """It moves in the middle of a turn; the first write after the move is there, and so are forks from before it."""
    old, new = [delta_chain(one, echoes, _asks, echoes, checkpointer=saver) for one in (Plain, schema)]
    await way(old, "invoke", both("i1"), config())
    (place,) = [state.config for state in [await way(old, "get_state", config())]]
    output = await way(new, "invoke", resume("moved"), config())
    assert output["plain"] == ["i1", "after 1", "moved", "after 3"]
    assert output["delta"] == output["plain"]
    assert reloaded(schema) == output["plain"]
    await way(new, "invoke", None, place)
    await way(new, "invoke", resume("another way"), config())
    assert reloaded(schema) == ["i1", "after 1", "another way", "after 3"]
    await way(new, "update_state", config(), both("edited"), as_node="n2")
    assert reloaded(schema) == ["i1", "after 1", "another way", "after 3", "edited"]


def _asks(_):
    return both(interrupt("?"))


@pytest.mark.parametrize(("how", "schema"), [("saver", Both), ("saver", Seldom), ("bound graph", Seldom)])
async def test_k1_a_pruned_thread_keeps_what_its_delta_channel_needs(runtime, reloaded, way, schema, how):
    graph = runtime.bind(delta_chain(schema), name="g")
    for item in ("i1", "i2"):
        await way(graph, "invoke", both(item), config())
    await way(graph, "invoke", both("i3"), await old_state(way, graph, I1))
    await way(runtime.checkpointer if how == "saver" else graph, "prune", ["t"])
    expected = [*I1, "i3", "after 4", "after 5"]
    assert reloaded(schema, states=1) == expected
    await way(graph, "update_state", config(), both("edited"))
    output = await way(graph, "invoke", both("i4"), config())
    assert output["delta"] == [*expected, "edited", "i4", "after 8", "after 9"]
    assert reloaded(schema) == output["delta"]


# --- K2: time travel into a subgraph, and a pause that is answered twice ----------------------------------------------


class Traveller:
    """A graph around a subgraph a -> b -> review -> c, whose nodes say that they ran."""

    def __init__(self, way, persistence, make) -> None:
        self.way, self.ran = way, []
        inner = chain({name: self._node(name) for name in ("a", "b", "review", "c")}, checkpointer=persistence)
        self.graph = make(nested(inner))

    def _node(self, name):
        def node(_):
            self.ran.append(name)
            return {"log": [interrupt("good?") if name == "review" else name]}

        return node

    async def inside(self, node):
        """The place in the subgraph from which this node ran."""
        state = await self.way(self.graph, "get_state", config(), subgraphs=True)
        inner = state.tasks[0].state.config["configurable"]["checkpoint_ns"]
        states = await self.way.all(self.graph, "get_state_history", config(checkpoint_ns=inner))
        return next(state.config for state in states if state.next == (node,))

    async def run(self, given, place=None):
        self.ran.append("-")
        output = await self.way(self.graph, "invoke", given, place or config())
        self.ran.append(output["log"])


async def goes_back_inside(traveller):
    await traveller.run(HELLO)
    place = await traveller.inside("b")
    await traveller.run(None, place)
    await traveller.run(resume("fine"))
    await traveller.run({"log": ["next turn"]})


async def goes_back_after_the_end(traveller):
    await traveller.run(HELLO)
    place = await traveller.inside("b")
    await traveller.run(resume("fine"))
    await traveller.run(None, place)
    await traveller.run(resume("better"))


async def answers_twice(traveller):
    await traveller.run(HELLO)
    pause = (await traveller.way(traveller.graph, "get_state", config())).config
    for answer in ("fine", "bad", "fine"):
        await traveller.run(resume(answer), pause)
    await traveller.run({"log": ["next turn"]})


async def answers_twice_inside(traveller):
    await traveller.run(HELLO)
    pause = await traveller.inside("review")
    for answer in ("fine", "bad"):
        await traveller.run(resume(answer), pause)


@pytest.mark.parametrize("journey", [goes_back_inside, goes_back_after_the_end, answers_twice, answers_twice_inside])
@pytest.mark.parametrize("persistence", [None, True], ids=["stateless", "stateful"])
@pytest.mark.parametrize(("level", "way"), [("saver", SYNC), ("owned", ASYNC)], ids=["saver-sync", "owned-async"])
async def test_k2_the_nodes_that_run_and_what_is_stored_are_those_of_the_memory_saver(
    runtime, way, journey, persistence, level
):
    memory, told = InMemorySaver(), []
    for saver, make in (
        (runtime.checkpointer, lambda graph: _with(graph, runtime, level)),
        (memory, lambda graph: _stored_in(graph, memory)),
    ):
        traveller = Traveller(way, persistence, make)
        await journey(traveller)
        told.append([traveller.ran, await Told(way, traveller.graph, saver, "t").history()])
    (ran, stored), (ran_in_memory, stored_in_memory) = told
    assert ran == ran_in_memory
    assert differences(stored, stored_in_memory) == []


def _with(graph, runtime, level):
    return runtime.bind(graph, name="g") if level == "owned" else _stored_in(graph, runtime.checkpointer)


def _stored_in(graph, saver):
    graph.checkpointer = saver
    return graph


def reviewed(outside, then=lambda: None):
    """A node that does something outside before it asks, and something after it."""
    prepare, charge = outside.charge("prepare"), outside.charge("charge")

    def review(_):
        prepare("prepared")
        answer = interrupt("good?")
        charge("charged")
        then()
        return {"log": [answer]}

    return chain({"review": review})


@pytest.fixture
def outside():
    return Outside()


async def test_k2_a_pause_answered_again_does_not_reuse_the_effects_of_the_branch_that_was_left(runtime, way, outside):
    graph = runtime.bind(reviewed(outside), name="g")
    await way(graph, "invoke", HELLO, config())
    pause = (await way(graph, "get_state", config())).config
    await way(graph, "invoke", resume("fine"), pause)
    assert outside.calls == ["prepared", "charged"]  # the answer continued the run: what it prepared counts
    await way(graph, "invoke", resume("bad"), pause)
    assert outside.calls == ["prepared", "charged"] * 2
    assert len(set(outside.keys)) == 4
    # Going back without an answer, and being asked anew, is a branch too.
    await way(graph, "invoke", None, pause)
    await way(graph, "invoke", resume("fine"), config())
    assert outside.calls == ["prepared", "charged"] * 3
    assert len(set(outside.keys)) == 6


async def test_k2_an_answer_that_is_delivered_twice_has_its_effects_once(runtime, way, outside):
    graph = runtime.bind(reviewed(outside), name="g")
    await way(graph, "invoke", HELLO, config())
    pause = (await way(graph, "get_state", config())).config
    for answer, calls in (("fine", 2), ("fine", 2), ("bad", 4), ("bad", 4), ("fine", 4)):
        await way(graph, "invoke", resume(answer), pause)
        assert len(outside.calls) == calls


async def test_k2_going_back_inside_a_subgraph_does_not_reuse_the_effects_of_the_branch_that_was_left(
    runtime, way, outside
):
    inner = chain({"a": lambda _: {"log": ["a"]}, "review": reviewed(outside).nodes["review"].bound}, checkpointer=True)
    graph = runtime.bind(nested(inner), name="g")
    await way(graph, "invoke", HELLO, config())
    state = await way(graph, "get_state", config(), subgraphs=True)
    pause = state.tasks[0].state.config
    await way(graph, "invoke", resume("fine"), config())
    assert outside.calls == ["prepared", "charged"]
    await way(graph, "invoke", None, pause)
    await way(graph, "invoke", resume("bad"), config())
    assert outside.calls == ["prepared", "charged"] * 2
    assert len(set(outside.keys)) == 4


async def test_k2_a_branch_that_was_left_behind_goes_on_with_its_own_effects(runtime, way, raw, outside):
    stops = []
    graph = runtime.bind(reviewed(outside, lambda: stops and stops.pop() and run_out(raw)), name="g")
    await way(graph, "invoke", HELLO, config())
    pause = (await way(graph, "get_state", config())).config
    await way(graph, "invoke", resume("fine"), pause)
    stops.append(1)
    with pytest.raises(LeaseExpired):
        await way(graph, "invoke", resume("bad"), pause)
    assert len(outside.calls) == 4
    output = await way(graph, "invoke", None, config())
    assert output["log"] == ["fine"]  # LangGraph gives a task that is run again the answer that it has taken up
    assert len(outside.calls) == 4
    (run, *_) = await way(runtime.runs, "list")
    assert (run.status, run.attempt_no) == ("succeeded", 2)


class _LosesItsLease(BaseCallbackHandler):
    """Lets the lease of a run that begins run out before it stores anything."""

    raise_error = True

    def __init__(self, raw) -> None:
        self._raw = raw

    def on_chain_start(self, *_: Any, parent_run_id: Any = None, **__: Any) -> None:
        if parent_run_id is None:
            run_out(self._raw)


async def test_k2_a_run_that_is_lost_at_once_begins_at_the_same_place_inside_the_subgraph_again(runtime, way, raw):
    traveller = Traveller(way, True, lambda graph: runtime.bind(graph, name="g"))
    await traveller.run(HELLO)
    place = await traveller.inside("b")
    with pytest.raises(LeaseExpired):
        await way(traveller.graph, "invoke", None, {**place, "callbacks": [_LosesItsLease(raw)]})
    del traveller.ran[:]
    await traveller.run(None)
    assert traveller.ran[:-1] == ["-", "b", "review"]
    (run, *_) = await way(runtime.runs, "list")
    assert (run.status, run.attempt_no) == ("waiting_approval", 2)


async def test_k2_an_answer_at_the_pause_the_thread_stands_at_continues_its_run(runtime, way, outside):
    graph = runtime.bind(reviewed(outside), name="g")
    await way(graph, "invoke", HELLO, config())
    pause = (await way(graph, "get_state", config())).config
    await way(graph, "invoke", resume("fine"), pause)
    (run,) = await way(runtime.runs, "list")
    assert (run.status, run.attempt_no) == ("succeeded", 2)


async def test_k2_a_place_inside_a_subgraph_without_what_is_above_it_is_refused(runtime, way):
    graph = runtime.bind(nested(chain({"x": lambda _: {"log": ["x"]}})), name="g")
    with pytest.raises(InvalidInput, match="checkpoint_map"):
        await way(graph, "invoke", HELLO, config(checkpoint_ns="inner:1", checkpoint_id="c"))
    assert await way(runtime.runs, "list") == []
