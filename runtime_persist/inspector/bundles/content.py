"""The content that a bundle's rows refer to: what they name, walked level by level, and values joined of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from runtime_persist.adapters.workflow import encoding
from runtime_persist.errors import CheckpointCorrupt, RuntimePersistError, UnknownFormat
from runtime_persist.model.payload import LITERAL, SEGMENT, PayloadRef, Piece, pieces_of
from runtime_persist.queries.bundles import PARTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from runtime_persist.plan import Row

    Read = Callable[[bytes], bytes]
    """Gives the content of an address (raises KeyError)."""


class Value(NamedTuple):
    """A value that a row refers to: where it stands, and the reference."""

    part: str
    row: int
    column: str
    channel: str | None
    ref: PayloadRef

    def said(self) -> str:
        """Return where it stands, for people."""
        channel = "" if self.channel is None else f", channel {self.channel!r}"
        return f"{self.column} of row {self.row + 1} of {self.part}{channel}"


def values(rows: Mapping[str, Sequence[Row]]) -> Iterator[Value]:
    """Give all values that rows refer to, in order; those of checkpoints one by one, by channel.

    Raises:
        CheckpointCorrupt, UnknownFormat: a reference cannot be read.

    """
    for part in PARTS:
        for number, row in enumerate(rows[part.name]):
            for column in part.values:
                if row[column] is not None:
                    ref = _read(PayloadRef.decoded, row[column], f"{column} of row {number + 1} of {part.name}")
                    yield Value(part.name, number, column, None, ref)
            if part.name == "checkpoints":
                where = f"the manifest of checkpoint {row['checkpoint_id']}"
                for channel, ref in sorted(_read(encoding.refs_of, row["body"], where).items()):
                    yield Value(part.name, number, "body", channel, ref)
                ref = _read(PayloadRef.decoded, row["metadata"], f"the metadata of checkpoint {row['checkpoint_id']}")
                yield Value(part.name, number, "metadata", None, ref)


def _read(reader: Callable[[bytes], Any], data: bytes, where: str) -> Any:
    try:
        return reader(data)
    except UnknownFormat as error:
        raise UnknownFormat(f"{where}: {error.message}", where=where, **error.details) from None
    except Exception as error:
        said = error.message if isinstance(error, RuntimePersistError) else type(error).__name__
        raise CheckpointCorrupt(f"{where} cannot be read: {said}", where=where) from error


def deeper(pieces: Iterable[Piece], read: Read, done: set[bytes]) -> Iterator[Piece]:
    """Give what pages among stored pieces name, that is not done yet."""
    for data, depth in pieces:
        if depth > SEGMENT:
            for piece in pieces_of(read(data)):
                if piece.depth >= depth:
                    msg = f"a page names a page that is not below it (address {data.hex()})"
                    raise CheckpointCorrupt(msg, address=data.hex())
                if piece.depth >= SEGMENT and piece.data not in done:
                    yield piece


def joined(ref: PayloadRef, read: Read, where: str, size_max: int = sys.maxsize) -> bytes:
    """Return the bytes that a reference stands for.

    Raises:
        CheckpointCorrupt: content is missing, or has another size than the reference says, or than ``size_max``.
        UnknownFormat: a page of a format that this code does not know.

    """
    if ref.inline is not None:
        return ref.inline
    parts: list[bytes] = []
    pieces = (Piece(ref.address, SEGMENT),) if ref.address is not None else ref.pieces
    room = [min(ref.size, size_max)]
    _join(pieces, sys.maxsize, read, parts, room, where)
    data = b"".join(parts)
    if len(data) != ref.size:
        msg = f"{where} has {len(data):,} bytes instead of {ref.size:,}"
        raise CheckpointCorrupt(msg, where=where)
    return data


def _join(pieces: Iterable[Piece], below: int, read: Read, parts: list[bytes], room: list[int], where: str) -> None:
    for data, depth in pieces:
        if depth <= SEGMENT:
            part = data if depth == LITERAL else _found(data, read, where)
            room[0] -= len(part)
            if room[0] < 0:
                msg = f"{where} has more bytes than its reference says"
                raise CheckpointCorrupt(msg, where=where)
            parts.append(part)
        elif depth >= below:
            msg = f"a page of {where} names a page that is not below it"
            raise CheckpointCorrupt(msg, where=where)
        else:
            _join(pieces_of(_found(data, read, where)), depth, read, parts, room, where)


def _found(address: bytes, read: Read, where: str) -> bytes:
    try:
        return read(address)
    except KeyError:
        msg = f"content of {where} is missing (address {address.hex()})"
        raise CheckpointCorrupt(msg, where=where, address=address.hex()) from None
