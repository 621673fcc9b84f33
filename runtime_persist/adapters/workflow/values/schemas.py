"""The classes a graph's schemas name: they are allowed for the values of that graph."""

from __future__ import annotations

import typing
from typing import Any

from runtime_persist.adapters.workflow.values.shapes import kind_of

_DEPTH_MAX = 50


def types_of(graph: Any) -> set[type]:
    """Return the data classes that a compiled graph's schemas and channels name, those inside them included."""
    found: set[type] = set()
    roots: list[Any] = list(getattr(getattr(graph, "builder", None), "schemas", ()))
    for channel in getattr(graph, "channels", {}).values():
        roots += [getattr(channel, "ValueType", None), getattr(channel, "UpdateType", None)]
    seen: set[int] = set()
    for root in roots:
        _collect(root, found, seen, 0)
    return found


def _collect(hint: Any, found: set[type], seen: set[int], depth: int) -> None:
    if hint is None or id(hint) in seen or depth > _DEPTH_MAX:
        return
    seen.add(id(hint))
    for inner in (*typing.get_args(hint), getattr(hint, "__supertype__", None), typing.get_origin(hint)):
        _collect(inner, found, seen, depth + 1)
    if not isinstance(hint, type):
        return
    if kind_of(hint) is not None:
        found.add(hint)
    elif not typing.is_typeddict(hint) and not hasattr(hint, "__total__"):
        return
    for inner in _hints(hint):
        _collect(inner, found, seen, depth + 1)


def _hints(cls: type) -> list[Any]:
    try:
        return list(typing.get_type_hints(cls).values())
    except Exception:  # noqa: BLE001 (names that only the type checker can see)
        return [one for one in getattr(cls, "__annotations__", {}).values() if not isinstance(one, str)]
