"""Limits of an invocation, that is of each call of a graph inside a run, beside the run's own."""

import threading
from typing import Annotated, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt

from runtime_persist import Budget, operation
from runtime_persist.errors import (
    AlreadyAnswered,
    BudgetExhausted,
    IdempotencyMismatch,
    IllegalTransition,
    InvalidInput,
    OperationMismatch,
    QuestionNotFound,
)
from runtime_persist.testing.faults import check_invariants, read_rows
from runtime_persist.testing.live_invariants import look
from runtime_persist.worker import Worker
from tests.support.graphs import config, resume


class State(TypedDict, total=False):
    said: Annotated[list[str], lambda old, new: old + new]
    asks: int


@pytest.fixture
def runtime(open_runtime):
    found = open_runtime()
    yield found
    assert check_invariants(read_rows(found.engine)) == []
    assert look(found.engine) == []


@pytest.fixture
def calls():
    return []


def agent(calls, name):
    """An agent that calls its model as often as the state says."""

    @operation(name="model", ticket="loop", on_unknown="retry")
    def model(number):
        calls.append(f"{name}{number}")
        return f"{name}{number}"

    def node(state):
        return {"said": [model(number) for number in range(state["asks"])]}

    return StateGraph(State).add_node("think", node).add_edge(START, "think").compile()


def two_agents(calls):
    """A graph whose nodes are agents, one behind the other."""
    graph = StateGraph(State).add_node("one", agent(calls, "a")).add_node("two", agent(calls, "b"))
    return graph.add_edge(START, "one").add_edge("one", "two").compile()


def spent(runtime, run_id, kind="loops"):
    return tuple(runtime.runs.get(run_id).budget[kind])


async def test_each_agent_has_the_limit_and_raising_it_goes_on_from_there(runtime, way, calls, raw):
    bound = runtime.bind(two_agents(calls), name="g", budget=Budget(loops=9, per_invocation=Budget(loops=2)))
    with pytest.raises(BudgetExhausted) as caught:
        await way(bound, "invoke", {"asks": 3}, config())
    assert calls == ["a0", "a1"]
    assert caught.value.details["invocation"].startswith("one:")
    (run,) = await way(runtime.runs, "list")
    (question,) = await way(runtime.runs, "questions", run.run_id)
    invocation = caught.value.details["invocation"]
    told = {"budget": "loops", "limit": 2, "reserved": 0, "consumed": 2, "invocation": invocation}
    assert dict(question.budget) == told
    assert await way(runtime.runs, "resume", run.run_id, Budget(per_invocation=Budget(loops=3))) == "queued"
    output = await way(bound, "invoke", None, config())
    assert output["said"][-3:] == ["b0", "b1", "b2"]
    assert calls == ["a0", "a1", "a2", "b0", "b1", "b2"]
    assert spent(runtime, run.run_id) == (9, 0, 6)
    assert sorted(row["n"] for row in raw.rows("SELECT count(*) AS n FROM rp_tickets GROUP BY invocation")) == [3, 3]


def test_calls_in_nodes_of_the_runs_own_graph_are_limited_by_the_run_alone(runtime, calls):
    bound = runtime.bind(agent(calls, "a"), name="g", budget=Budget(loops=3, per_invocation=Budget(loops=0)))
    with pytest.raises(BudgetExhausted) as caught:
        bound.invoke({"asks": 4}, config())
    assert "invocation" not in caught.value.details
    assert calls == ["a0", "a1", "a2"]


def test_a_limit_of_invocations_needs_none_of_the_run_and_holds_over_workers_and_resumes(runtime, calls):
    graphs = {"g": two_agents(calls)}
    runtime.bind(graphs["g"], name="g")
    run = runtime.runs.start("g", {"asks": 2}, budget=Budget(per_invocation=Budget(loops=1)))
    for limit, made in ((2, ["a0"]), (None, ["a0", "a1", "b0", "b1"])):
        Worker(runtime, graphs).run(until_idle=True)
        assert calls == made
        if limit is not None:
            assert run.record().status == "waiting_approval"
            run.resume(Budget(per_invocation=Budget(loops=limit)))
    assert run.result(timeout=0)["said"][-2:] == ["b0", "b1"]


def test_agents_that_a_node_calls_are_invocations_of_their_own_and_a_repeated_node_counts_once(runtime, calls):
    inner = agent(calls, "a")

    def node(state):
        first = inner.invoke({"asks": 2})["said"]
        second = inner.invoke({"asks": 2})["said"]
        return {"said": [*first, *second, interrupt("fine?")]}

    graph = StateGraph(State).add_node("calls", node).add_edge(START, "calls").compile()
    bound = runtime.bind(graph, name="g", budget=Budget(per_invocation=Budget(loops=2)))
    bound.invoke({"asks": 0}, config())
    assert bound.invoke(resume("yes"), config())["said"] == ["a0", "a1", "a0", "a1", "yes"]
    assert len(calls) == 4


def test_of_two_calls_at_an_invocations_last_ticket_one_waits_and_gets_what_the_other_gave_back(runtime):
    first_is_in, may_go = threading.Event(), threading.Event()
    made = []

    @operation(name="model", ticket="loop", key=str)
    def model(number):
        made.append(number)
        if not first_is_in.is_set():
            first_is_in.set()
            assert may_go.wait(60)
            return interrupt("may I?")
        return f"done {number}"

    def fan(state):
        return [Send("one", {"asks": number}) for number in range(2)]

    inner = StateGraph(State).add_node("one", lambda state: {"said": [model(state["asks"])]})
    inner.add_conditional_edges(START, fan)
    outer = StateGraph(State).add_node("agent", inner.compile()).add_edge(START, "agent").compile()
    bound = runtime.bind(outer, name="g", budget=Budget(per_invocation=Budget(loops=1)))
    thread = threading.Thread(target=bound.invoke, args=({"asks": 2}, config()))
    thread.start()
    assert first_is_in.wait(60)
    may_go.set()
    thread.join(60)
    assert len(made) == 2  # the second one came when the interrupted one had given its ticket back
    (run,) = runtime.runs.list()
    assert run.status == "waiting_approval"
    runtime.runs.cancel(run.run_id)


def test_another_request_under_the_identity_of_a_call_is_refused_before_anything_is_reserved(runtime, raw):
    told = ["first"]

    @operation(name="model", ticket="loop")
    def model(text):
        return text

    inner = StateGraph(State).add_node("think", lambda _: {"said": [model(told[-1]), interrupt("on?")]})
    outer = StateGraph(State).add_node("agent", inner.add_edge(START, "think").compile()).add_edge(START, "agent")
    bound = runtime.bind(outer.compile(), name="g", budget=Budget(per_invocation=Budget(loops=5)))
    bound.invoke({"asks": 1}, config())
    told.append("second")
    with pytest.raises(OperationMismatch, match="first"):
        bound.invoke(resume("yes"), config())
    assert raw.value("SELECT count(*) FROM rp_tickets") == 1


@pytest.mark.parametrize("made", [{"per_invocation": 5}, {"per_invocation": Budget(per_invocation=Budget(loops=1))}])
def test_limits_of_invocations_that_are_none_are_refused(made):
    with pytest.raises(InvalidInput):
        Budget(**made)


# --- raising and going on in one call -------------------------------------------------------------------------------


async def test_resume_with_a_budget_raises_it_and_goes_on_and_is_one_answer_however_often_it_arrives(
    runtime, way, calls
):
    graphs = {"g": agent(calls, "a")}
    runtime.bind(graphs["g"], name="g")
    run = await way(runtime.runs, "start", "g", {"asks": 3}, budget=Budget(loops=1))
    Worker(runtime, graphs).run(until_idle=True)
    (question,) = await way(runtime.runs, "questions", run.run_id)
    said = {"question_id": question.question_id, "idempotency_key": "k", "by": "Ada"}
    for _ in range(2):
        assert await way(runtime.runs, "resume", run.run_id, Budget(loops=2), **said) == "queued"
    Worker(runtime, graphs).run(until_idle=True)
    assert await way(runtime.runs, "resume", run.run_id, Budget(loops=2), **said) == "queued"
    assert spent(runtime, run.run_id) == (2, 0, 2)  # what was delivered again answered nothing that came later
    assert run.record().status == "waiting_approval"
    with pytest.raises(IdempotencyMismatch):
        await way(runtime.runs, "resume", run.run_id, Budget(loops=3), **said)
    await way(runtime.runs, "resume", run.run_id, Budget(loops=3))
    Worker(runtime, graphs).run(until_idle=True)
    assert (await way(run, "result", timeout=0))["said"] == ["a0", "a1", "a2"]
    raised = [event for event in runtime.runs.events(run.run_id) if event.type == "run.budget_raised"]
    assert raised[0].actor_id == "Ada"


def test_a_budget_answers_only_a_run_that_asks_for_one(runtime):
    graph = StateGraph(State).add_node("ask", lambda _: {"said": [interrupt("?")]}).add_edge(START, "ask").compile()
    bound = runtime.bind(graph, name="g", budget=Budget(loops=1))
    bound.invoke({"asks": 0}, config())
    (run,) = runtime.runs.list()
    with pytest.raises(QuestionNotFound, match="raise_budget"):
        runtime.runs.resume(run.run_id, Budget(loops=2))
    runtime.runs.resume(run.run_id, "yes")
    with pytest.raises((AlreadyAnswered, IllegalTransition)):
        runtime.runs.resume(run.run_id, Budget(loops=2))
    assert spent(runtime, run.run_id)[0] == 1
