"""Takes values out of the store: collects what a read needs, is given what was found, joins it, verified."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

from runtime_persist.contentstore.cache import NEVER
from runtime_persist.contentstore.packing import unpack
from runtime_persist.errors import CheckpointCorrupt, UnknownFormat
from runtime_persist.model.payload import LITERAL, SEGMENT, Piece, pieces_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from runtime_persist.contentstore.cache import KnownAddresses, SegmentCache
    from runtime_persist.model.keys import SpaceKeys
    from runtime_persist.model.payload import PayloadRef


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
        self._verified: dict[bytes, bytes] = {}
        self._pages: dict[bytes, list[Piece]] = {}

    def want(self, refs: Iterable[PayloadRef]) -> None:
        """Add references."""
        for ref in refs:
            self._want(ref.stored())

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
        return sorted(self._needed)

    def give(self, asked: Iterable[bytes], found: Mapping[bytes, bytes], marked: Collection[bytes] = ()) -> None:
        """Take what was read of the asked addresses; what was not found is not asked for again.

        ``marked``: those of it that a collector may be about to remove.
        """
        self._stored.update(found)
        self._unmarked.update(address for address in found if address not in marked)
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
        if ref.address is not None:
            data = self._segment(ref.address, where)
        else:
            parts: list[bytes] = []
            self._join(ref.pieces, sys.maxsize, parts, where)
            data = b"".join(parts)
        if len(data) != ref.size:
            msg = f"content of {where} has {len(data):,} bytes instead of {ref.size:,}"
            raise CheckpointCorrupt(msg, where=where)
        return data

    def keep(self) -> None:
        """Let later reads and writes of this process profit from what was verified."""
        self._cache.add(self._verified)
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

    def _want(self, pieces: Iterable[Piece]) -> None:
        for data, depth in pieces:
            if depth > LITERAL and depth > self._depths.get(data, LITERAL):
                self._depths[data] = self._wanted[data] = depth

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

    def _join(self, pieces: Iterable[Piece], below: int, parts: list[bytes], where: str) -> None:
        for data, depth in pieces:
            if depth == LITERAL:
                parts.append(data)
            elif depth >= below:
                msg = f"a page of {where} names a page that is not below it"
                raise CheckpointCorrupt(msg, where=where)
            elif depth == SEGMENT:
                parts.append(self._segment(data, where))
            else:
                self._join(self._page(data, where), depth, parts, where)

    def _segment(self, address: bytes, where: str, what: str = "content") -> bytes:
        found = self._verified.get(address)
        if found is not None:
            return found
        packed = self._stored.get(address)
        if packed is None:
            msg = f"{what} of {where} is missing (address {address.hex()})"
            raise CheckpointCorrupt(msg, address=address.hex(), where=where)
        try:
            data = unpack(packed)
        except CheckpointCorrupt as error:
            msg = f"{what} of {where} is damaged (address {address.hex()}): {error.message}"
            raise CheckpointCorrupt(msg, address=address.hex(), where=where) from error
        if self._keys.address(self.owner, data) != address:
            msg = f"{what} of {where} does not have the hash of its address {address.hex()}"
            raise CheckpointCorrupt(msg, address=address.hex(), where=where)
        self._verified[address] = data
        del self._stored[address]
        return data
