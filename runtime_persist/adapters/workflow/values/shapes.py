"""The shape of data classes: their fields, and a token that changes when the fields do."""

from __future__ import annotations

import dataclasses
import hashlib
import sys
import weakref
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from pydantic import BaseModel

_kinds: weakref.WeakKeyDictionary[type, str] = weakref.WeakKeyDictionary()
_shapes: weakref.WeakKeyDictionary[type, Shape] = weakref.WeakKeyDictionary()
_DATA: Final = (str, bytes, bytearray, int, float, complex, dict, list, tuple, set, frozenset, BaseException, type)
_MASKS_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class Shape:
    """Fields of a data class.

    Attributes:
        names: the fields, in their order.
        token: changes when a field is added, removed, moved or annotated otherwise.
        later: dataclass fields that the constructor does not take.
        ordinary: nothing but the fields makes up a value (dataclass: no argument beside the fields is needed).
        masks: masks made before.

    """

    names: tuple[str, ...]
    token: str
    later: frozenset[str] = frozenset()
    ordinary: bool = True
    masks: dict[frozenset[str], int] = field(default_factory=dict)

    def mask(self, given: set[str]) -> int:
        """Return which fields are in ``given``, one bit a field."""
        key = frozenset(given)
        mask = self.masks.get(key)
        if mask is None:
            mask = sum(1 << place for place, name in enumerate(self.names) if name in key)
            if len(self.masks) < _MASKS_MAX:
                self.masks[key] = mask
        return mask


def kind_of(cls: type) -> str | None:
    """Return ``enum``, ``model``, ``model1``, ``namedtuple``, ``dataclass``, or None for any other class."""
    kind = _kinds.get(cls)
    if kind is None:
        kind = _kinds[cls] = _kind(cls)
    return kind or None


def _kind(cls: type) -> str:
    kind = ""
    if issubclass(cls, Enum):
        kind = "enum"
    elif issubclass(cls, tuple) and hasattr(cls, "_fields") and hasattr(cls, "_asdict"):
        kind = "namedtuple"
    elif issubclass(cls, _DATA):
        kind = ""
    elif issubclass(cls, BaseModel):
        kind = "model"
    elif dataclasses.is_dataclass(cls):
        kind = "dataclass"
    else:
        old = sys.modules.get("pydantic.v1")
        kind = "model1" if old is not None and issubclass(cls, old.BaseModel) else ""
    return kind


def shape_of(cls: type) -> Shape:
    """Return the shape of a model, dataclass or named tuple."""
    shape = _shapes.get(cls)
    if shape is None:
        shape = _shapes[cls] = _shape(cls)
    return shape


def _shape(cls: Any) -> Shape:
    kind = kind_of(cls)
    if kind == "model":
        fields = [(name, repr(one.annotation)) for name, one in cls.__pydantic_fields__.items()]
        return Shape(tuple(name for name, _ in fields), _token(fields))
    if kind == "namedtuple":
        notes = getattr(cls, "__annotations__", {})
        fields = [(name, repr(notes.get(name))) for name in cls._fields]
        return Shape(tuple(cls._fields), _token(fields))
    found = dataclasses.fields(cls)
    only_init = [
        name
        for name, one in cls.__dataclass_fields__.items()
        if one._field_type is dataclasses._FIELD_INITVAR  # type: ignore[attr-defined]  # noqa: SLF001
    ]
    return Shape(
        tuple(one.name for one in found),
        _token([(one.name, repr(one.type)) for one in found]),
        frozenset(one.name for one in found if not one.init),
        not only_init,
    )


def _token(fields: list[tuple[str, str]]) -> str:
    return hashlib.blake2b(repr(fields).encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()
