"""What the saver does with the options about values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.serde.base import SerializerProtocol, maybe_add_typed_methods
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from runtime_persist.adapters.workflow.values.schemas import types_of
from runtime_persist.adapters.workflow.values.sealed import RequireCipher
from runtime_persist.adapters.workflow.values.serializer import ValueSerializer
from runtime_persist.errors import InvalidInput
from runtime_persist.model.ids import is_name

if TYPE_CHECKING:
    from collections.abc import Collection

_ERROR = "__error__"
_INPUT = "__start__"


def serializer_for(serde: SerializerProtocol | None, strict: str = "imported") -> SerializerProtocol:
    """Return the strict serializer, or the user's own (an encrypting one refuses rows that are not encrypted).

    Raises:
        InvalidInput: ``strict`` is no choice, or is given for a user's own serializer.

    """
    if serde is None:
        return ValueSerializer(strict=strict)
    if strict != "imported" and not isinstance(serde, ValueSerializer):
        msg = "strict= is for the default serializer; give a serde of your own its rules yourself"
        raise InvalidInput(msg)
    if isinstance(serde, EncryptedSerializer) and not isinstance(serde, RequireCipher):
        return RequireCipher(serde)
    return maybe_add_typed_methods(serde)


def allowing(serde: SerializerProtocol, classes: Collection[tuple[str, ...] | type]) -> SerializerProtocol:
    """Return a serializer that also makes these classes; the same one if it keeps no such list."""
    extend = getattr(serde, "with_msgpack_allowlist", None)
    if extend is None:
        return serde
    found: SerializerProtocol = extend(classes)
    return found


def for_graph(serde: SerializerProtocol, graph: Any) -> SerializerProtocol:
    """Return a serializer for a bound graph: it makes the classes its schemas name."""
    classes = types_of(graph)
    return serde.for_graph(classes) if isinstance(serde, ValueSerializer) else allowing(serde, classes)


def metadata_names(keys: Collection[str] | None) -> frozenset[str] | None:
    """Return the names ``metadata_keys`` holds.

    Raises:
        InvalidInput: it is no list of names.

    """
    if keys is None:
        return None
    if isinstance(keys, str) or not all(is_name(key) for key in keys):
        msg = f"metadata_keys must be a list of names, not {keys!r}"
        raise InvalidInput(msg)
    return frozenset(keys)


def serializer_of(serde: SerializerProtocol, channel: str) -> SerializerProtocol:
    """Return the serializer for a channel: LangGraph's input channel has a rule of its own."""
    return serde.for_input() if channel == _INPUT and isinstance(serde, ValueSerializer) else serde


def error_text(serde: SerializerProtocol, channel: str, value: Any) -> Any:
    """Return the text of the exception of a failed task (LangGraph's own channel); other values as they are."""
    if channel == _ERROR and isinstance(value, BaseException) and isinstance(serde, ValueSerializer):
        try:
            return repr(value)
        except Exception:  # noqa: BLE001 (the exception's own code)
            return f"{type(value).__qualname__}()"
    return value
