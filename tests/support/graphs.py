"""The graphs of these suites. Nodes find what a test put into their way by name: :func:`at` and :data:`seen`."""

import operator
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt


class State(TypedDict, total=False):
    """A log that every node appends to, and a number that every node may add to."""

    log: Annotated[list[Any], operator.add]
    n: Annotated[int, operator.add]
    items: list[int]


Node = Callable[..., Any]


def chain(nodes: Mapping[str, Node], **options: Any) -> Any:
    """A graph of nodes one behind the other; ``options`` are those of ``compile``."""
    builder = StateGraph(State)
    last = START
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(last, name)
        last = name
    return builder.compile(**options)


def says(word: Any) -> Node:
    """A node that appends a word to the log."""
    return lambda _: {"log": [word]}


def asks(question: str) -> Node:
    """A node that asks a person, and logs the answer."""
    return lambda _: {"log": [interrupt(question)]}


def fails(error: BaseException) -> Node:
    """A node that raises."""

    def node(_: Any) -> Any:
        raise error

    return node


def fanned(work: Node, join: Node | None = None, **options: Any) -> Any:
    """A graph that sends each of ``items`` to a task of its own, then joins."""
    builder = StateGraph(State)
    builder.add_node("work", work)
    builder.add_node("join", join or says("joined"))
    builder.add_conditional_edges(START, lambda state: [Send("work", {"item": item}) for item in state["items"]])
    builder.add_edge("work", "join")
    builder.add_edge("join", END)
    return builder.compile(**options)


def nested(inner: Any, **options: Any) -> Any:
    """A graph whose middle node is another graph."""
    return chain({"before": says("before"), "inner": inner, "after": says("after")}, **options)


def config(thread_id: Any = "t", **configurable: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread_id, **configurable}}


def resume(answer: Any) -> Command[Any]:
    return Command(resume=answer)
