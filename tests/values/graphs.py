"""A graph that keeps whatever one of its nodes returns."""

from collections.abc import Callable
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict, total=False):
    before: int
    value: Any


def keeps(make: Callable[[], Any], **options: Any) -> Any:
    """Two nodes: the first writes a number, the second what ``make`` returns."""
    builder = StateGraph(State)
    builder.add_node("first", lambda _: {"before": 1})
    builder.add_node("second", lambda _: {"value": make()})
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    return builder.compile(**options)


def at(thread_id: str, **more: Any) -> Any:
    return {"configurable": {"thread_id": thread_id, **more}}
