"""The raw view: what is stored, without the classes it was made of. For values whose class is gone or has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from runtime_persist.adapters.workflow.values import codes, stock
from runtime_persist.adapters.workflow.values.decode import Decoder
from runtime_persist.adapters.workflow.values.registry import BUILT_IN
from runtime_persist.adapters.workflow.values.sealed import RequireCipher
from runtime_persist.adapters.workflow.values.serializer import ValueSerializer, json_value
from runtime_persist.errors import CheckpointCorrupt, RuntimePersistError, UnsupportedValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langgraph.checkpoint.serde.base import SerializerProtocol

_KINDS: Final = {
    codes.STOCK_SINGLE: "object",
    codes.STOCK_POSITIONAL: "object",
    codes.STOCK_KEYWORDS: "object",
    codes.STOCK_METHOD: "object",
    codes.STOCK_PYDANTIC_1: "model",
    codes.STOCK_PYDANTIC_2: "model",
    codes.ENUM: "enum",
    codes.DATACLASS: "dataclass",
    codes.MODEL: "model",
    codes.NAMEDTUPLE: "namedtuple",
    codes.REGISTERED: "registered",
}
"""The extensions that name a class, and what such an object was."""
_ARRAY_PARTS: Final = ("dtype", "shape", "order", "content")


class RawObject:
    """An object as it is stored. It cannot be stored again.

    Attributes:
        type: the full name of its class.
        kind: ``model``, ``dataclass``, ``namedtuple``, ``enum``, ``registered`` (by ``register_type``), ``array``, or
            ``object`` (any other, of LangGraph's serializer).
        fields: its stored fields by name; ``{"name": …, "value": …}`` of an Enum; what else was stored is ``value``.

    """

    __slots__ = ("fields", "kind", "type")

    def __init__(self, type: str, kind: str, fields: dict[str, Any]) -> None:  # noqa: A002 (as in error details)
        """Hold what was stored."""
        self.type = type
        self.kind = kind
        self.fields = fields

    def __repr__(self) -> str:
        return f"RawObject({self.type!r}, {self.fields!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RawObject):
            return NotImplemented
        return (self.type, self.kind, self.fields) == (other.type, other.kind, other.fields)

    def __hash__(self) -> int:
        return hash(self.type)  # fields may hold anything; a raw Enum still has to be a key of a dict


class RawSerializer(ValueSerializer):
    """Loads values without their classes: plain data and built-in types as they are, anything else as RawObject.

    Whether a class is here does not matter, nothing is imported, and no code of a class runs. It is for reading:
    ``from_conn_string(url, serde=RawSerializer())``, of an encrypted database ``EncryptedSerializer(cipher,
    RawSerializer())``. Storing is refused (UnsupportedValue).
    """

    def __init__(self) -> None:
        """Take no options: there is nothing to allow."""
        super().__init__()

    def with_msgpack_allowlist(self, extra_allowlist: Iterable[tuple[str, ...] | type]) -> RawSerializer:  # noqa: ARG002
        """Return this serializer: it makes no classes."""
        return self

    def for_graph(self, classes: Iterable[type]) -> RawSerializer:  # noqa: ARG002
        """Return this serializer: it makes no classes."""
        return self

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Refuse.

        Raises:
            UnsupportedValue: always.

        """
        msg = "a saver with a RawSerializer is for reading only; open another one to store values"
        raise UnsupportedValue(msg, path="", type=type(obj).__qualname__, reason=msg)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the value of type tag and bytes, this package's or LangGraph's.

        Raises:
            UntrustedType: it is a pickle.
            CheckpointCorrupt, UnknownFormat: the bytes are no value.

        """
        kind, content = data
        if kind in (codes.TYPE_TAG, "msgpack"):
            return _RawDecoder(self._policy).decode(content)
        if kind == "json":
            return json_value(content, _constructor)
        return super().loads_typed(data)


def raw_view(serde: SerializerProtocol) -> SerializerProtocol:
    """Return what loads without classes what a serializer stores; one that is not this package's as it is."""
    if isinstance(serde, EncryptedSerializer) and isinstance(serde.serde, JsonPlusSerializer):
        return RequireCipher(EncryptedSerializer(serde.cipher, RawSerializer()))
    return RawSerializer() if isinstance(serde, JsonPlusSerializer) else serde


class _RawDecoder(Decoder):
    """Unpacks one value without its classes."""

    def made(self, code: int, data: bytes) -> Any:
        if code in (codes.NUMPY, codes.STOCK_NUMPY):
            return self._array(code, data)
        kind = _KINDS.get(code)
        if kind is None:
            return super().made(code, data)
        said = self.unpack(data)
        if not isinstance(said, list) or len(said) < 3 or not all(isinstance(name, str) for name in said[:2]):  # noqa: PLR2004
            raise CheckpointCorrupt("its bytes are no value: an object without a class")
        if (said[0], said[1]) in BUILT_IN:
            try:
                return stock.made(self.policy, code, said) if code in stock.CODES else super().made(code, data)
            except RuntimePersistError:
                self.forget_error()
        return RawObject(f"{said[0]}.{said[1]}", kind, _fields(code, said[2:]))

    def _array(self, code: int, data: bytes) -> Any:
        try:
            return super().made(code, data)
        except RuntimePersistError:  # numpy is not imported here
            self.forget_error()
        return RawObject("numpy.ndarray", "array", dict(zip(_ARRAY_PARTS, self.unpack(data), strict=False)))


def _fields(code: int, said: list[Any]) -> dict[str, Any]:
    """Return the stored fields of an object of what stands behind its class."""
    if code == codes.ENUM:
        return dict(zip(("name", "value"), said, strict=False))
    if code == codes.MODEL and len(said) > 3:  # noqa: PLR2004 (token, fields, mask, extra)
        return {**_named(said[1]), **_named(said[3] or {})}
    if code in (codes.DATACLASS, codes.NAMEDTUPLE, codes.MODEL) and len(said) > 1:
        return _named(said[1])
    return _named(said[0])


def _named(found: Any) -> dict[str, Any]:
    return found if isinstance(found, dict) else {"value": found}


def _constructor(found: dict[str, Any]) -> Any:
    """Return what a JSON object stands for; a LangChain constructor record is not called."""
    if "lc" in found and "type" in found and isinstance(names := found.get("id"), list):
        return RawObject(".".join(map(str, names)), "object", _named(found.get("kwargs", {})))
    return found
