"""Puts values into the store: split, addressed, and packed unless the store is known to have them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from runtime_persist.contentstore.cache import KnownAddresses, SegmentCache
from runtime_persist.contentstore.paging import paged
from runtime_persist.contentstore.parcel import Parcel
from runtime_persist.contentstore.splitting import split
from runtime_persist.model import limits
from runtime_persist.model.payload import SEGMENT, Blob, PayloadRef, Piece

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Future

    from runtime_persist.contentstore.parcel import Content, Part, Turns
    from runtime_persist.model.keys import SpaceKeys


@dataclass(slots=True)
class ContentWriter:
    """Collects the blobs of one command.

    Attributes:
        keys: of the space.
        owner: whose content it is; a reader names the owner too.
        cache: gets the content once it is committed.
        known: addresses that need not be sent.
        sending: blobs of commands that are on their way: a task's write and the checkpoint after it hold the same.
        turns: content that is on its way ahead of its command.
        goes_ahead: whether much content will go ahead of its command (:meth:`ahead`), and is packed only then.

    """

    keys: SpaceKeys
    owner: str
    cache: SegmentCache = field(default_factory=SegmentCache)
    known: KnownAddresses = field(default_factory=KnownAddresses)
    sending: WeakValueDictionary[bytes, Blob] = field(default_factory=WeakValueDictionary)
    turns: Turns = field(default_factory=dict)
    goes_ahead: bool = False
    _named: set[bytes] = field(default_factory=set)
    _parcel: Parcel = field(init=False)
    _new: dict[bytes, Content] = field(default_factory=dict)
    _new_bytes: int = 0

    def __post_init__(self) -> None:
        self._parcel = Parcel(self.known, self.sending, self.turns)

    def put(self, kind: str, data: bytes, inline_max: int) -> PayloadRef:
        """Return a reference to ``data``: inline up to ``inline_max`` bytes, else stored, in parts if it has some."""
        if len(data) <= inline_max:
            return PayloadRef(kind, len(data), inline=data)
        spans = split(kind, data)
        if len(spans) == 1:
            return PayloadRef(kind, len(data), address=self._store(data))
        view = memoryview(data)
        pieces = [
            Piece(self._store(view[start:stop]), SEGMENT) if stored else Piece(data[start:stop])
            for start, stop, stored in spans
        ]
        return PayloadRef(kind, len(data), pieces=tuple(paged(pieces, self._store)))

    def blobs(self) -> Sequence[Blob]:
        """Return the blobs to send, in address order."""
        if not (self.goes_ahead and self._parcel.large):
            self._parcel.pack()
        return self._parcel

    @property
    def large(self) -> bool:
        """Return whether there is so much new content that it is stored ahead of its command."""
        return self._parcel.large

    def ahead(self) -> Iterator[Part | Future[None]]:
        """Give what has to be stored before the command may be sent (see :meth:`Parcel.ahead`)."""
        return self._parcel.ahead()

    def committed(self) -> None:
        """Note that the command is committed: what it brought is stored (what it left out is as old as it was)."""
        self._parcel.committed()
        self.cache.add({address: bytes(content) for address, content in self._new.items()})

    def seen(self) -> float:
        """Return since when all that was put is known to be stored, once it is committed (seconds since 1970)."""
        return self._parcel.seen

    def _store(self, content: Content) -> bytes:
        address = self.keys.address(self.owner, content)
        if address not in self._named:
            self._named.add(address)
            if known := self.known.seen((address,)):
                self._parcel.leave_out(address, content, known[address])
            else:
                self._parcel.bring(address, content)
                # Of what is more than the cache holds, a copy for it would be one copy of a large value too many.
                self._new_bytes += len(content)
                if len(content) <= limits.SEGMENT_CACHED_BYTES_MAX and self._new_bytes <= self.cache.max_bytes:
                    self._new[address] = content
        return address
