"""What a person, or the outside, says about an unknown call runs through its response hooks before it counts."""

import pytest
from langchain_core.messages import AIMessage

from runtime_persist import Happened
from runtime_persist.adapters.middleware import Deny, Hook, JournalMiddleware, Patch
from runtime_persist.errors import LeaseLost, OperationUnknown
from tests.middleware.agents import SAID, Scripted, agent, payer, texts, tool_texts, wants
from tests.support.graphs import config
from tests.support.journal import Losing
from tests.support.way import SYNC

by_sync = pytest.mark.parametrize("way", [SYNC], indirect=True, ids=["sync"])
"""Both ways are one implementation: the first test has them."""
ONE = (wants(("pay", {"what": "a"}, "call-a")), AIMessage(content="done"))
STORED = "SELECT status, phase, try_no FROM rp_operations WHERE name = ?"


@pytest.fixture
def outside(raw):
    return Losing(raw)


@pytest.fixture
def told():
    return []


def hooks(told, decisions, on="tool"):
    def deciding(name, decision):
        def decide(call):
            told.append((name, call.response.text if call.kind == "tool" else call.response[0].text))
            return decision

        return Hook(name, decide, on=on)

    return [deciding(f"hook{number}", decision) for number, decision in enumerate(decisions)]


async def lost(runtime, way, made):
    """Lose the run inside the call; return it bound."""
    graph = runtime.bind(made, name="agent")
    with pytest.raises(LeaseLost):
        await way(graph, "invoke", SAID, config())
    return graph


async def asked(way, graph):
    with pytest.raises(OperationUnknown) as caught:
        await way(graph, "invoke", None, config())
    return caught.value.details["operation_id"]


@pytest.mark.parametrize(
    ("decisions", "answer", "heard"),
    [
        pytest.param([None, Patch("masked")], "masked", [("hook0", "4111"), ("hook1", "4111")], id="patched"),
        pytest.param([Deny("withheld"), None], "withheld", [("hook0", "4111")], id="denied"),
    ],
)
async def test_what_a_person_says_a_tool_answered_runs_through_its_response_hooks(
    runtime, way, raw, outside, told, decisions, answer, heard
):
    made = agent(
        [payer(outside.call)],
        JournalMiddleware(tools={"pay": "ask"}, response_hooks=hooks(told, decisions)),
        model=Scripted(script=ONE),
    )
    graph = await lost(runtime, way, made)
    operation_id = await asked(way, graph)
    assert await way(runtime.runs, "resolve", operation_id, happened=True, result="4111") == "queued"
    assert raw.one(STORED, "pay") == {"status": "pending", "phase": "raw_saved", "try_no": 1}
    output = await way(graph, "invoke", None, config())
    assert tool_texts(output) == [answer]
    assert told == heard
    assert raw.one(STORED, "pay") == {"status": "succeeded", "phase": "completed", "try_no": 1}
    assert outside.calls == ["a"]


@by_sync
async def test_what_a_person_says_a_model_answered_does_too(runtime, way, raw, told):
    outside = Losing(raw)
    model = Scripted(script=(AIMessage(content="x"),), called=lambda number, _: outside.call(number, "-"))
    made = agent(
        [], JournalMiddleware(models="ask", response_hooks=hooks(told, [Patch(AIMessage("***"))], "model")), model=model
    )
    graph = await lost(runtime, way, made)
    await way(runtime.runs, "resolve", await asked(way, graph), happened=True, result="secret")
    output = await way(graph, "invoke", None, config())
    assert texts(output)[1:] == [("ai", "***")]
    assert told == [("hook0", "secret")]


@by_sync
async def test_it_did_not_happen_calls_again_and_asks_the_hooks_about_the_new_answer(runtime, way, outside, told):
    journal = JournalMiddleware(tools="ask", response_hooks=hooks(told, [None]))
    graph = await lost(runtime, way, agent([payer(outside.call)], journal, model=Scripted(script=ONE)))
    await way(runtime.runs, "resolve", await asked(way, graph), happened=False)
    output = await way(graph, "invoke", None, config())
    assert tool_texts(output) == ["paid a"]
    assert told == [("hook0", "paid a")]
    assert outside.calls == ["a", "a"]


@by_sync
async def test_what_the_outside_says_happened_runs_through_them(runtime, way, raw, outside, told):
    def ask(request, idempotency_key, tries):
        del request, idempotency_key, tries
        return Happened("found: 4111")

    journal = JournalMiddleware(tools={"pay": ask}, response_hooks=hooks(told, [Patch("masked")]))
    graph = await lost(runtime, way, agent([payer(outside.call)], journal, model=Scripted(script=ONE)))
    output = await way(graph, "invoke", None, config())
    assert tool_texts(output) == ["masked"]
    assert told == [("hook0", "found: 4111")]
    assert outside.calls == ["a"]
    assert raw.one(STORED, "pay") == {"status": "succeeded", "phase": "completed", "try_no": 1}


@by_sync
async def test_without_response_hooks_what_a_person_says_counts_at_once(runtime, way, raw, outside):
    graph = await lost(runtime, way, agent([payer(outside.call)], JournalMiddleware(), model=Scripted(script=ONE)))
    await way(runtime.runs, "resolve", await asked(way, graph), happened=True, result="by hand")
    assert raw.one(STORED, "pay") == {"status": "succeeded", "phase": "completed", "try_no": 1}
    assert tool_texts(await way(graph, "invoke", None, config())) == ["by hand"]
