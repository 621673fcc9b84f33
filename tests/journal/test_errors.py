"""What a lost run, a tool's error handling and a missing checkpoint do to a journalled call."""

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.errors import GraphBubbleUp

from runtime_persist.errors import CheckpointNotDurable, LeaseLost, OperationUnknown
from runtime_persist.journal import record
from runtime_persist.journal.barrier import wait_durable
from tests.support.graphs import chain, config
from tests.support.journal import Outside


class Scripted(BaseChatModel):
    """Calls ``pay`` twice in one message, then ends."""

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        if any(isinstance(message, ToolMessage) for message in messages):
            answer = AIMessage(content="done")
        else:
            calls = [{"name": "pay", "args": {"what": what}, "id": what, "type": "tool_call"} for what in ("a", "b")]
            answer = AIMessage(content="", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=answer)])


@pytest.fixture
def outside():
    return Outside()


def agent(charge, before=None):
    @tool
    def pay(what: str) -> str:
        """Pay."""
        if before:
            before()
        return str(charge(what)["what"])

    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False, on_failure="continue")
    return create_agent(Scripted(), [pay], middleware=[retry])


SAID = {"messages": [{"role": "user", "content": "pay"}]}


async def test_tools_of_an_agent_are_journalled(runtime, way, outside, raw):
    graph = runtime.bind(agent(outside.charge()), name="agent")
    output = await way(graph, "invoke", SAID, config())
    assert [m.content for m in output["messages"] if isinstance(m, ToolMessage)] == ["a", "b"]
    assert sorted(outside.calls) == ["a", "b"]
    assert raw.value("SELECT count(*) FROM rp_operations WHERE status = 'succeeded'") == 2


async def test_an_error_of_the_call_itself_is_the_tools_to_handle(runtime, way, outside):
    """The retry middleware tries a failed call again, under a new position."""
    outside.fails.append(TimeoutError("down"))
    graph = runtime.bind(agent(outside.charge()), name="agent")
    output = await way(graph, "invoke", SAID, config())
    assert [m.content for m in output["messages"] if isinstance(m, ToolMessage)] == ["a", "b"]
    assert len(outside.calls) == 3


async def test_no_error_handling_of_tools_swallows_a_lost_lease(runtime, way, outside, raw):
    graph = runtime.bind(agent(outside.charge(), lambda: raw.rows("UPDATE rp_runs SET epoch = 9")), name="agent")
    with pytest.raises(LeaseLost):
        await way(graph, "invoke", SAID, config())
    assert outside.calls == []


async def test_errors_of_the_journal_pass_through_nodes_that_catch_exceptions(runtime, way, outside, raw):
    caught = []
    charge = outside.charge()

    def node(_):
        raw.rows("UPDATE rp_runs SET epoch = 9")
        try:
            charge("a")
        except LeaseLost as error:
            caught.append(error)
            raise
        return {"log": []}

    graph = runtime.bind(chain({"node": node}), name="g")
    with pytest.raises(LeaseLost):
        await way(graph, "invoke", {"log": []}, config())
    assert isinstance(caught[0], GraphBubbleUp)
    assert caught[0].details["epoch"] == 1
    assert not issubclass(LeaseLost, GraphBubbleUp)


async def test_a_stopping_run_begins_no_call(runtime, way, outside):
    charge = outside.charge()

    def node(_):
        runtime.runs.cancel(runtime.runs.list()[0].run_id)
        return {"log": [charge("a")]}

    graph = runtime.bind(chain({"node": node}), name="g")
    with pytest.raises(RuntimeError) as caught:
        await way(graph, "invoke", {"log": []}, config())
    assert caught.value.code == "RUN_STOPPING"
    assert outside.calls == []
    assert (await way(runtime.runs, "list"))[0].status == "cancelled"


async def test_a_call_in_flight_when_the_run_is_stopped_still_counts(runtime, way, raw):
    class Stopping(Outside):
        def call(self, what, idempotency_key):
            runtime.runs.cancel(runtime.runs.list()[0].run_id)
            return super().call(what, idempotency_key)

    charge = Stopping().charge()
    graph = runtime.bind(chain({"node": lambda _: {"log": [charge("a")["what"]]}}), name="g")
    await way(graph, "invoke", {"log": []}, config())
    assert raw.value("SELECT status FROM rp_operations") == "succeeded"
    assert (await way(runtime.runs, "list"))[0].status == "cancelled"


async def test_a_subgraph_that_stores_no_checkpoint_is_refused(runtime, way, outside, monkeypatch):
    """Its ids change with every execution: nothing journalled there would ever be found again."""
    monkeypatch.setattr(record, "wait_durable", lambda owned, id_, name: wait_durable(owned, id_, name, seconds=0.05))
    charge = outside.charge()
    inner = chain({"charges": lambda _: {"log": [charge("a")]}}, checkpointer=False)
    graph = runtime.bind(chain({"inner": inner}), name="g")
    with pytest.raises(CheckpointNotDurable, match="checkpointer=False"):
        await way(graph, "invoke", {"log": []}, config())
    assert outside.calls == []


def test_a_barrier_that_waits_hears_of_a_lost_run(runtime):
    lease = runtime.lease(thread_id="t")
    future = lease.owned.when_durable("never")
    lease.owned.fail(LeaseLost())
    with pytest.raises(LeaseLost):
        future.result(timeout=10)


def test_bubbling_classes_are_those_of_the_tree():
    from runtime_persist.journal.bubble import bubbling

    made = bubbling(OperationUnknown("what", operation_id="x"))
    assert isinstance(made, OperationUnknown)
    assert isinstance(made, GraphBubbleUp)
    assert (type(made).__name__, made.details, made.code) == (
        "OperationUnknown",
        {"operation_id": "x"},
        "OPERATION_UNKNOWN",
    )
    assert bubbling(made) is made
