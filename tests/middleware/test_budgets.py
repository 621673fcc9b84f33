"""An agent's calls take of its run's budget: a model call a loop and its tokens, a tool call one."""

import pytest
from langchain_core.messages import AIMessage

from runtime_persist import Budget
from runtime_persist.adapters.middleware import Hook, JournalMiddleware, Patch
from runtime_persist.errors import BudgetExhausted
from tests.middleware.agents import SAID, Pausing, Scripted, agent, payer, texts
from tests.support.graphs import config, resume
from tests.support.journal import Outside

CONSUMED = "SELECT loops_consumed, tool_calls_consumed, tokens_consumed FROM rp_runs"


def consumed(raw):
    return tuple(raw.one(CONSUMED).values())


@pytest.fixture
def asked():
    return []


@pytest.fixture
def model(asked):
    return Scripted(called=lambda number, _: asked.append(number))


async def test_a_spent_budget_asks_no_model_and_a_raised_one_goes_on_from_there(runtime, way, model, asked, raw):
    outside = Outside()
    made = agent([payer(outside.call)], JournalMiddleware(), model=model)
    graph = runtime.bind(made, name="agent", budget=Budget(loops=1, tool_calls=9, tokens=100))
    with pytest.raises(BudgetExhausted):
        await way(graph, "invoke", SAID, config())
    assert asked == [0]
    assert consumed(raw) == (1, 2, 9)
    (run,) = await way(runtime.runs, "list")
    assert run.status == "waiting_approval"
    await way(runtime.runs, "raise_budget", run.run_id, Budget(loops=2))
    output = await way(graph, "invoke", None, config())
    assert texts(output)[-1] == ("ai", "both are paid")
    assert asked == [0, 1]
    assert sorted(outside.calls) == ["a", "b"]
    assert consumed(raw)[:2] == (2, 2)


async def test_no_tool_is_called_beyond_the_budget(runtime, way, model, raw):
    outside = Outside()
    graph = runtime.bind(
        agent([payer(outside.call)], JournalMiddleware(), model=model), name="agent", budget=Budget(tool_calls=1)
    )
    with pytest.raises(BudgetExhausted):
        await way(graph, "invoke", SAID, config())
    assert len(outside.calls) == 1
    assert consumed(raw)[1] == 1


async def test_a_replayed_call_takes_nothing_and_hooks_do_not_hide_what_was_used(runtime, way, asked, raw):
    script = (AIMessage(content="secret", usage_metadata={"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}),)
    model = Scripted(script=script, called=lambda number, _: asked.append(number))
    mask = Hook("mask", lambda _: Patch(AIMessage(content="***")))
    made = agent([], Pausing("model"), JournalMiddleware(response_hooks=[mask]), model=model)
    graph = runtime.bind(made, name="agent", budget=Budget(loops=1, tokens=100))
    await way(graph, "invoke", SAID, config())
    output = await way(graph, "invoke", resume("yes"), config())
    assert texts(output)[-1] == ("ai", "***")
    assert asked == [0]
    assert consumed(raw) == (1, 0, 9)
