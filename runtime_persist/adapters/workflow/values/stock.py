"""What LangGraph's own serializer wrote (extension codes 0–7), under the same rules.

Where that serializer falls back to a bare dict, a text or None, this is an error.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_METHODS
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Send

from runtime_persist.adapters.workflow.values import build, codes
from runtime_persist.adapters.workflow.values.registry import BUILT_IN, Policy, full_name, untrusted, upgrade_of
from runtime_persist.adapters.workflow.values.shapes import kind_of, shape_of
from runtime_persist.errors import CheckpointCorrupt

CODES: Final = frozenset(range(8))
_KINDS: Final[dict[int, frozenset[str | None]]] = {
    codes.STOCK_SINGLE: frozenset({"enum"}),
    codes.STOCK_POSITIONAL: frozenset(),
    codes.STOCK_KEYWORDS: frozenset({"namedtuple", "dataclass"}),
    codes.STOCK_PYDANTIC_1: frozenset({"model1"}),
    codes.STOCK_PYDANTIC_2: frozenset({"model"}),
}
"""Which data classes each code may make; classes of the built-in list are also made as they were stored."""


def made(policy: Policy, code: int, said: Any) -> Any:
    """Return the value of an extension."""
    if code == codes.STOCK_DELTA:
        return _DeltaSnapshot(said)
    if code == codes.STOCK_NUMPY:
        return _array(*said)
    if not isinstance(said, list) or len(said) < 3 or not all(isinstance(name, str) for name in said[:2]):  # noqa: PLR2004
        raise CheckpointCorrupt("its bytes are no value: an object without a class")
    module, name, argument = said[:3]
    if code == codes.STOCK_METHOD:
        if (module, name, said[3] if len(said) > 3 else None) not in SAFE_MSGPACK_METHODS:  # noqa: PLR2004
            raise untrusted(module, name, "it was stored through a method, which is not called")
        return BUILT_IN[module, name].fromisoformat(argument)
    fields = argument if isinstance(argument, dict) else {"value": argument}
    try:
        cls = policy.find(module, full_name(module, name))
    except Exception:
        if upgrade_of(module, name) is None:
            raise
        return build.upgraded(None, module, name, fields)
    kind = kind_of(cls) if isinstance(cls, type) else None
    if kind in _KINDS[code]:
        return _data(policy, cls, kind, fields)
    if (module, name) not in BUILT_IN or code in (codes.STOCK_PYDANTIC_1, codes.STOCK_PYDANTIC_2):
        raise untrusted(module, name, "it was not stored as a data class")
    return _built_in(cls, module, name, code, argument)


def _data(policy: Policy, cls: Any, kind: str | None, fields: dict[str, Any]) -> Any:
    module, qualname = cls.__module__, cls.__qualname__
    if kind == "enum":
        try:
            member = cls(fields["value"])
        except Exception:  # noqa: BLE001 (the class's own code)
            return build.enum(policy, module, qualname, None, fields["value"])
        return member
    if kind in ("model", "namedtuple", "dataclass") and (module, qualname) not in BUILT_IN:
        shape = shape_of(cls)
        if fields.keys() == set(shape.names):
            return build.constructed(cls, module, qualname, fields, changed=False)
    return build.constructed(cls, module, qualname, fields)


def _built_in(cls: Any, module: str, name: str, code: int, argument: Any) -> Any:
    try:
        if cls is Send:
            return Send(argument[0], argument[1]) if len(argument) == 2 else Send(*argument[:2], timeout=argument[2])  # noqa: PLR2004
        if code == codes.STOCK_SINGLE:
            return cls([_hashable(one) for one in argument]) if cls in (set, frozenset) else cls(argument)
        return cls(*argument) if code == codes.STOCK_POSITIONAL else cls(**argument)
    except Exception as error:  # noqa: BLE001 (damaged, or forged)
        raise build.incompatible(module, name, type(error).__name__) from None


def _hashable(member: Any) -> Any:
    """Return a member of a set: what came back as a list was a tuple."""
    return tuple(_hashable(one) for one in member) if isinstance(member, list) else member


def _array(dtype: str, shape: list[int], order: str, content: bytes) -> Any:
    numpy: Any = sys.modules.get("numpy")
    if numpy is None:
        raise untrusted("numpy", "ndarray", "numpy is not imported in this process; import it first")
    return numpy.frombuffer(content, dtype=numpy.dtype(dtype)).reshape(shape, order=order)
