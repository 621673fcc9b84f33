"""Values to bytes and back, with errors that say which value it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime_persist.errors import CheckpointCorrupt, RuntimePersistError, UnsupportedValue, ValueTooLarge
from runtime_persist.model import limits
from runtime_persist.model.payload import Blob, PayloadRef
from runtime_persist.queries import checkpoints as checkpoint_queries

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.engine.core import Engine
    from runtime_persist.engine.flow import Flow


def dumped(
    serde: SerializerProtocol,
    value: Any,
    what: str,
    max_bytes: int,
    **details: Any,
) -> tuple[str, bytes]:
    """Return a value as its serializer writes it.

    Raises:
        UnsupportedValue: the serializer refused it; the error says what it was, and where in it.
        ValueTooLarge: it is larger than ``max_bytes``.

    """
    try:
        kind, data = serde.dumps_typed(value)
    except UnsupportedValue as error:
        found = error.details
        path, name = found.get("path", ""), found.get("type", type(value).__qualname__)
        msg = f"{what}{path} is a {name}, which cannot be stored: {found.get('reason', error.message)}"
        raise UnsupportedValue(msg, **{**found, **details}) from None
    except RuntimePersistError:
        raise
    except Exception as error:
        name = type(value).__qualname__
        msg = f"{what} ({name}) cannot be stored by {type(serde).__name__}: {type(error).__name__}"
        raise UnsupportedValue(msg, path="", type=name, reason=type(error).__name__, **details) from error
    if len(data) > max_bytes:
        msg = (
            f"{what} has {len(data):,} bytes, more than max_value_bytes={max_bytes:,}; store a reference to it, "
            "or open with a larger max_value_bytes"
        )
        raise ValueTooLarge(msg, size=len(data), max_bytes=max_bytes, **details)
    return kind, data


def loaded(serde: SerializerProtocol, kind: str, data: bytes, what: str, **details: Any) -> Any:
    """Return the value of stored bytes.

    Raises:
        UntrustedType, IncompatibleClass, UnknownFormat: the serializer refused it; the error says which value it was.
        CheckpointCorrupt: it is no value.

    """
    try:
        return serde.loads_typed((kind, data))
    except RuntimePersistError as error:
        raise type(error)(f"{what}: {error.message}", **{**error.details, **details}) from error.__cause__
    except Exception as error:
        msg = f"{what}: {type(serde).__name__} cannot load it ({type(error).__name__})"
        raise CheckpointCorrupt(msg, **details) from error


def encode(engine: Engine, serde: SerializerProtocol, value: Any) -> tuple[bytes, tuple[Blob, ...]]:
    """Return a value as an encoded payload reference, and the content it refers to."""
    writer = engine.content.writer(everything=True)
    kind, content = dumped(serde, value, "the value", engine.max_value_bytes)
    ref = writer.put(kind, content, limits.INLINE_ROW_BYTES_MAX)
    return ref.encoded(), tuple(writer.blobs())


def decode(engine: Engine, serde: SerializerProtocol, data: bytes, where: str) -> Flow[Any]:
    """Return the value of an encoded payload reference (raises CheckpointCorrupt)."""
    ref = PayloadRef.decoded(data)
    content = engine.content.reader()
    content.want([ref])
    if content.missing():
        yield engine.coordinator.read("read_content", lambda: checkpoint_queries.fill(engine.space, content))
    return loaded(serde, ref.type, content.content(ref, where), where)
