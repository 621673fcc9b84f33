"""Values to bytes and back, with errors that say which value it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime_persist.errors import CheckpointCorrupt, RuntimePersistError, UnsupportedValue, ValueTooLarge

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol


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
