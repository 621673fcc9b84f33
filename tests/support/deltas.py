"""Graphs whose state has a DeltaChannel beside a plain one that is written the same: both must always be equal."""

import operator
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from langgraph.channels.delta import DeltaChannel
from langgraph.graph import START, StateGraph


def extended(held: list[Any], writes: Sequence[list[Any]]) -> list[Any]:
    """The reducer of the delta channels: lists, one behind the other."""
    return [*held, *(item for write in writes for item in write)]


class Both(TypedDict, total=False):
    """The same list as a DeltaChannel (stored whole at every third update) and as a plain channel."""

    delta: Annotated[list[Any], DeltaChannel(extended, snapshot_frequency=3)]
    plain: Annotated[list[Any], operator.add]


class Seldom(TypedDict, total=False):
    """The same with a DeltaChannel that is hardly ever stored whole."""

    delta: Annotated[list[Any], DeltaChannel(extended)]
    plain: Annotated[list[Any], operator.add]


def both(*items: Any) -> dict[str, list[Any]]:
    """The same update of both channels."""
    return {"delta": list(items), "plain": list(items)}


def echoes(state: Any) -> dict[str, list[Any]]:
    """A node that appends how many items it found, to both channels."""
    return both(f"after {len(state['plain'])}")


def delta_chain(schema: Any = Both, /, *nodes: Any, **options: Any) -> Any:
    """A graph of nodes one behind the other (default: two that count); ``options`` are those of ``compile``."""
    builder = StateGraph(schema)
    last = START
    for n, node in enumerate(nodes or (echoes, echoes)):
        builder.add_node(f"n{n}", node)
        builder.add_edge(last, f"n{n}")
        last = f"n{n}"
    return builder.compile(**options)
