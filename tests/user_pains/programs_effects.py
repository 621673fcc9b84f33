"""What the real processes of the rows about effects and budgets do (C1, D1)."""

from pathlib import Path
from typing import Any

from langgraph.errors import GraphRecursionError
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from runtime_persist import Budget, Runtime, operation
from runtime_persist.errors import BudgetExhausted
from tests.soak.programs import Outside
from tests.support.graphs import State, chain, config, resume
from tests.support.processes import Word

QUESTIONS = 3


def asks_in_a_loop(word: Word, url: str, path: str, answer: str | None) -> None:
    """C1: a node that does something outside before each of three questions; told how the call ended, and waits."""
    outside = Outside(Path(path))

    @operation(name="ask")
    def ask(number: int, *, idempotency_key: str) -> str:
        outside.append("asked", number, idempotency_key)
        return f"asked {number}"

    def loop(_: Any) -> Any:
        outside.append("entered")
        log: list[Any] = []
        for number in range(QUESTIONS):
            log += [ask(number), interrupt(number)]
        return {"log": log}

    with Runtime.open(url) as runtime:
        graph = runtime.bind(chain({"loop": loop}), name="g")
        output = graph.invoke({"log": []} if answer is None else resume(answer), config())
        word.say("stands", output["log"])
        word.wait()


STEPS, LOOPS = 5, 8
"""LangGraph's limit of one call's steps, and what the run may take in all."""


def loops_for_ever(word: Word, url: str, path: str, given: Any, dies_behind: int) -> str:
    """D1: a node that calls its model and goes to itself; told when it stands behind its n-th call, or how it ended."""
    outside = Outside(Path(path))

    @operation(name="model", ticket="loop")
    def model(number: int) -> str:
        outside.append("entered", number)
        return f"said {number}"

    def node(state: Any) -> Any:
        number = len(state["log"])
        said = model(number)
        if number + 1 == dies_behind:
            word.say("behind")
            word.wait()
        return {"log": [said]}

    graph = StateGraph(State).add_node("node", node).add_edge(START, "node").add_edge("node", "node").compile()
    with Runtime.open(url, lease_ttl=2.0) as runtime:
        bound = runtime.bind(graph, name="g", budget=Budget(loops=LOOPS))
        try:
            bound.invoke(given, {**config(), "recursion_limit": STEPS})
        except (BudgetExhausted, GraphRecursionError) as error:
            return type(error).__name__
    return "ended"
