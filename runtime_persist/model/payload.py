"""Payload references: type, size, and where the bytes are.

A value is its serializer's bytes: inline, whole under one address, or *spliced*: pieces that joined are exactly these
bytes. A piece is a literal, or an address of a segment, or of a page: a segment that holds more pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import ormsgpack

from runtime_persist.errors import UnknownFormat
from runtime_persist.model import limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_VERSION: Final = 2
_PAGE_VERSION: Final = 1


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Blob:
    """Content ready to be stored: its address, its size in bytes, and its packed form."""

    address: bytes
    size: int
    content: bytes


LITERAL: Final = -1
SEGMENT: Final = 0


class Piece(NamedTuple):
    """A part of a spliced value.

    Attributes:
        data: literal bytes, or the address of stored ones.
        depth: -1: literal; 0: the address of a segment; n: of a page whose pieces have a depth of n - 1 at most.

    """

    data: bytes
    depth: int = LITERAL


@dataclass(frozen=True, slots=True)
class PayloadRef:
    """A value as the serializer wrote it: ``type`` is the serializer's tag, the bytes are inline or in the store.

    Attributes:
        type: the serializer's type tag (``msgpack``, ``bytes``, ``null`` …).
        size: bytes of the serialized value.
        inline: the bytes, when small.
        address: the address in the content store, when the value is stored whole.
        pieces: what the value is put together from, when it was split.

    """

    type: str
    size: int
    inline: bytes | None = None
    address: bytes | None = None
    pieces: tuple[Piece, ...] = ()

    def stored(self) -> Iterator[Piece]:
        """Give what this reference names in the content store (pages name more)."""
        if self.address is not None:
            yield Piece(self.address, SEGMENT)
        yield from (piece for piece in self.pieces if piece.depth >= SEGMENT)

    def packed(self) -> list[object]:
        """Return the reference as a msgpack-able list."""
        if self.pieces:
            return [self.type, self.size, *_flat(self.pieces)]
        if self.address is None:
            return [self.type, self.inline]
        return [self.type, self.address, self.size]

    @classmethod
    def unpacked(cls, parts: list[object]) -> PayloadRef:
        """Return the reference that :meth:`packed` gave (raises UnknownFormat)."""
        kind, data, *more = parts
        if isinstance(data, bytes):
            if not more:  # type and inline bytes
                return cls(str(kind), len(data), inline=data)
            return cls(str(kind), int(str(more[0])), address=data)
        if isinstance(data, int) and more:
            return cls(str(kind), data, pieces=tuple(_pieces(more)))
        msg = "a payload reference holds no bytes"
        raise UnknownFormat(msg)

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


def page_of(pieces: Iterable[Piece]) -> bytes:
    """Return pieces as the content of a page."""
    return ormsgpack.packb([_PAGE_VERSION, *_flat(pieces)])


def pieces_of(page: bytes | memoryview) -> list[Piece]:
    """Return the pieces that a page holds.

    Raises:
        UnknownFormat: the bytes are no page of a format this code knows.

    """
    try:
        version, *parts = ormsgpack.unpackb(page)
    except (ValueError, TypeError) as error:
        msg = "the content of a page is no list of pieces"
        raise UnknownFormat(msg) from error
    if version != _PAGE_VERSION:
        msg = f"page of format {version}; this code knows {_PAGE_VERSION}"
        raise UnknownFormat(msg, version=version)
    return list(_pieces(parts))


def _flat(pieces: Iterable[Piece]) -> list[object]:
    """Return pieces as literals, and runs of addresses behind their depth."""
    flat: list[object] = []
    run: list[bytes] = []
    depth = LITERAL

    def end() -> None:
        if run:
            flat.extend((depth, b"".join(run)))
            run.clear()

    for piece in pieces:
        if piece.depth != depth:
            end()
            depth = piece.depth
        if depth == LITERAL:
            flat.append(piece.data)
        else:
            run.append(piece.data)
    end()
    return flat


def _pieces(flat: list[object]) -> Iterator[Piece]:
    """Give the pieces that :func:`_flat` flattened."""
    depth = LITERAL
    for part in flat:
        if isinstance(part, int) and part >= SEGMENT:
            depth = part
        elif isinstance(part, bytes) and depth == LITERAL:
            yield Piece(part)
        elif isinstance(part, bytes) and len(part) % limits.ADDRESS_BYTES == 0:
            for at in range(0, len(part), limits.ADDRESS_BYTES):
                yield Piece(part[at : at + limits.ADDRESS_BYTES], depth)
            depth = LITERAL
        else:
            msg = "a piece of a payload is neither bytes nor the depth of addresses"
            raise UnknownFormat(msg)
