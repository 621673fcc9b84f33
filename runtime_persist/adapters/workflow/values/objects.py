"""How each kind of object becomes an extension. One function a kind; the encoder packs what they return."""

from __future__ import annotations

import datetime as dt
import decimal
import ipaddress
import pathlib
import re
import sys
import uuid
import weakref
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol
from zoneinfo import ZoneInfo

import pydantic_core
from langchain_core.messages.base import TextAccessor
from langchain_core.runnables.utils import AddableDict
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.store.base import Item
from langgraph.types import Send
from pydantic import SecretBytes, SecretStr

from runtime_persist.adapters.workflow.values import codes
from runtime_persist.adapters.workflow.values.registry import is_local, registered
from runtime_persist.adapters.workflow.values.shapes import kind_of, shape_of

if TYPE_CHECKING:
    from enum import Enum

    from ormsgpack import Ext

    from runtime_persist.adapters.workflow.values.registry import Policy

FACTORIES: Final[dict[str, Any]] = {
    kind.__name__: kind for kind in (list, dict, set, frozenset, tuple, int, float, complex, bool, str, bytes)
}
MAPPINGS: Final[dict[str, type[dict[Any, Any]]]] = {
    "OrderedDict": OrderedDict,
    "defaultdict": defaultdict,
    "Counter": Counter,
    "AddableDict": AddableDict,
}
_SIMPLE: Final = (str, int, float, bool, type(None))


class Refused(Exception):
    """A value cannot be stored."""

    def __init__(self, culprit: Any, reason: str) -> None:
        """Say which object, and why."""
        super().__init__(reason)
        self.culprit = culprit
        self.reason = reason


class Packs(Protocol):
    """What a handler needs of the encoder."""

    policy: Policy

    def nested(self, code: int, value: Any) -> Ext:
        """Return a value as an extension."""

    def raw(self, code: int, data: bytes) -> Ext:
        """Return bytes as an extension."""


Handler = Callable[[Packs, Any], Any]


def _stock(code: int, argument: Callable[[Any], Any]) -> Handler:
    """Return a handler that writes what LangGraph's serializer writes."""

    def handle(to: Packs, found: Any) -> Ext:
        cls = type(found)
        return to.nested(code, [cls.__module__, cls.__name__, argument(found)])

    return handle


def _datetime(to: Packs, found: dt.datetime) -> Ext:
    if found.fold == 0 and (found.tzinfo is None or found.tzinfo is dt.UTC):
        return to.nested(codes.STOCK_METHOD, ["datetime", "datetime", found.isoformat(), "fromisoformat"])
    return to.nested(codes.DATETIME, [found.replace(tzinfo=None).isoformat(), found.fold, _zone(found)])


def _time(to: Packs, found: dt.time) -> Ext:
    return to.nested(codes.TIME, [found.replace(tzinfo=None).isoformat(), found.fold, _zone(found)])


def _zone(found: dt.datetime | dt.time) -> Any:
    zone = found.tzinfo
    if zone is None or type(zone) in HANDLERS or registered(type(zone)) is not None:
        return zone
    name = f"{type(zone).__module__}.{type(zone).__qualname__}"
    raise Refused(found, f"its time zone is a {name}; use zoneinfo.ZoneInfo or datetime.timezone")


def _zone_info(to: Packs, found: ZoneInfo) -> Ext:
    if found.key is None:
        raise Refused(found, "the zone has no key")
    return to.nested(codes.STOCK_SINGLE, ["zoneinfo", "ZoneInfo", found.key])


def _timezone(to: Packs, found: dt.timezone) -> Ext:
    arguments = list(found.__getinitargs__())  # type: ignore[attr-defined]
    return to.nested(codes.STOCK_POSITIONAL, ["datetime", "timezone", arguments])


def _pattern(to: Packs, found: re.Pattern[Any]) -> Ext:
    return to.nested(codes.STOCK_POSITIONAL, ["re", "compile", [found.pattern, found.flags]])


def _set(to: Packs, found: Any) -> Ext:
    members = list(found)
    if {type(member) for member in members} in ({str}, {int}):
        members.sort()  # the same bytes in every process
    return to.nested(codes.SET if type(found) is set else codes.FROZENSET, members)


def _mapping(to: Packs, found: dict[Any, Any]) -> Ext:
    factory = None
    if isinstance(found, defaultdict) and found.default_factory is not None:
        factory = getattr(found.default_factory, "__name__", "")
        if FACTORIES.get(factory) is not found.default_factory:
            raise Refused(found, "its default_factory is not a built-in type; store dict(value)")
    flat = [part for pair in found.items() for part in pair]
    return to.nested(codes.MAPPING, [type(found).__name__, factory, flat])


def _basic(arguments: Callable[[Any], list[Any]]) -> Handler:
    def handle(to: Packs, found: Any) -> Ext:
        return to.nested(codes.BASIC, [type(found).__name__, *arguments(found)])

    return handle


def _send(to: Packs, found: Send) -> Ext:
    arguments = [found.node, found.arg]
    if (timeout := getattr(found, "timeout", None)) is not None:
        arguments.append(timeout)
    return to.nested(codes.STOCK_POSITIONAL, ["langgraph.types", "Send", arguments])


def _item(to: Packs, found: Item) -> Ext:
    fields = {name: getattr(found, name) for name in Item.__slots__}
    return to.nested(codes.STOCK_KEYWORDS, [Item.__module__, "Item", fields])


def _big(to: Packs, found: int) -> Ext:
    return to.raw(codes.BIG_INT, found.to_bytes(found.bit_length() // 8 + 1, "little", signed=True))


_TEXT_OF: Final = (
    uuid.UUID, decimal.Decimal, ipaddress.IPv4Address, ipaddress.IPv4Interface, ipaddress.IPv4Network,
    ipaddress.IPv6Address, ipaddress.IPv6Interface, ipaddress.IPv6Network,
)  # fmt: skip

HANDLERS: Final[dict[type, Handler]] = {
    tuple: lambda to, found: to.nested(codes.TUPLE, list(found)),
    int: _big,
    set: _set,
    frozenset: _set,
    deque: lambda to, found: to.nested(codes.DEQUE, [found.maxlen, list(found)]),
    bytearray: lambda to, found: to.raw(codes.BYTEARRAY, bytes(found)),
    dt.datetime: _datetime,
    dt.time: _time,
    dt.date: _stock(codes.STOCK_POSITIONAL, lambda found: [found.year, found.month, found.day]),
    dt.timedelta: _stock(codes.STOCK_POSITIONAL, lambda found: [found.days, found.seconds, found.microseconds]),
    dt.timezone: _timezone,
    ZoneInfo: _zone_info,
    pydantic_core.TzInfo: _basic(lambda found: [int(found.utcoffset(None).total_seconds())]),
    re.Pattern: _pattern,
    type(pathlib.Path()): _stock(codes.STOCK_POSITIONAL, lambda found: list(found.parts)),
    pathlib.PurePosixPath: _basic(lambda found: list(found.parts)),
    pathlib.PureWindowsPath: _basic(lambda found: list(found.parts)),
    complex: _basic(lambda found: [found.real, found.imag]),
    Fraction: _basic(lambda found: [found.numerator, found.denominator]),
    range: _basic(lambda found: [found.start, found.stop, found.step]),
    TextAccessor: _basic(lambda found: [str.__str__(found)]),
    SecretStr: _stock(codes.STOCK_SINGLE, lambda found: found.get_secret_value()),
    SecretBytes: _stock(codes.STOCK_SINGLE, lambda found: found.get_secret_value()),
    Send: _send,
    Item: _item,
    _DeltaSnapshot: lambda to, found: to.nested(codes.STOCK_DELTA, found.value),
    **dict.fromkeys(MAPPINGS.values(), _mapping),
    **dict.fromkeys(
        _TEXT_OF, _stock(codes.STOCK_SINGLE, lambda found: found.hex if type(found) is uuid.UUID else str(found))
    ),
}


def handler_of(policy: Policy, cls: type, found: Any, *, inputs: bool = False) -> Handler:
    """Return how an object of any other class is stored.

    Raises:
        Refused: in no way that gives an equal one back.

    """
    known = registered(cls)
    if known is not None and known.dump is not None:
        return _registered
    kind = kind_of(cls)
    if kind is not None:
        if inputs and is_local(cls) and kind in ("model", "dataclass") and not policy.knows(cls):
            return _fields
        if not policy.storable(cls):
            raise Refused(found, _unreachable(policy, cls))
        return _model_of(cls) if kind == "model" else _KINDS[kind]
    numpy = sys.modules.get("numpy")
    if numpy is not None and (cls is numpy.ndarray or issubclass(cls, numpy.generic)):
        return _numpy
    if issubclass(cls, BaseException):
        raise Refused(found, "store its type and text, or register_type(…, dump=…, load=…)")
    if issubclass(cls, (str, int, float, bytes, dict, list, tuple, set, frozenset, deque, dt.date)):
        raise Refused(found, "it would come back as its base type; store the base type, or register_type(…)")
    raise Refused(found, "store what it is made of, or register_type(…, dump=…, load=…)")


def _unreachable(policy: Policy, cls: type) -> str:
    if "<locals>" in cls.__qualname__ or not cls.__qualname__.replace(".", "").isidentifier():
        return "its class is made inside a function or at run time, so no other process could find it; register_type(…)"
    if policy.strict == "registered":
        return "its class is not registered; register_type(…)"
    return "its module has no such class; register_type(…)"


def _registered(to: Packs, found: Any) -> Ext:
    cls = type(found)
    known = registered(cls)
    if known is None or known.dump is None:  # pragma: no cover (asked before)
        raise Refused(found, "it is not registered")
    return to.nested(codes.REGISTERED, [cls.__module__, cls.__qualname__, known.dump(found)])


def _enum(to: Packs, found: Enum) -> Ext:
    cls = type(found)
    said: list[Any] = [cls.__module__, cls.__qualname__, found.name]
    if type(found.value) in _SIMPLE:
        said.append(found.value)
    elif cls.__members__.get(found.name or "") is not found:
        raise Refused(found, "it has neither a name nor a plain value")
    return to.nested(codes.ENUM, said)


def _namedtuple(to: Packs, found: Any) -> Ext:
    cls = type(found)
    if getattr(found, "__dict__", None):
        raise Refused(found, "it has attributes beside its fields; register_type(…, dump=…, load=…)")
    shape = shape_of(cls)
    fields = dict(zip(shape.names, tuple.__iter__(found), strict=True))
    return to.nested(codes.NAMEDTUPLE, [cls.__module__, cls.__qualname__, shape.token, fields])


def _dataclass(to: Packs, found: Any) -> Ext:
    cls = type(found)
    shape = shape_of(cls)
    fields = {name: getattr(found, name) for name in shape.names}
    attributes: dict[str, Any] = getattr(found, "__dict__", None) or {}
    more = any(name not in fields and not name.startswith("__") for name in attributes)
    if more and not shape.ordinary:
        raise Refused(found, "it has attributes beside its fields and an InitVar; register_type(…, dump=…, load=…)")
    return to.nested(codes.DATACLASS, [cls.__module__, cls.__qualname__, shape.token, fields, more])


_models: weakref.WeakKeyDictionary[type, Handler] = weakref.WeakKeyDictionary()


def _model_of(cls: type) -> Handler:
    """Return how objects of a model are stored: messages are the most frequent objects there are."""
    known = _models.get(cls)
    if known is not None:
        return known
    module, name, shape = cls.__module__, cls.__qualname__, shape_of(cls)
    names, token, masks = shape.names, shape.token, shape.masks

    def model(to: Packs, found: Any) -> Ext:
        values = found.__dict__
        fields = values if tuple(values) == names else {name: values[name] for name in names if name in values}
        given = found.__pydantic_fields_set__
        mask = masks.get(frozenset(given))
        if mask is None:
            mask = shape.mask(given)
        return to.nested(codes.MODEL, [module, name, token, fields, mask, found.__pydantic_extra__])

    _models[cls] = model
    return model


def _fields(_: Packs, found: Any) -> Any:
    """Return what LangGraph takes for an update from an input object."""
    given = getattr(found, "__pydantic_fields_set__", ())
    described = getattr(type(found), "__pydantic_fields__", {})
    values = {name: getattr(found, name) for name in shape_of(type(found)).names if hasattr(found, name)}
    none = {name for name, one in described.items() if one.default is None and name not in given}
    kept = {name: value for name, value in values.items() if value is not None or name not in none}
    return {**kept, **(getattr(found, "__pydantic_extra__", None) or {})}


def _model1(to: Packs, found: Any) -> Ext:
    cls = type(found)
    return to.nested(codes.STOCK_PYDANTIC_1, [cls.__module__, cls.__qualname__, found.dict()])


def _numpy(to: Packs, found: Any) -> Ext:
    import numpy as np

    array = found if isinstance(found, np.ndarray) else np.asarray(found)
    if array.dtype.hasobject:
        raise Refused(found, "it holds Python objects; store found.tolist()")
    described = np.lib.format.dtype_to_descr(array.dtype)
    if np.lib.format.descr_to_dtype(described) != array.dtype:
        raise Refused(found, "its dtype cannot be described")
    order: Literal["C", "F"] = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    scalar = not isinstance(found, np.ndarray)
    return to.nested(codes.NUMPY, [described, list(array.shape), order, array.tobytes(order), scalar])


_KINDS: Final[dict[str, Handler]] = {
    "enum": _enum,
    "model1": _model1,
    "namedtuple": _namedtuple,
    "dataclass": _dataclass,
}
