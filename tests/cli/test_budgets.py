"""A spent budget in the terminal: shown, explained, raised."""

import json
from decimal import Decimal

import pytest
from langgraph.graph import START, StateGraph

from runtime_persist import Budget, operation
from runtime_persist.cli.main import EXIT_CODES
from runtime_persist.errors import BudgetExhausted
from tests.support.graphs import State, chain, config


@operation(name="model", ticket="loop")
def model(number):
    return number


def test_a_run_that_has_spent_its_budget_shows_it_and_goes_on_when_it_is_raised(cli, runtime):
    graph = chain({"agent": lambda _: {"log": [str(model(number)) for number in range(2)]}})
    bound = runtime.bind(graph, name="agent", budget=Budget(loops=1))
    with pytest.raises(BudgetExhausted):
        bound.invoke({"log": []}, config("t"))
    run_id = runtime.runs.list(thread_id="t")[0].run_id
    shown = " ".join(cli("run", "show", run_id).stdout.split())
    assert "budget: loops 1 of 1 consumed, 0 reserved" in shown
    why = " ".join(cli("run", "why", run_id).stdout.split())
    assert "1 of 1 loops are consumed" in why
    assert f"run raise-budget {run_id}" in why
    lowered = cli("run", "raise-budget", run_id, "--loops", "0")
    assert (lowered.exit_code, lowered.stdout) == (EXIT_CODES["conflict"], "")
    assert cli("run", "raise-budget", run_id, "--cost", "much").exit_code == EXIT_CODES["invalid"]
    assert cli("run", "raise-budget", run_id, "--loops", "2").stdout == "queued\n"
    assert bound.invoke(None, config("t"))["log"] == ["0", "1"]


INNER = chain({"think": lambda _: {"log": [str(model(number)) for number in range(2)]}})


def test_the_ledger_shows_who_holds_what_others_wait_for_and_limits_of_invocations_are_raised(cli, runtime, tmp_path):
    held = []

    @operation(name="slow", ticket="loop")
    def slow():
        held.append(json.loads(cli("ticket", "list", run_id(), "--held", "--json").stdout))
        held.append(" ".join(cli("ticket", "list", run_id()).stdout.split()))

    def run_id():
        return runtime.runs.list(thread_id="t")[0].run_id

    graph = StateGraph(State).add_node("slow", lambda _: slow()).add_node("agent", INNER)
    graph.add_edge(START, "slow").add_edge("slow", "agent")
    budget = Budget(loops=5, cost=Decimal("0.5"), per_invocation=Budget(loops=1))
    bound = runtime.bind(graph.compile(), name="agent", budget=budget)
    with pytest.raises(BudgetExhausted):
        bound.invoke({"log": []}, config("t"))
    (ticket,) = held[0]["tickets"]
    assert (ticket["name"], ticket["state"], ticket["loops"], ticket["invocation"]) == ("slow", "reserved", 1, None)
    assert held[0]["levels"][0] == {"invocation": None, "kind": "loops", "limit": 5, "reserved": 1, "consumed": 0}
    assert "the run: 0 of 5 loops consumed, 1 reserved, 4 left" in held[1]
    assert "the run: 0 of 0.5 cost_micros consumed" in held[1]

    listed = json.loads(cli("ticket", "list", run_id(), "--json").stdout)
    (inner,) = [level for level in listed["levels"] if level["invocation"] is not None]
    assert (inner["kind"], inner["limit"], inner["reserved"], inner["consumed"]) == ("loops", 1, 0, 1)
    assert [(one["name"], one["state"]) for one in listed["tickets"]] == [("model", "consumed"), ("slow", "consumed")]
    assert json.loads(cli("ticket", "list", run_id(), "--held", "--json").stdout)["tickets"] == []
    assert cli("ticket", "list", "nothing").exit_code == EXIT_CODES["invalid"]

    why = " ".join(cli("run", "why", run_id()).stdout.split())
    assert f"1 of 1 loops are consumed, 0 reserved in {inner['invocation']} (raise --per-invocation)" in why
    bundle = str(tmp_path / "run.bundle")
    assert cli("bundle", "export", run_id(), bundle).exit_code == 0
    for asked in ((), ("--held",)):
        assert json.loads(cli("ticket", "list", run_id(), "--bundle", bundle, "--json", *asked).stdout) == json.loads(
            cli("ticket", "list", run_id(), "--json", *asked).stdout
        )
    for columns in (60, 250):
        narrow = cli("ticket", "list", run_id(), columns=columns).stdout
        assert listed["tickets"][0]["operation_id"] in narrow
    assert cli("run", "raise-budget", run_id(), "--loops", "2", "--per-invocation").stdout == "queued\n"
    assert bound.invoke(None, config("t"))["log"] == ["0", "1"]
