"""Errors raised inside nodes and tools.

They derive from LangGraph's ``GraphBubbleUp`` beside their own class, so that tool-error handling and retry
middleware cannot turn a lost lease into a tool message (contract §0.3).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from langgraph.errors import GraphBubbleUp

if TYPE_CHECKING:
    from runtime_persist.errors import RuntimePersistError


@cache
def _bubbling(kind: type[RuntimePersistError]) -> type[RuntimePersistError]:
    return type(
        kind.__name__,
        (kind, GraphBubbleUp),
        {"__doc__": kind.__doc__, "__module__": kind.__module__},
    )


def bubbling(error: RuntimePersistError) -> RuntimePersistError:
    """Return the same error in a class that passes through nodes and tools; ``except`` its own class still works."""
    if isinstance(error, GraphBubbleUp):
        return error
    kind: Any = type(error)
    raised: Any = _bubbling(kind)(error.message, **error.details)
    raised.__cause__ = error.__cause__
    result: RuntimePersistError = raised
    return result
