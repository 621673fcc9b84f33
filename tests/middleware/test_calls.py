"""Model and tool calls of an agent are operations: made once, given back as they were."""

import asyncio
from dataclasses import dataclass

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRetryMiddleware, ToolRetryMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.types import Command

from runtime_persist import RetryPolicy
from runtime_persist.adapters.middleware import JournalMiddleware, idempotency_key
from runtime_persist.errors import InvalidInput, LeaseLost, OperationMismatch, OperationNeedsRun
from runtime_persist.worker import Worker
from tests.middleware.agents import PAYS, SAID, Pausing, Scripted, Streaming, agent, payer, texts, tool_texts, wants
from tests.support.graphs import config, resume
from tests.support.journal import Outside

OPERATIONS = "SELECT name, ordinal, status, on_unknown, try_no FROM rp_operations ORDER BY name, ordinal, created_us"


def operations(raw):
    return [tuple(row.values()) for row in raw.rows(OPERATIONS)]


@pytest.fixture
def outside():
    return Outside()


@pytest.fixture
def asked():
    """The numbers of the answers that the model was asked for."""
    return []


@pytest.fixture
def model(asked):
    return Scripted(called=lambda number, _: asked.append(number))


async def test_model_and_tool_calls_are_operations_with_their_own_policies(runtime, way, outside, model, asked, raw):
    made = agent([payer(outside.call)], JournalMiddleware(), model=model)
    output = await way(runtime.bind(made, name="agent"), "invoke", SAID, config())
    assert texts(output) == [
        ("human", "pay a and b"), ("ai", ""), ("tool", "paid a"), ("tool", "paid b"), ("ai", "both are paid"),
    ]  # fmt: skip
    assert (sorted(outside.calls), asked) == (["a", "b"], [0, 1])
    assert operations(raw) == [
        ("model", "#0", "succeeded", "retry", 1),
        ("model", "#0", "succeeded", "retry", 1),
        ("pay", "call-a#0", "succeeded", "ask", 1),
        ("pay", "call-b#0", "succeeded", "ask", 1),
    ]
    keys = {row["idempotency_key"] for row in raw.rows("SELECT idempotency_key FROM rp_operations WHERE name = 'pay'")}
    assert set(outside.keys) == keys
    assert len(keys) == 2


async def test_a_model_call_comes_back_verbatim_when_its_node_runs_again(runtime, way, outside, model, asked):
    pausing = Pausing("model")
    graph = runtime.bind(agent([payer(outside.call)], pausing, JournalMiddleware(), model=model), name="agent")
    await way(graph, "invoke", SAID, config())
    await way(graph, "invoke", resume("yes"), config())
    output = await way(graph, "invoke", resume("yes"), config())
    assert asked == [0, 1]
    first, again, *_ = [seen.result for seen in pausing.seen]
    assert again == first
    assert (first[0].id, first[0].usage_metadata["total_tokens"]) == (output["messages"][1].id, 9)
    assert [call["id"] for call in first[0].tool_calls] == ["call-a", "call-b"]
    assert first[0].id.startswith("lc_run--")
    assert sorted(outside.calls) == ["a", "b"]


async def test_a_tools_command_comes_back_verbatim_when_its_task_runs_again(runtime, way, outside):
    @tool
    def move(where: str) -> Command:
        """Move."""
        outside.call(where, idempotency_key())
        told = ToolMessage(f"moved {where}", tool_call_id="call-m", id="m1", artifact={"left": [1, 2]})
        return Command(update={"messages": [told]})

    script = (wants(("move", {"where": "on"}, "call-m")), AIMessage(content="done"))
    pausing = Pausing("call-m")
    made = agent([move], pausing, JournalMiddleware(), model=Scripted(script=script))
    graph = runtime.bind(made, name="agent")
    await way(graph, "invoke", SAID, config())
    output = await way(graph, "invoke", resume("yes"), config())
    assert outside.calls == ["on"]
    assert pausing.seen[0] == pausing.seen[1]
    assert isinstance(pausing.seen[1], Command)
    found = output["messages"][2]
    assert (found.id, found.text, found.artifact) == ("m1", "moved on", {"left": [1, 2]})


@dataclass
class Verdict:
    """What the model decides."""

    paid: bool


async def test_a_structured_response_comes_back_when_its_node_runs_again(runtime, way, asked):
    script = (wants(("Verdict", {"paid": True}, "call-v")),)
    model = Scripted(script=script, called=lambda number, _: asked.append(number))
    pausing = Pausing("model")
    made = agent([], pausing, JournalMiddleware(), model=model, response_format=ToolStrategy(Verdict))
    graph = runtime.bind(made, name="agent")
    await way(graph, "invoke", SAID, config())
    output = await way(graph, "invoke", resume("yes"), config())
    assert output["structured_response"] == Verdict(paid=True)
    assert pausing.seen[0] == pausing.seen[1]
    assert asked == [0]


class Saying(AgentMiddleware):
    """Outer middleware that gives the model a system prompt."""

    def __init__(self, *prompts) -> None:
        super().__init__()
        self.prompts = list(prompts)

    def _said(self, request):
        return request.override(system_message=SystemMessage(content=self.prompts.pop(0)))

    def wrap_model_call(self, request, handler):
        return handler(self._said(request))

    async def awrap_model_call(self, request, handler):
        return await handler(self._said(request))


async def test_what_outer_middleware_changed_is_what_is_sent_and_journalled(runtime, way):
    """A request that is another one when its node runs again is refused: its answer would be to something else."""
    sent = []
    model = Scripted(called=lambda _, messages: sent.append(messages[0].text), script=(AIMessage(content="ok"),))
    made = agent([], Pausing("model"), Saying("be brief", "be long"), JournalMiddleware(), model=model)
    graph = runtime.bind(made, name="agent")
    await way(graph, "invoke", SAID, config())
    with pytest.raises(OperationMismatch):
        await way(graph, "invoke", resume("yes"), config())
    assert sent == ["be brief"]


async def test_each_try_of_a_retry_middleware_is_an_operation_of_its_own(runtime, way, outside, raw):
    outside.fails += [TimeoutError("down")]
    failing = [ValueError("busy")]

    def called(*_):
        if failing:
            raise failing.pop()

    once = {"max_retries": 2, "initial_delay": 0.0, "jitter": False}
    around = [ToolRetryMiddleware(**once), ModelRetryMiddleware(**once), JournalMiddleware()]
    script = (wants(("pay", {"what": "a"}, "call-a")), AIMessage(content="paid"))
    graph = runtime.bind(agent([payer(outside.call)], *around, model=Scripted(script=script, called=called)), name="g")
    output = await way(graph, "invoke", SAID, config())
    assert texts(output)[1:] == [("ai", ""), ("tool", "paid a"), ("ai", "paid")]
    assert [(name, ordinal, status) for name, ordinal, status, _, _ in operations(raw)] == [
        ("model", "#0", "failed"),
        ("model", "#0", "succeeded"),
        ("model", "#1", "succeeded"),
        ("pay", "call-a#0", "failed"),
        ("pay", "call-a#1", "succeeded"),
    ]


async def test_no_retry_and_no_error_handling_swallows_a_lost_lease(runtime, way, outside, raw):
    def loses(*_):
        raw.rows("UPDATE rp_runs SET epoch = 9")

    once = {"max_retries": 2, "initial_delay": 0.0, "jitter": False, "on_failure": "continue"}
    around = [ToolRetryMiddleware(**once), ModelRetryMiddleware(**once), JournalMiddleware()]
    graph = runtime.bind(agent([payer(outside.call)], *around, model=Scripted(called=loses)), name="agent")
    with pytest.raises(LeaseLost):
        await way(graph, "invoke", SAID, config())
    assert outside.calls == []


async def test_a_tool_that_journals_what_it_does_is_no_operation_itself(runtime, way, outside, raw):
    charge = outside.charge(on_unknown="retry")

    @tool
    def pay(what: str) -> str:
        """Pay."""
        return str(charge(what)["what"])

    graph = runtime.bind(agent([pay], JournalMiddleware(tools={"pay": "inside"})), name="agent")
    output = await way(graph, "invoke", SAID, config())
    assert tool_texts(output) == ["a", "b"]
    assert {name for name, *_ in operations(raw)} == {"model", "charge"}


async def test_an_agent_inside_a_tool_has_a_journal_of_its_own(runtime, way, outside, asked, raw):
    """Its calls are not made again when the tool's task runs again, and are told from the outer agent's."""
    inner = agent([payer(outside.call)], JournalMiddleware(), model=Scripted(called=lambda n, _: asked.append(n)))

    @tool
    def delegate(what: str) -> str:
        """Let another agent do it."""
        return inner.invoke({"messages": [{"role": "user", "content": what}]})["messages"][-1].text

    @tool("delegate")
    async def adelegate(what: str) -> str:
        """Let another agent do it."""
        return (await inner.ainvoke({"messages": [{"role": "user", "content": what}]}))["messages"][-1].text

    script = (wants(("delegate", {"what": "pay"}, "call-d")), AIMessage(content="done"))
    around = [Pausing("call-d"), JournalMiddleware(tools={"delegate": "inside"})]
    made = agent([adelegate if way.asynchronous else delegate], *around, model=Scripted(script=script))
    graph = runtime.bind(made, name="agent")
    await way(graph, "invoke", SAID, config())
    output = await way(graph, "invoke", resume("yes"), config())
    assert tool_texts(output) == ["both are paid"]
    assert (sorted(outside.calls), asked) == (["a", "b"], [0, 1])
    assert [name for name, *_ in operations(raw)] == ["model"] * 4 + ["pay"] * 2


async def test_model_calls_still_stream(runtime, way, outside):
    made = agent([payer(outside.call)], JournalMiddleware(), model=Streaming())
    graph = runtime.bind(made, name="agent")
    streamed = await way.all(graph, "stream", SAID, config(), stream_mode="messages")
    pieces = [message.text for message, _ in streamed if message.type == "AIMessageChunk" and message.text]
    assert pieces == PAYS[1].text.split()


async def test_an_agent_that_is_not_bound_is_refused(way):
    made = agent([], JournalMiddleware())
    with pytest.raises(OperationNeedsRun):
        await way(made, "invoke", SAID)


@pytest.mark.parametrize("options", [{"tools": "maybe"}, {"tools": {"pay": "maybe"}}, {"models": "inside"}])
def test_an_unknown_policy_is_refused(options):
    with pytest.raises(InvalidInput):
        create_agent(Scripted(), [], middleware=[JournalMiddleware(**options)])


def test_an_idempotency_key_outside_of_a_call_is_refused():
    with pytest.raises(InvalidInput):
        idempotency_key()


async def test_a_workers_retry_of_a_failed_run_makes_the_failed_call_again(runtime, outside):
    """And only that one: what was completed before is not asked for again."""
    outside.fails += [TimeoutError("down")]
    asked = []
    model = Scripted(called=lambda number, _: asked.append(number))
    agents = {"agent": agent([payer(outside.call)], JournalMiddleware(), model=model)}
    runtime.bind(agents["agent"], name="agent")
    run = runtime.runs.start("agent", SAID, thread_id="t", retry=RetryPolicy(max_attempts=2, backoff=0))
    await asyncio.to_thread(Worker(runtime, agents, poll_seconds=0.01).run, until_idle=True)
    output = await asyncio.to_thread(run.result, timeout=0)
    assert tool_texts(output) == ["paid a", "paid b"]
    assert len(outside.calls) == 3
    assert len(set(outside.keys)) == 2
    assert asked == [0, 1]
