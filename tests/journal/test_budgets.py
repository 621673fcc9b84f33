"""Budgets: nothing starts beyond one, whoever calls, dies, comes back or waits."""

import asyncio
import threading
from decimal import Decimal
from typing import Annotated, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt

from runtime_persist import Budget, Ticket, Usage, operation
from runtime_persist.errors import (
    BudgetExhausted,
    IllegalTransition,
    InvalidInput,
    InvariantBroken,
    QuestionNotFound,
)
from runtime_persist.testing.faults import check_invariants, read_rows
from runtime_persist.testing.live_invariants import look


class State(TypedDict, total=False):
    said: Annotated[list[str], lambda old, new: old + new]
    asks: int


@pytest.fixture
def runtime(open_runtime):
    found = open_runtime()
    yield found
    assert check_invariants(read_rows(found.engine)) == []
    assert look(found.engine) == []


def spent(runtime, run_id, kind="loops"):
    return tuple(runtime.runs.get(run_id).budget[kind])


def last(runtime, thread_id="t"):
    return runtime.runs.list(thread_id=thread_id)[0]


CONFIG = {"configurable": {"thread_id": "t"}}


def agent(calls, *, asynchronous=False, ticket="loop"):
    """A node that calls its model as often as the input says."""

    @operation(name="model", ticket=ticket, on_unknown="retry")
    def model(number):
        calls.append(number)
        return {"text": f"answer {number}", "tokens": 40}

    @operation(name="model", ticket=ticket, on_unknown="retry")
    async def amodel(number):
        calls.append(number)
        return {"text": f"answer {number}", "tokens": 40}

    def node(state):
        return {"said": [model(number)["text"] for number in range(state["asks"])]}

    async def anode(state):
        return {"said": [(await amodel(number))["text"] for number in range(state["asks"])]}

    return StateGraph(State).add_node("node", anode if asynchronous else node).add_edge(START, "node").compile()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_spent_budget_asks_and_raising_it_goes_on_from_there(runtime, asynchronous):
    calls = []
    bound = runtime.bind(agent(calls, asynchronous=asynchronous), name="agent", budget=Budget(loops=2))

    def invoke(given):
        return asyncio.run(bound.ainvoke(given, CONFIG)) if asynchronous else bound.invoke(given, CONFIG)

    with pytest.raises(BudgetExhausted):
        invoke({"asks": 3})
    run = last(runtime)
    assert (run.status, spent(runtime, run.run_id)) == ("waiting_approval", (2, 0, 2))
    (question,) = runtime.runs.questions(run.run_id)
    assert question.kind == "budget"
    assert dict(question.budget) == {"budget": "loops", "limit": 2, "reserved": 0, "consumed": 2}
    assert runtime.runs.raise_budget(run.run_id, Budget(loops=3)) == "queued"
    assert invoke(None)["said"] == ["answer 0", "answer 1", "answer 2"]
    assert calls == [0, 1, 2]
    assert last(runtime).run_id == run.run_id
    assert spent(runtime, run.run_id) == (3, 0, 3)


def test_invoking_again_never_resets_a_limit(runtime):
    calls = []
    bound = runtime.bind(agent(calls), name="agent", budget=Budget(loops=1))
    run_ids = set()
    for given in ({"asks": 2}, None, None):
        with pytest.raises(BudgetExhausted):
            bound.invoke(given, CONFIG)
        run_ids.add(last(runtime).run_id)
    assert (calls, len(run_ids)) == ([0], 1)


def test_a_question_about_a_budget_is_not_answered_with_a_value(runtime):
    bound = runtime.bind(agent([]), name="agent", budget=Budget(loops=0))
    with pytest.raises(BudgetExhausted):
        bound.invoke({"asks": 1}, CONFIG)
    with pytest.raises(QuestionNotFound, match="raise_budget"):
        runtime.runs.resume(last(runtime).run_id, "more")
    with pytest.raises(IllegalTransition):
        runtime.runs.raise_budget(last(runtime).run_id, Budget(tokens=5))


def test_a_config_names_the_budget_of_its_run_and_without_one_nothing_is_counted(runtime):
    bound = runtime.bind(agent([]), name="agent")
    with pytest.raises(BudgetExhausted):
        bound.invoke({"asks": 2}, {"configurable": {"thread_id": "t", "budget": Budget(loops=1)}})
    other = {"configurable": {"thread_id": "other"}}
    bound.invoke({"asks": 2}, other)
    assert last(runtime, "other").budget == {}
    assert read_rows(runtime.engine, "other")["tickets"] == []
    with pytest.raises(InvalidInput):
        bound.invoke({"asks": 2}, {"configurable": {"thread_id": "third", "budget": 5}})


def test_tokens_and_cost_count_as_the_provider_reports_them_exactly(runtime):
    def usage(value):
        return Usage(tokens=value["tokens"], cost=Decimal("0.1"))

    ticket = Ticket("loop", tokens=50, cost=Decimal("0.1"), usage=usage)
    budget = Budget(tokens=100, cost=Decimal("0.3"))
    bound = runtime.bind(agent([], ticket=ticket), name="agent", budget=budget)
    with pytest.raises(BudgetExhausted) as caught:
        bound.invoke({"asks": 3}, CONFIG)
    assert caught.value.details["budget"] == "tokens"  # 80 of 100 are consumed, and 50 may be needed
    run_id = last(runtime).run_id
    assert spent(runtime, run_id, "tokens") == (100, 0, 80)
    assert spent(runtime, run_id, "cost_micros") == (300_000, 0, 200_000)


def test_a_failed_call_counts_and_an_interrupted_one_gives_its_ticket_back(runtime):
    @operation(name="model", ticket="loop")
    def model(fails):
        if fails:
            msg = "no"
            raise ValueError(msg)
        return interrupt("may I?")

    def node(state):
        if state["asks"] == 0:
            with pytest.raises(ValueError, match="no"):
                model(True)
        return {"said": [model(False)]}

    graph = StateGraph(State).add_node("node", node).add_edge(START, "node").compile()
    bound = runtime.bind(graph, name="agent", budget=Budget(loops=2))
    bound.invoke({"asks": 0}, CONFIG)
    run_id = last(runtime).run_id
    assert spent(runtime, run_id) == (2, 0, 1)
    runtime.runs.resume(run_id, "yes")


@pytest.mark.parametrize("more", [0, 1])
def test_of_two_calls_at_the_last_ticket_one_waits_and_is_ended_only_when_that_is_consumed(runtime, more):
    """With ``more`` the budget is raised while the second call waits: it goes on without asking."""
    first_is_in, may_return = threading.Event(), threading.Event()
    calls = []

    @operation(name="model", ticket="loop", key=str)
    def model(number):
        calls.append(number)
        first_is_in.set()
        assert may_return.wait(30)
        return "done"

    def fan(state):
        return [Send("one", {"asks": number}) for number in range(2)]

    graph = StateGraph(State)
    graph.add_node("one", lambda state: {"said": [model(state["asks"])]})
    graph.add_conditional_edges(START, fan)
    bound = runtime.bind(graph.compile(), name="agent", budget=Budget(loops=1))
    outcome = []

    def call():
        try:
            outcome.append(bound.invoke({"asks": 2}, CONFIG)["said"])
        except BudgetExhausted as error:
            outcome.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    assert first_is_in.wait(30)
    run_id = last(runtime).run_id
    assert spent(runtime, run_id) == (1, 1, 0)
    if more:
        runtime.runs.raise_budget(run_id, Budget(loops=2))
    else:
        assert last(runtime).status == "running"
    may_return.set()
    thread.join(30)
    if more:
        assert outcome == [["done", "done"]]
        assert spent(runtime, run_id) == (2, 0, 2)
    else:
        assert isinstance(outcome[0], BudgetExhausted)
        assert (len(calls), last(runtime).status, spent(runtime, run_id)) == (1, "waiting_approval", (1, 0, 1))


def test_counters_that_differ_from_the_ledger_stop_the_run_and_are_not_repaired(runtime, raw):
    bound = runtime.bind(agent([]), name="agent", budget=Budget(loops=1))
    with pytest.raises(BudgetExhausted):
        bound.invoke({"asks": 2}, CONFIG)
    raw.rows("UPDATE rp_runs SET loops_consumed = 0")
    with pytest.raises(InvariantBroken):
        bound.invoke(None, CONFIG)
    assert raw.value("SELECT loops_consumed FROM rp_runs") == 0
    raw.rows("UPDATE rp_runs SET loops_consumed = 1")


@pytest.mark.parametrize("made", [{"loops": -1}, {"tokens": 1.5}, {"cost": 0.1}, {"cost": Decimal("1e-7")}])
def test_a_limit_that_is_none_is_refused(made):
    with pytest.raises(InvalidInput):
        Budget(**made)
