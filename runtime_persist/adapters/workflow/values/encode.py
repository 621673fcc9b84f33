"""Values to bytes. Plain data is packed in one go; only what is not plain comes through Python, object by object."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any, Final

import orjson
import ormsgpack
from ormsgpack import Ext, Fragment

from runtime_persist.adapters.workflow.values import codes
from runtime_persist.adapters.workflow.values.objects import HANDLERS, Refused, handler_of
from runtime_persist.adapters.workflow.values.paths import path_to
from runtime_persist.errors import UnsupportedValue

if TYPE_CHECKING:
    from runtime_persist.adapters.workflow.values.objects import Handler
    from runtime_persist.adapters.workflow.values.registry import Policy

_PLAIN: Final = (
    ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_UUID
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_BIG_INT
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
)
_ANY_KEY: Final = _PLAIN | ormsgpack.OPT_NON_STR_KEYS
_LOOK: Final = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
_BIN_8, _BIN_16, _BIN_32 = b"\xc4", b"\xc5", b"\xc6"
"""How byte strings begin (and what other content may hold too)."""
_VIEWS: Final = frozenset({bytearray, memoryview})
_CONTAINERS: Final = frozenset({list, dict})
_KEYS: Final = frozenset({str, bool, float, bytes, type(None)})
_INT_BITS: Final = 63


class Encoder:
    """Packs one value.

    Attributes:
        policy: what may be stored.
        inputs: whether objects of classes that nobody could find again are kept as their fields (a graph's input,
            which its schema makes an object of again).
        own: whether codes of this package were used.

    """

    own = False
    _depth = 0
    _refused: Refused | None = None

    def __init__(self, policy: Policy, *, inputs: bool = False) -> None:
        """Allow what ``policy`` allows."""
        self.policy = policy
        self.inputs = inputs
        self._handlers: dict[type, Handler] = {}  # of the classes met so far: a list holds many objects of few

    def encode(self, value: Any) -> bytes:
        """Return a value as bytes.

        Raises:
            UnsupportedValue: something in it cannot be stored.

        """
        refused: Refused
        try:
            return self.pack(value)
        except Refused as error:
            refused = error
        except RecursionError:
            refused = Refused(value, "its objects are nested too deep, or hold themselves")
        kind = type(refused.culprit)
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        path = path_to(value, refused.culprit)
        where = f"the value{f' at {path}' if path else ''}"
        msg = f"{where} is a {name}, which cannot be stored: {refused.reason}"
        raise UnsupportedValue(msg, path=path, type=name, reason=refused.reason)

    def pack(self, value: Any) -> bytes:
        """Return the bytes of a value inside the one being encoded."""
        try:
            data: bytes = ormsgpack.packb(value, default=self._default, option=_PLAIN)
        except TypeError as error:
            self._check(value, error)
            return self._odd(value)
        if _BIN_8 in data or _BIN_16 in data or _BIN_32 in data:
            return self._without_views(value, data)
        return data

    def nested(self, code: int, value: Any) -> Ext:
        """Return a value as an extension: an object inside another."""
        self._depth += 1
        if self._depth > codes.DEPTH_MAX:
            raise Refused(self, f"objects are nested deeper than {codes.DEPTH_MAX}, or hold themselves")
        try:  # what pack does, in line: each object of a value comes along here
            data = ormsgpack.packb(value, default=self._default, option=_PLAIN)
            if _BIN_8 in data or _BIN_16 in data or _BIN_32 in data:
                data = self._without_views(value, data)
        except TypeError as error:
            self._check(value, error)
            data = self._odd(value)
        self._depth -= 1
        if code > codes.STOCK_DELTA:
            self.own = True
        return Ext(code, data)

    def _odd(self, value: Any) -> bytes:
        """Return the bytes of a value that is not packed in one go: it has keys or texts that msgpack does not know."""
        data = None
        if type(value) is dict and all(map(_native_key, value)) and self._only_keys(value):
            data = self._packed(value, _ANY_KEY)
        if data is None:
            data = self._packed(self._replaced(value), _ANY_KEY)
            if data is None:
                raise Refused(value, "it holds something of no known form")
            return data
        return self._without_views(value, data)

    def _without_views(self, value: Any, data: bytes) -> bytes:
        """Return a value's bytes; those of byte arrays and views in it are not what msgpack makes of them."""
        return (self._packed(self._replaced(value), _ANY_KEY) or b"") if _has_views(value) else data

    def raw(self, code: int, data: bytes) -> Ext:
        """Return bytes as an extension."""
        self.own = True
        return Ext(code, data)

    def _only_keys(self, value: dict[Any, Any]) -> bool:
        """Return whether nothing but the (native) keys of this dict kept it from being packed in one go."""
        return self._packed(list(value.values()), _PLAIN) is not None

    def _packed(self, value: Any, option: int) -> bytes | None:
        """Return the bytes, None when the value has keys or texts that msgpack does not know."""
        try:
            return ormsgpack.packb(value, default=self._default, option=option)
        except TypeError as error:
            self._check(value, error)
            return None

    def _check(self, value: Any, error: TypeError) -> None:
        if self._refused is not None:  # ormsgpack hides what the hook raised
            raise self._refused from None
        if "Recursion" in str(error):
            raise Refused(value, "it is nested too deep, or holds itself") from None

    def _default(self, found: Any) -> Any:
        try:
            kind = type(found)
            handler = self._handlers.get(kind)
            if handler is None:
                handler = HANDLERS.get(kind) or handler_of(self.policy, kind, found, inputs=self.inputs)
                self._handlers[kind] = handler
            return handler(self, found)
        except Refused as error:
            if error.culprit is self:
                error.culprit = found
            self._refused = error
            raise
        except RecursionError:
            self._refused = Refused(found, "its objects are nested too deep, or hold themselves")
            raise
        except Exception as error:
            self._refused = Refused(found, f"{type(error).__name__} while it was read")
            raise

    def _replaced(self, value: Any) -> Any:
        """Return plain data with extensions for what msgpack has no form for: keys, cut texts, byte arrays."""
        kind = type(value)
        if kind is list:
            return [self._part(item) for item in value]
        if kind is dict:
            if all(_native_key(key) for key in value):
                return {key: self._part(item) for key, item in value.items()}
            flat = [part for pair in value.items() for part in pair]
            return self.nested(codes.MAPPING, ["dict", None, flat])
        if kind is str and not _whole(value):
            return self.raw(codes.TEXT, value.encode("utf-8", "surrogatepass"))
        if kind is bytearray:
            return self.raw(codes.BYTEARRAY, bytes(value))
        if kind is memoryview:
            raise Refused(value, "store bytes(view)")
        return value

    def _part(self, value: Any) -> Any:
        """Return an item of plain data: one without anything odd in it is packed in one go, as a whole value is."""
        return Fragment(self.pack(value)) if type(value) in _CONTAINERS else self._replaced(value)


def _native_key(key: Any) -> bool:
    kind = type(key)
    if kind is str:
        return _whole(key)
    if kind is int:
        return bool(key.bit_length() <= _INT_BITS)
    return kind in _KEYS


def _whole(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _has_views(value: Any) -> bool:
    """Return whether plain data holds a byte array or memory view (msgpack would make bytes of it)."""
    found = False

    def look(other: Any) -> None:
        nonlocal found
        found = found or type(other) in _VIEWS

    try:
        orjson.dumps(value, default=look, option=_LOOK)  # the fastest way over plain data
    except TypeError:
        return _has_views_anywhere(value)
    return found


def _has_views_anywhere(value: Any) -> bool:
    level = [value]
    while level:
        if not _VIEWS.isdisjoint(map(type, level)):
            return True
        containers = [item for item in level if type(item) in _CONTAINERS]
        level = gc.get_referents(*containers) if containers else []
    return False
