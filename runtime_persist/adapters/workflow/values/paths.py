"""Where in a value an object is: for error messages, only after something was refused."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Send

from runtime_persist.adapters.workflow.values.shapes import kind_of, shape_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_STEPS_MAX = 200_000
_KEY_CHARS_MAX = 60


def path_to(root: Any, target: Any) -> str:
    """Return the path of ``target`` in ``root`` (``[3].artifact``), empty if it is the root or is not found."""
    waiting: deque[tuple[Any, str]] = deque([(root, "")])
    seen: set[int] = set()
    while waiting and len(seen) < _STEPS_MAX:
        found, path = waiting.popleft()
        if found is target:
            return path
        if id(found) in seen:
            continue
        seen.add(id(found))
        waiting.extend((child, path + step) for child, step in _children(found))
    return ""


def _children(found: Any) -> Iterator[tuple[Any, str]]:
    if isinstance(found, dict):
        yield from _of_dict(found)
    elif isinstance(found, (set, frozenset)):
        yield from ((member, "{…}") for member in found)
    elif isinstance(found, (tuple, list, deque)):
        names = getattr(found, "_fields", None)
        for index, value in enumerate(found):
            yield value, f".{names[index]}" if names else f"[{index}]"
    elif isinstance(found, Send):
        yield found.arg, ".arg"
    elif isinstance(found, _DeltaSnapshot):
        yield found.value, ".value"
    elif kind_of(type(found)) in ("model", "dataclass"):
        yield from _of_fields(found)


def _of_dict(found: dict[Any, Any]) -> Iterator[tuple[Any, str]]:
    for key, value in found.items():
        shown = _shown(key)
        yield value, f"[{shown}]"
        if type(key) is not str:
            yield key, f"[key {shown}]"


def _of_fields(found: Any) -> Iterator[tuple[Any, str]]:
    values = getattr(found, "__dict__", None) or {}
    for name in shape_of(type(found)).names:
        yield values.get(name, getattr(found, name, None)), f".{name}"
    for name, value in (getattr(found, "__pydantic_extra__", None) or {}).items():
        yield value, f".{name}"


def _shown(key: Any) -> str:
    """Return a key as shown: plain ones only, and not all of a long one."""
    if type(key) in (str, int, bool, float):
        text = repr(key)
        return text if len(text) <= _KEY_CHARS_MAX else text[:_KEY_CHARS_MAX] + "…"
    return f"<{type(key).__qualname__}>"
