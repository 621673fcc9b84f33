"""Takes values out of the store: collects what a read needs, is given what was found, joins it, verified."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

from runtime_persist.contentstore.cache import NEVER
from runtime_persist.contentstore.packing import opened
from runtime_persist.errors import CheckpointCorrupt, UnknownFormat
from runtime_persist.model import limits
from runtime_persist.model.payload import LITERAL, SEGMENT, Piece, pieces_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from runtime_persist.contentstore.cache import KnownAddresses, SegmentCache
    from runtime_persist.contentstore.parcel import Content
    from runtime_persist.model.keys import SpaceKeys
    from runtime_persist.model.payload import PayloadRef

    _Part = tuple[Content, bytes | None]  # of a value, and its address

_GROWTH = 4


class ContentReader:
    """The content of one read: references go in by :meth:`want`, bytes come out of :meth:`content`.

    In between the database is asked for :meth:`missing` until nothing is: first for segments and pages, then for what
    the pages name. What is in memory is used only while it is known to be stored: a later read looks whether it is.

    Attributes:
        complete: whether all that was asked for was found.

    """

    def __init__(self, keys: SpaceKeys, owner: str, cache: SegmentCache, known: KnownAddresses) -> None:
        """Want nothing yet."""
        self.complete = True
        self._keys = keys
        self.owner = owner
        self._cache = cache
        self._known = known
        self._since = time.time()
        self._losses = known.losses()
        self._unmarked: set[bytes] = set()
        self._depths: dict[bytes, int] = {}  # of all that was wanted
        self._wanted: dict[bytes, int] = {}  # not looked for yet
        self._needed: dict[bytes, int] = {}  # to be read
        self._stored: dict[bytes, bytes] = {}  # as read
        self._verified: dict[bytes, Content] = {}
        self._bytes = 0  # of the values, about
        self._at_once = 0  # segments that one statement asks for, when there is much to read
        self._pages: dict[bytes, list[Piece]] = {}

    def want(self, refs: Iterable[PayloadRef]) -> None:
        """Add references."""
        for ref in refs:
            self._bytes += ref.size if self._want(ref.stored()) else 0

    def missing(self) -> list[bytes]:
        """Return the addresses to read next, in order; none when all there is has been read.

        It looks into the pages that are there already, and goes on to what they name.
        """
        while self._wanted:
            wanted, self._wanted = self._wanted, {}
            self._verified |= self._cache.get(self._known.seen(one for one in wanted if one not in self._verified))
            for address, depth in wanted.items():
                if address not in self._verified and address not in self._stored:
                    self._needed[address] = depth
                elif depth > SEGMENT:
                    self._look_into(address)
        addresses = sorted(self._needed)
        if self._bytes > limits.READ_BYTES_MAX:
            self._at_once = max(self._at_once, limits.READ_SEGMENTS_MIN)
            return addresses[: self._at_once]
        return addresses

    def give(self, asked: Iterable[bytes], found: Mapping[bytes, bytes], marked: Collection[bytes] = ()) -> None:
        """Take what was read of the asked addresses; what was not found is not asked for again.

        ``marked``: those of it that a collector may be about to remove.
        """
        self._stored.update(found)
        self._unmarked.update(address for address in found if address not in marked)
        if self._at_once and found:  # addresses are hashes: what comes next is as large on average
            each = sum(map(len, found.values())) // len(found) + 1
            self._at_once = min(limits.READ_BYTES_MAX // each, self._at_once * _GROWTH)
        for address in asked:
            depth = self._needed.pop(address, SEGMENT)
            if address in found:
                self._wanted[address] = depth
            else:
                self.complete = False

    def content(self, ref: PayloadRef, where: str) -> bytes:
        """Return the bytes a reference stands for.

        Args:
            ref: the reference, which was wanted before.
            where: what the payload is, for the error ("channel messages of checkpoint …").

        Raises:
            CheckpointCorrupt: content is missing, or its hash is not its address.
            UnknownFormat: content of a format that this code does not know.

        """
        if ref.inline is not None:
            return ref.inline
        data = self._joined(ref, where) if ref.address is None else bytes(self._segment(ref.address, where))
        if len(data) != ref.size:
            msg = f"content of {where} has {len(data):,} bytes instead of {ref.size:,}"
            raise CheckpointCorrupt(msg, where=where)
        return data

    def keep(self) -> None:
        """Let later reads and writes of this process profit from what was verified."""
        newest: list[tuple[bytes, bytes]] = []
        room = self._cache.max_bytes
        for address, content in reversed(self._verified.items()):
            room -= len(content)
            if room < 0:
                break
            newest.append((address, bytes(content)))
        self._cache.add(dict(reversed(newest)))
        self._known.add(self._unmarked & self._verified.keys(), self._since, self._losses)

    def seen(self) -> float:
        """Return when all that was wanted was last seen stored and unmarked (after :meth:`keep`); NEVER if it was not.

        Seconds since 1970.
        """
        if self._losses != self._known.losses():
            return NEVER
        wanted = self._depths.keys()
        seen = self._known.seen(wanted)
        return min(seen.values(), default=self._since) if len(seen) == len(wanted) else NEVER

    def _want(self, pieces: Iterable[Piece]) -> bool:
        """Want what pieces name; return whether some of it was not wanted before."""
        more = False
        for data, depth in pieces:
            if depth > LITERAL and depth > self._depths.get(data, LITERAL):
                self._depths[data] = self._wanted[data] = depth
                more = True
        return more

    def _look_into(self, address: bytes) -> None:
        """Want what a page names. A damaged one is told when its value is asked for."""
        with contextlib.suppress(CheckpointCorrupt, UnknownFormat):
            self._want(self._page(address, "?"))

    def _page(self, address: bytes, where: str) -> list[Piece]:
        found = self._pages.get(address)
        if found is None:
            content = self._segment(address, where, "a page")
            try:
                found = self._pages[address] = pieces_of(content)
            except UnknownFormat as error:
                msg = f"{where}: {error.message} (address {address.hex()})"
                raise UnknownFormat(msg, **error.details) from None
        return found

    def _joined(self, ref: PayloadRef, where: str) -> bytes:
        parts: list[_Part] = []
        self._join(ref.pieces, sys.maxsize, parts, where)
        data = b"".join([content for content, _ in parts])
        if len(data) > limits.READ_BYTES_MAX:
            # From now on its segments are views of it: their own bytes would be a second copy of a large value.
            view, at = memoryview(data), 0
            for content, address in parts:
                if address is not None:
                    self._verified[address] = view[at : at + len(content)]
                at += len(content)
        return data

    def _join(self, pieces: Iterable[Piece], below: int, parts: list[_Part], where: str) -> None:
        for data, depth in pieces:
            if depth == LITERAL:
                parts.append((data, None))
            elif depth >= below:
                msg = f"a page of {where} names a page that is not below it"
                raise CheckpointCorrupt(msg, where=where)
            elif depth == SEGMENT:
                parts.append((self._segment(data, where), data))
            else:
                self._join(self._page(data, where), depth, parts, where)

    def _segment(self, address: bytes, where: str, what: str = "content") -> Content:
        found = self._verified.get(address)
        if found is not None:
            return found
        packed = self._stored.get(address)
        if packed is None:
            msg = f"{what} of {where} is missing (address {address.hex()})"
            raise CheckpointCorrupt(msg, address=address.hex(), where=where)
        try:
            data = opened(packed)
        except CheckpointCorrupt as error:
            msg = f"{what} of {where} is damaged (address {address.hex()}): {error.message}"
            raise CheckpointCorrupt(msg, address=address.hex(), where=where) from error
        if self._keys.address(self.owner, data) != address:
            msg = f"{what} of {where} does not have the hash of its address {address.hex()}"
            raise CheckpointCorrupt(msg, address=address.hex(), where=where)
        self._verified[address] = data
        del self._stored[address]
        return data
