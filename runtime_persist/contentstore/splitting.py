"""Where a serialized value is cut. A pure function of its bytes, which are never decoded.

The top level of msgpack bytes is walked with a skipper written in C: elements of lists in groups cut by content,
values of dicts, a few levels deep. What is not msgpack, or not what it says, is cut by size alone. The parts in
order are always exactly the bytes.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final, NamedTuple

from msgpack import Unpacker
from msgpack.exceptions import UnpackException
from xxhash import xxh3_64_intdigest

from runtime_persist.model import limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STRUCTURED: Final = frozenset({"msgpack", "msgpack-rp"})
"""Type tags of bytes that are msgpack."""

_READ_BYTES: Final = 65_536
_LIST_OF_ONE: Final = b"\x91"
_ARRAY_16, _ARRAY_32, _MAP_16, _MAP_32 = 0xDC, 0xDD, 0xDE, 0xDF
_HEADERS: Final = {0xD9: 2, 0xDA: 3, 0xDB: 5, 0xC4: 2, 0xC5: 3, 0xC6: 5, 0xC7: 3, 0xC8: 4, 0xC9: 6}
"""Bytes before the content: texts, bytes, extensions."""
_LONG: Final = {0xDB: 5, 0xC6: 5, 0xC9: 6}
"""The same with a length of 32 bits."""
_EXTENSIONS: Final = {0xC7: 3, 0xC8: 4, 0xC9: 6}


class Span(NamedTuple):
    """A part of the bytes: ``stored`` is a segment, otherwise it stays in the reference."""

    start: int
    stop: int
    stored: bool


_Item = tuple[int, int, int]
"""Where an element of a list, or an entry of a dict, begins, where its value begins, and where it ends."""


class _Unreadable(Exception):
    """The bytes are not what the type tag says."""


_UNREADABLE: Final = (_Unreadable, UnpackException, ValueError, IndexError)


def split(kind: str, data: bytes) -> list[Span]:
    """Return the parts of a value; a single stored one is the whole."""
    if kind in STRUCTURED:
        if data[:1] == _LIST_OF_ONE and limits.LITERAL_BYTES_MAX + 1 < len(data) < limits.SPLIT_BYTES_MIN:
            return [Span(0, 1, False), Span(1, len(data), True)]  # the same as below, without a look inside
        try:
            spans = _Splitter(data).spans()
        except _UNREADABLE:
            pass
        else:
            if sum(span.stop - span.start for span in spans if not span.stored) <= _literal_max(data):
                return spans
    return list(_chunks(0, len(data)))


def _literal_max(data: bytes) -> int:
    """Return how much of a value may stay in its reference: little of a small one."""
    return limits.LITERAL_BYTES_MAX if len(data) < limits.SPLIT_BYTES_MIN else len(data) // 8


def _chunks(start: int, stop: int) -> Iterator[Span]:
    if stop - start < limits.CHUNKED_BYTES_MIN:
        yield Span(start, stop, True)
        return
    for at in range(start, stop, limits.CHUNK_BYTES):
        yield Span(at, min(at + limits.CHUNK_BYTES, stop), True)


def _container(data: bytes, at: int) -> tuple[bool, int, int] | None:
    """Return whether a dict (or a list) begins here, its length, and where its content begins; None for neither."""
    byte = data[at]
    if byte & 0xF0 == 0x90:  # noqa: PLR2004 (the format's own numbers, here and below)
        return False, byte & 0x0F, at + 1
    if byte & 0xF0 == 0x80:  # noqa: PLR2004
        return True, byte & 0x0F, at + 1
    if byte in (_ARRAY_16, _MAP_16):
        return byte == _MAP_16, int.from_bytes(data[at + 1 : at + 3], "big"), at + 3
    if byte in (_ARRAY_32, _MAP_32):
        return byte == _MAP_32, int.from_bytes(data[at + 1 : at + 5], "big"), at + 5
    return None


class _Skipper:
    """Goes from one object to the next; a long text is stepped over without being looked at."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._stream = io.BytesIO(data)
        self._go_to(at)

    def _go_to(self, at: int) -> None:
        self._stream.seek(at)
        self._unpacker = Unpacker(self._stream, read_size=_READ_BYTES, max_buffer_size=0)
        self._base = at

    def walk(self, count: int) -> list[int]:
        """Return the end of each of the next ``count`` objects."""
        data, base = self._data, self._base
        skip, tell = self._unpacker.skip, self._unpacker.tell
        ends: list[int] = []
        at = base
        for _ in range(count):
            long = _LONG.get(data[at])
            if long is None:
                skip()
                at = base + tell()
            else:
                at = at + long + int.from_bytes(data[at + 1 : at + 5], "big")
                if at > len(data):
                    raise _Unreadable
                self._go_to(at)
                base = at
                skip, tell = self._unpacker.skip, self._unpacker.tell
            ends.append(at)
        return ends


class _Splitter:
    """Splits one value."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._view = memoryview(data)
        self._spans: list[Span] = []

    def spans(self) -> list[Span]:
        """Return the parts, neighbouring literals made one."""
        found = _container(self._data, 0)
        small = len(self._data) < limits.SPLIT_BYTES_MIN
        if (small and (found is None or found[0])) or not self._split(0, len(self._data), 1):
            self._whole(0, len(self._data))
        return self._spans

    def _split(self, start: int, stop: int, depth: int) -> bool:
        """Split the container that lies here; return False when it is not worth it."""
        found = _container(self._data, start)
        if found is None:
            return self._split_inside(start, stop, depth)
        is_map, count, begin = found
        if count == 0 or count > stop - begin:
            return False
        if count > limits.SPLIT_ITEMS_MAX and (stop - begin) // count < limits.SPLIT_ITEM_BYTES_MIN:
            return False
        items = self._items(begin, count, is_map=is_map)
        if items[-1][2] != stop:
            raise _Unreadable
        self._literal(start, begin)
        # A file in a dict of files changes by itself: smaller ones than a long message stand alone there.
        bound = limits.ENTRY_BYTES_MAX if is_map else limits.ITEM_BYTES_MAX
        small: list[_Item] = []
        for item in items:
            before, value, end = item
            if end - value < bound:
                small.append(item)
                continue
            self._groups(small, open_end=False)
            small = []
            self._run(before, value)
            self._value(value, end, depth)
        self._groups(small, open_end=True)
        return True

    def _split_inside(self, start: int, stop: int, depth: int) -> bool:
        """Split what an extension holds (a snapshot of a channel, an object), when that is a container."""
        header = _EXTENSIONS.get(self._data[start])
        if header is None or start + header >= stop:
            return False
        wrapped = _container(self._data, start + header) is None  # an extension in an extension, as deep as one likes
        if wrapped and depth >= limits.SPLIT_DEPTH_MAX:
            return False
        before = list(self._spans)
        self._literal(start, start + header)
        try:
            if self._split(start + header, stop, depth + wrapped):
                return True
        except _UNREADABLE:  # it holds something else
            pass
        self._spans = before
        return False

    def _items(self, begin: int, count: int, *, is_map: bool) -> list[_Item]:
        ends = _Skipper(self._data, begin).walk(2 * count if is_map else count)
        starts = [begin, *ends]
        if not is_map:
            return list(zip(starts, starts, ends, strict=False))
        return list(zip(starts[::2], starts[1::2], starts[2::2], strict=False))

    def _value(self, start: int, stop: int, depth: int) -> None:
        """Store a large value: a container split, a long text in chunks, anything else whole."""
        deeper = depth < limits.SPLIT_DEPTH_MAX and stop - start >= limits.SPLIT_BYTES_MIN
        if not (deeper and self._split(start, stop, depth + 1)):
            self._whole(start, stop)

    def _whole(self, start: int, stop: int) -> None:
        header = _HEADERS.get(self._data[start], 0) if stop - start >= limits.CHUNKED_BYTES_MIN else 0
        self._literal(start, start + header)
        self._spans += _chunks(start + header, stop)

    def _groups(self, items: Sequence[_Item], *, open_end: bool) -> None:
        """Store items in groups. Behind the last cut each is stored by itself, so that an append stores only itself."""
        if not items:
            return
        view = self._view
        begin = items[0][0]
        count = 0
        for start, _, stop in items:
            count += 1
            size = stop - begin
            if (count < limits.GROUP_ITEMS_MIN and size < limits.GROUP_BYTES_MAX) or size < limits.GROUP_BYTES_MIN:
                continue
            full = size >= limits.GROUP_BYTES_MAX or (
                count >= limits.GROUP_ITEMS_MAX and size >= limits.SPLIT_BYTES_MIN
            )
            if full or not xxh3_64_intdigest(view[start:stop]) & limits.GROUP_CUT_MASK:
                self._run(begin, stop)
                begin, count = stop, 0
        if not open_end:
            self._run(begin, items[-1][2])
            return
        for start, _, stop in items[len(items) - count :]:
            if stop - start > limits.LITERAL_BYTES_MAX:
                self._run(begin, start)
                self._spans.append(Span(start, stop, True))
                begin = stop
        self._run(begin, items[-1][2])

    def _run(self, start: int, stop: int) -> None:
        """Store what lies here, or leave it in the reference when it is small."""
        if stop - start > limits.LITERAL_BYTES_MAX:
            self._spans.append(Span(start, stop, True))
        else:
            self._literal(start, stop)

    def _literal(self, start: int, stop: int) -> None:
        if start == stop:
            return
        last = self._spans[-1] if self._spans else None
        if last is not None and not last.stored:
            self._spans[-1] = Span(last.start, stop, False)
        else:
            self._spans.append(Span(start, stop, False))
