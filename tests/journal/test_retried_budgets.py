"""Budgets of runs that are made of others: a retry goes on with what was consumed, a fork or a new beginning not."""

from typing import Annotated, TypedDict

import pytest
from langgraph.graph import START, StateGraph

from runtime_persist import Budget, operation
from runtime_persist.errors import BudgetExhausted
from runtime_persist.testing.faults import check_invariants, read_rows
from runtime_persist.testing.live_invariants import look
from runtime_persist.worker import Worker
from tests.support.graphs import config


class State(TypedDict, total=False):
    said: Annotated[list[str], lambda old, new: old + new]


@pytest.fixture
def runtime(open_runtime):
    found = open_runtime()
    yield found
    assert check_invariants(read_rows(found.engine)) == []
    assert look(found.engine) == []


@pytest.fixture
def calls():
    return []


class Flaky:
    """An agent in a subgraph that calls its model twice, then fails as often as it is told to."""

    def __init__(self, calls) -> None:
        self.fails = 0

        @operation(name="model", ticket="loop", key=str)
        def model(number):
            calls.append(number)
            return f"said {number}"

        def think(_):
            said = [model(number) for number in range(2)]
            if self.fails:
                self.fails -= 1
                message = "no luck"
                raise ConnectionError(message)
            return {"said": [*said, model(2)]}

        inner = StateGraph(State).add_node("think", think).add_edge(START, "think").compile()
        outer = StateGraph(State).add_node("first", lambda _: {"said": ["first"]}).add_node("agent", inner)
        self.graph = outer.add_edge(START, "first").add_edge("first", "agent").compile()


def spent(runtime, run_id):
    return tuple(runtime.runs.get(run_id).budget["loops"])


def newest(runtime):
    return runtime.runs.list()[0]


async def test_a_retry_goes_on_with_what_was_consumed_and_the_limits_that_were_raised(runtime, way, calls):
    """Called again by who called it: what is stored is not asked for again, and takes nothing a second time."""
    flaky = Flaky(calls)
    flaky.fails = 2
    bound = runtime.bind(flaky.graph, name="g", budget=Budget(loops=2, per_invocation=Budget(loops=2)))
    for given in ({"said": []}, None):
        with pytest.raises(ConnectionError):
            await way(bound, "invoke", given, config())
        assert spent(runtime, newest(runtime).run_id) == (2, 0, 2)
    with pytest.raises(BudgetExhausted):
        await way(bound, "invoke", None, config())
    run = newest(runtime)
    assert (run.status, spent(runtime, run.run_id)) == ("waiting_approval", (2, 0, 2))
    assert run.retry_of_run_id is not None
    await way(runtime.runs, "raise_budget", run.run_id, Budget(loops=3))
    with pytest.raises(BudgetExhausted) as caught:
        await way(bound, "invoke", None, config())
    assert caught.value.details["invocation"].startswith("agent:")  # the invocation's went along too
    await way(runtime.runs, "raise_budget", run.run_id, Budget(per_invocation=Budget(loops=3)))
    output = await way(bound, "invoke", None, config())
    assert output["said"][-3:] == ["said 0", "said 1", "said 2"]
    assert calls == [0, 1, 2]


def test_a_persons_retry_has_the_limits_and_what_is_left_of_them_and_one_from_the_start_all_of_it(runtime, calls):
    flaky = Flaky(calls)
    graphs = {"g": flaky.graph}
    runtime.bind(flaky.graph, name="g")
    flaky.fails = 1
    first = runtime.runs.start("g", {"said": []}, thread_id="t", budget=Budget(loops=2))
    Worker(runtime, graphs).run(until_idle=True)
    assert (first.record().status, spent(runtime, first.run_id)) == ("failed", (2, 0, 2))
    again = runtime.runs.retry(first.run_id)
    assert spent(runtime, again.run_id) == (2, 0, 2)
    Worker(runtime, graphs).run(until_idle=True)
    assert again.record().status == "waiting_approval"
    assert calls == [0, 1]
    again.cancel()
    anew = runtime.runs.retry(again.run_id, from_start=True)
    assert spent(runtime, anew.run_id) == (2, 0, 0)


def test_a_fork_has_the_limits_and_a_ledger_of_its_own(runtime, calls):
    flaky = Flaky(calls)
    runtime.bind(flaky.graph, name="g")
    run = runtime.runs.start("g", {"said": []}, thread_id="t", budget=Budget(loops=3))
    Worker(runtime, {"g": flaky.graph}).run(until_idle=True)
    made = runtime.runs.fork(run.run_id, thread_id="fork")
    assert (spent(runtime, run.run_id), spent(runtime, made.run_id)) == ((3, 0, 3), (3, 0, 0))
