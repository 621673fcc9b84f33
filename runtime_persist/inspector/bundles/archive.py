"""The file of a bundle: a zip of stored entries, of which there is exactly one form for the same entries.

No compression, no dates, no extra fields, no comments, the manifest first and the others by name. Whatever is not as
this code would have written it is refused with the entry and the offset of the first byte that differs, so nothing of
a hostile archive is ever followed: no path, no link, no claimed size.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from runtime_persist.errors import CheckpointCorrupt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MANIFEST: Final = "manifest.json"
ENTRIES_MAX: Final = 65_534
FILE_BYTES_MAX: Final = 2**32 - 2
_LOCAL: Final = struct.Struct("<4s5H3L2H")
_CENTRAL: Final = struct.Struct("<4s6H3L5H2L")
_END: Final = struct.Struct("<4s4H2LH")
_VERSION: Final = 20
_DATE: Final = 0x21  # 1980-01-01, the first one that a zip can say
_TAIL: Final = "the directory at the end"


@dataclass(frozen=True, slots=True)
class Placed:
    """Where an entry's bytes begin in the file, and how many they are."""

    name: str
    start: int
    size: int


def encoded(entries: Iterable[tuple[str, bytes]]) -> Iterable[bytes]:
    """Give the parts of the file of some entries (names and bytes, in their order)."""
    written: list[tuple[str, int, int]] = []
    for name, data in entries:
        crc = zlib.crc32(data)
        yield _local(name, len(data), crc)
        yield data
        written.append((name, len(data), crc))
    yield _directory(written)


def length(entries: Iterable[tuple[str, int]]) -> int:
    """Return the bytes of a file of entries of some names and sizes."""
    return _END.size + sum(_LOCAL.size + _CENTRAL.size + 2 * len(name) + size for name, size in entries)


def manifest_bytes(data: bytes, size_max: int) -> bytes:
    """Return the bytes of the manifest, the first entry: those that one of its two checksums is right for.

    Raises:
        CheckpointCorrupt: there are none.

    """
    start = _LOCAL.size + len(MANIFEST)
    said: list[tuple[int, int]] = []
    if len(data) >= start:
        *_, crc, size, _, _, _ = _LOCAL.unpack_from(data)
        said.append((crc, size))
    said += _from_directory(data)
    for crc, size in said:
        if 0 < size <= size_max and start + size <= len(data) and zlib.crc32(data[start : start + size]) == crc:
            return data[start : start + size]
    if data[:4] != b"PK\3\4" and (not said or said[0][1] > size_max):
        _refuse("it is no recovery bundle: it does not begin with a stored manifest", MANIFEST, 0)
    for crc, size in said:
        if 0 < size <= size_max and start + size <= len(data):
            at = damaged_byte(data[start : start + size], crc)
            if at is not None:
                _refuse(f"a byte of {MANIFEST} is damaged", MANIFEST, start + at)
    return _refuse(f"the bytes of {MANIFEST} do not have their checksum", MANIFEST, start)


def _from_directory(data: bytes) -> list[tuple[int, int]]:
    """Return checksum and size of the manifest as the directory at the end says them."""
    if len(data) < _END.size:
        return []
    at = _END.unpack_from(data, len(data) - _END.size)[6]
    if at + _CENTRAL.size > len(data) or data[at : at + 4] != b"PK\1\2":
        return []
    found = _CENTRAL.unpack_from(data, at)
    return [(found[7], found[8])]


def places(names: Sequence[tuple[str, int]]) -> list[Placed]:
    """Return where the bytes of entries of some names and sizes are."""
    found: list[Placed] = []
    at = 0
    for name, size in names:
        start = at + _LOCAL.size + len(name)
        found.append(Placed(name, start, size))
        at = start + size
    return found


def checksum_said(data: bytes, placed: Placed) -> int:
    """Return the checksum that stands in front of an entry's bytes."""
    found = _LOCAL.unpack_from(data, placed.start - len(placed.name) - _LOCAL.size)
    return int(found[6])


def compare(data: bytes, found: Sequence[Placed]) -> None:
    """Compare all that is not an entry's own bytes with what this code would write.

    Raises:
        CheckpointCorrupt: with ``entry`` and ``offset`` of the first byte that differs.

    """
    written: list[tuple[str, int, int]] = []
    for placed in found:
        crc = zlib.crc32(memoryview(data)[placed.start : placed.start + placed.size])
        head = _local(placed.name, placed.size, crc)
        _same(data, placed.start - len(head), head, placed.name)
        written.append((placed.name, placed.size, crc))
    at = found[-1].start + found[-1].size
    for name, record in _records(written):
        _same(data, at, record, name)
        at += len(record)
    if len(data) > at:
        _refuse(f"{len(data) - at:,} bytes stand behind its end", _TAIL, at)


def _same(data: bytes, at: int, expected: bytes, entry: str) -> None:
    if data[at : at + len(expected)] == expected:
        return
    for offset, byte in enumerate(expected, at):
        if offset >= len(data):
            _refuse("it ends too early", entry, len(data))
        if data[offset] != byte:
            _refuse(f"a byte about {entry} is not as it is written", entry, offset)


def _local(name: str, size: int, crc: int) -> bytes:
    return _LOCAL.pack(b"PK\3\4", _VERSION, 0, 0, 0, _DATE, crc, size, size, len(name), 0) + name.encode()


def _records(written: Sequence[tuple[str, int, int]]) -> Iterable[tuple[str, bytes]]:
    """Give the records of the directory, and its end."""
    at = size = 0
    for name, bytes_, crc in written:
        fields = (_VERSION, _VERSION, 0, 0, 0, _DATE, crc, bytes_, bytes_, len(name), 0, 0, 0, 0, 0, at)
        record = _CENTRAL.pack(b"PK\1\2", *fields) + name.encode()
        yield name, record
        size += len(record)
        at += _LOCAL.size + len(name) + bytes_
    yield _TAIL, _END.pack(b"PK\5\6", 0, 0, len(written), len(written), size, at, 0)


def _directory(written: Sequence[tuple[str, int, int]]) -> bytes:
    return b"".join(record for _, record in _records(written))


def _refuse(what: str, entry: str, offset: int) -> NoReturn:
    msg = f"{what} ({entry}, offset {offset:,})"
    raise CheckpointCorrupt(msg, entry=entry, offset=offset)


# --- which byte ---------------------------------------------------------------------------------------------------


def _table() -> list[int]:
    made = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (0xEDB88320 if value & 1 else 0)
        made.append(value)
    return made


_STEP: Final = _table()
_BACK: Final = {value >> 24: (byte, value) for byte, value in enumerate(_STEP)}
_LOOKED_AT_MAX: Final = 8_388_608


def damaged_byte(data: bytes, crc: int) -> int | None:
    """Return which byte is wrong, if it is one alone, of data that should have a checksum (None: not to be told).

    The difference of two checksums depends on the difference of the data only: it is taken back byte by byte, from
    the end, until it is the one that a single byte makes.
    """
    difference = zlib.crc32(data) ^ crc
    single = {value: byte for byte, value in enumerate(_STEP)}
    for at in range(len(data) - 1, max(-1, len(data) - 1 - _LOOKED_AT_MAX), -1):
        if difference in single:
            mended = data[:at] + bytes([data[at] ^ single[difference]]) + data[at + 1 :]
            return at if zlib.crc32(mended) == crc else None
        byte, value = _BACK[difference >> 24]
        difference = (((difference ^ value) << 8) | byte) & 0xFFFFFFFF
    return None
