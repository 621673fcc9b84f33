"""Values as JSON can show them: objects as type and fields, secrets as stars, bytes by their number."""

from __future__ import annotations

import math
from collections import deque
from enum import Enum
from typing import Any, Final

from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Send
from pydantic import SecretBytes, SecretStr

from runtime_persist.adapters.workflow import RawObject
from runtime_persist.adapters.workflow.values.shapes import kind_of, shape_of

_STARS: Final = "**********"
_PLAIN: Final = frozenset({type(None), bool, int, float})
_INT_BITS: Final = 1_000
_SEQUENCES: Final = (list, tuple, set, frozenset, deque)


def plain(value: Any, *, secrets: bool = False) -> Any:
    """Return a value as JSON can show it; ``secrets``: SecretStr and SecretBytes in the clear."""
    if type(value) in _PLAIN:
        return value if _json_has(value) else _odd(value)
    if isinstance(value, (SecretStr, SecretBytes)):
        return plain(value.get_secret_value()) if secrets else _STARS
    if isinstance(value, str) and not isinstance(value, Enum):
        return _shown(value)
    if isinstance(value, (bytes, bytearray)):
        return f"<{len(value):,} bytes>"
    fields = _fields(value)
    if fields is not None:
        return {"type": fields[0], "fields": plain(fields[1], secrets=secrets)}
    return _container(value, secrets=secrets)


def _container(value: Any, *, secrets: bool) -> Any:
    if isinstance(value, dict):
        return {_key(key): plain(one, secrets=secrets) for key, one in value.items()}
    return [plain(one, secrets=secrets) for one in value]


def _json_has(value: Any) -> bool:
    return (
        value is None
        or (isinstance(value, int) and value.bit_length() <= _INT_BITS)
        or (isinstance(value, float) and math.isfinite(value))
    )


def _odd(value: float) -> str:
    """Return a number that JSON has no form for: one of many digits, not a number, an infinity."""
    return hex(value) if isinstance(value, int) else repr(value)


def _fields(value: Any) -> tuple[str, dict[str, Any]] | None:
    """Return the type and the fields an object is shown by, None if it is a plain dict or sequence."""
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, RawObject):
        return value.type, value.fields
    if isinstance(value, Send):
        return name, {"node": value.node, "arg": value.arg}
    if isinstance(value, _DeltaSnapshot):
        return name, {"value": value.value}
    if kind_of(kind) in ("model", "dataclass", "namedtuple"):
        fields = {key: getattr(value, key, None) for key in shape_of(kind).names}
        return name, {**fields, **(getattr(value, "__pydantic_extra__", None) or {})}
    if isinstance(value, (dict, *_SEQUENCES)):
        return None
    return name, {"value": str(value)}


def _key(key: Any) -> str:
    return _shown(key) if isinstance(key, str) else str(plain(key))


def _shown(text: str) -> str:
    """Return a text as it can be printed: half of an emoji as its number."""
    return str.__str__(text).encode("utf-8", "backslashreplace").decode()
