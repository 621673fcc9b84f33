"""Payload references: type, size and either the bytes or their address."""

from __future__ import annotations

from dataclasses import dataclass

import ormsgpack

from runtime_persist.errors import UnknownFormat

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Blob:
    """Content ready to be stored: its address, its size in bytes, and its packed form."""

    address: bytes
    size: int
    content: bytes


@dataclass(frozen=True, slots=True)
class PayloadRef:
    """A value as the serializer wrote it: ``type`` is the serializer's tag, the bytes are inline or at ``address``.

    Attributes:
        type: the serializer's type tag (``msgpack``, ``bytes``, ``null`` …).
        size: bytes of the serialized value.
        inline: the bytes, when small.
        address: the address in the content store otherwise.

    """

    type: str
    size: int
    inline: bytes | None = None
    address: bytes | None = None

    def packed(self) -> list[object]:
        """Return the reference as a msgpack-able list."""
        if self.address is None:
            return [self.type, self.inline]
        return [self.type, self.address, self.size]

    @classmethod
    def unpacked(cls, parts: list[object]) -> PayloadRef:
        """Return the reference that :meth:`packed` gave."""
        kind, data = str(parts[0]), parts[1]
        if not isinstance(data, bytes):
            msg = "a payload reference holds no bytes"
            raise UnknownFormat(msg)
        if len(parts) == 2:  # noqa: PLR2004 (type and inline bytes)
            return cls(kind, len(data), inline=data)
        return cls(kind, int(str(parts[2])), address=data)

    def encoded(self) -> bytes:
        """Return the reference as the bytes of a column."""
        return ormsgpack.packb([_VERSION, *self.packed()])

    @classmethod
    def decoded(cls, data: bytes) -> PayloadRef:
        """Return the reference that :meth:`encoded` gave.

        Raises:
            UnknownFormat: the version byte is not one this code writes.

        """
        version, *parts = ormsgpack.unpackb(data)
        if version != _VERSION:
            msg = f"payload reference of format {version}; this code knows {_VERSION}"
            raise UnknownFormat(msg, version=version)
        return cls.unpacked(parts)
