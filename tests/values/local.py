"""A graph whose state has a class that is made inside a function."""

import dataclasses
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph


def made(**options: Any) -> Any:
    @dataclasses.dataclass
    class Thing:
        a: int

    class State(TypedDict, total=False):
        thing: Thing

    builder = StateGraph(State)
    builder.add_node("only", lambda _: {"thing": Thing(1)})
    builder.add_edge(START, "only")
    return builder.compile(**options)
