"""Hooks: asked in order, each decision journalled and applied once; a denied call is not made."""

import pytest
from langchain_core.messages import AIMessage

from runtime_persist.adapters.middleware import Deny, Hook, JournalMiddleware, Patch
from runtime_persist.errors import InvalidInput
from tests.middleware.agents import SAID, Pausing, Scripted, agent, payer, texts, tool_texts, wants
from tests.support.graphs import config, resume
from tests.support.journal import Outside

ONE = (wants(("pay", {"what": "a"}, "call-a")), AIMessage(content="done"))
HOOKS = "SELECT name, ordinal, status, try_no FROM rp_operations WHERE name LIKE 'hook:%' ORDER BY created_us, name"


@pytest.fixture
def outside():
    return Outside()


def deciding(name, decision, told, **options):
    def decide(call):
        told.append((name, call.kind, call.name, dict(call.request), call.response, call.revision))
        return decision

    return Hook(name, decide, **options)


def paying(outside, *middleware, script=ONE, **hooks):
    return agent([payer(outside.call)], *middleware, JournalMiddleware(**hooks), model=Scripted(script=script))


async def test_hooks_run_in_their_order_and_each_sees_what_the_one_before_left(runtime, way, outside):
    told = []
    hooks = [
        deciding("first", Patch({"what": "b"}), told, on="tool"),
        deciding("second", None, told, on="tool"),
        deciding("third", Patch({"what": "c"}), told, on="tool"),
    ]
    graph = runtime.bind(paying(outside, request_hooks=hooks), name="agent")
    output = await way(graph, "invoke", SAID, config())
    assert [(name, request["what"], revision) for name, _, _, request, _, revision in told] == [
        ("first", "a", 0), ("second", "b", 1), ("third", "b", 1),
    ]  # fmt: skip
    assert outside.calls == ["c"]
    assert tool_texts(output) == ["paid c"]


async def test_a_denied_tool_call_is_answered_without_an_attempt(runtime, way, outside, raw):
    told = []
    hooks = [deciding("guard", Deny("not allowed"), told, on="tool"), deciding("never", None, told, on="tool")]
    graph = runtime.bind(paying(outside, request_hooks=hooks), name="agent")
    output = await way(graph, "invoke", SAID, config())
    (answer,) = [message for message in output["messages"] if message.type == "tool"]
    assert (answer.text, answer.status, answer.tool_call_id) == ("not allowed", "error", "call-a")
    assert [name for name, *_ in told] == ["guard"]
    assert outside.calls == []
    assert raw.value("SELECT count(*) FROM rp_operations WHERE name = 'pay'") == 0


async def test_a_denied_model_call_is_the_agents_answer(runtime, way, outside):
    asked = []
    model = Scripted(called=lambda *_: asked.append(1))
    hooks = [deciding("guard", Deny("no more questions"), [], on="model")]
    graph = runtime.bind(agent([], JournalMiddleware(request_hooks=hooks), model=model), name="agent")
    output = await way(graph, "invoke", SAID, config())
    assert texts(output)[1:] == [("ai", "no more questions")]
    assert asked == []


async def test_a_patched_model_request_is_what_is_sent_and_a_patched_response_what_counts(runtime, way):
    sent, told = [], []
    model = Scripted(script=(AIMessage(content="secret"),), called=lambda _, messages: sent.append(messages[0].text))
    before = deciding("prompt", Patch({"system_prompt": "be brief"}), told)
    behind = deciding("mask", Patch(AIMessage(content="***")), told)
    made = agent([], JournalMiddleware(request_hooks=[before], response_hooks=[behind]), model=model)
    output = await way(runtime.bind(made, name="agent"), "invoke", SAID, config())
    assert sent == ["be brief"]
    assert [message.text for message in told[1][4]] == ["secret"]
    assert told[1][5] == 1
    assert texts(output)[1:] == [("ai", "***")]


async def test_a_denied_response_is_replaced_and_the_call_was_made(runtime, way, outside):
    graph = runtime.bind(paying(outside, response_hooks=[deciding("guard", Deny("withheld"), [], on="tool")]), name="g")
    output = await way(graph, "invoke", SAID, config())
    assert tool_texts(output) == ["withheld"]
    assert outside.calls == ["a"]


async def test_stored_decisions_are_applied_again_when_the_task_runs_again_and_nobody_is_asked(
    runtime, way, outside, raw
):
    told = []
    before = [deciding("more", Patch({"what": "b"}), told, on="tool")]
    behind = [deciding("mask", Patch("masked"), told, on="tool")]
    pausing = Pausing("call-a")
    graph = runtime.bind(paying(outside, pausing, request_hooks=before, response_hooks=behind), name="agent")
    await way(graph, "invoke", SAID, config())
    output = await way(graph, "invoke", resume("yes"), config())
    assert pausing.seen[0] == pausing.seen[1]
    assert tool_texts(output) == ["masked"]
    assert [name for name, *_ in told] == ["more", "mask"]
    assert outside.calls == ["b"]
    assert [tuple(row.values()) for row in raw.rows(HOOKS)] == [
        ("hook:more", "request pay call-a#0", "succeeded", 1),
        ("hook:mask", "response pay call-a#0", "succeeded", 1),
    ]


async def test_a_hook_that_raises_stops_the_call_and_is_told(runtime, way, outside):
    def decide(_):
        message = "guard is down"
        raise ConnectionError(message)

    graph = runtime.bind(paying(outside, request_hooks=[Hook("guard", decide, on="tool")]), name="agent")
    with pytest.raises(ConnectionError):
        await way(graph, "invoke", SAID, config())
    assert outside.calls == []


async def test_hooks_may_be_async_in_async_agents_only(runtime, way, outside):
    async def decide(_):
        return Patch({"what": "b"})

    graph = runtime.bind(paying(outside, request_hooks=[Hook("late", decide, on="tool")]), name="agent")
    if way.asynchronous:
        await way(graph, "invoke", SAID, config())
        assert outside.calls == ["b"]
    else:
        with pytest.raises(InvalidInput):
            await way(graph, "invoke", SAID, config())
        assert outside.calls == []


@pytest.mark.parametrize(
    "options",
    [{"request_hooks": [Hook("a", print), Hook("a", print)]}, {"response_hooks": [Hook("b", print), Hook("b", print)]}],
)
def test_two_hooks_of_one_stage_have_two_names(options):
    with pytest.raises(InvalidInput):
        JournalMiddleware(**options)


def test_a_hook_needs_a_name():
    with pytest.raises(InvalidInput):
        Hook("", print)
