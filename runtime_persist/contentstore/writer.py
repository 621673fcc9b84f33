"""Puts values into the store: split, addressed, and packed unless the store is known to have them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, overload
from weakref import WeakValueDictionary

from runtime_persist.contentstore.cache import KnownAddresses, SegmentCache
from runtime_persist.contentstore.packing import pack
from runtime_persist.contentstore.paging import paged
from runtime_persist.contentstore.splitting import split
from runtime_persist.model import limits
from runtime_persist.model.payload import SEGMENT, Blob, PayloadRef, Piece

if TYPE_CHECKING:
    from runtime_persist.model.keys import SpaceKeys


_Bytes = bytes | memoryview


class Parcel(Sequence[Blob]):
    """The blobs that a command brings along, in address order: all writers lock them in the same order.

    It is opened each time the command is tried. When a connection was lost since it was packed, the server may be
    another one that has less, and what was left out because it was known to be stored is sent too.
    """

    def __init__(
        self, known: KnownAddresses, losses: int, new: dict[bytes, Blob], left_out: dict[bytes, _Bytes]
    ) -> None:
        """Bring ``new``, and ``left_out`` as long as ``known`` counts as many ``losses``."""
        self._known = known
        self._losses = losses
        self._new = new
        self._left_out = left_out

    def __reduce__(self) -> tuple[Callable[[list[Blob]], Parcel], tuple[list[Blob]]]:
        """Bring everything to another process, which knows of nothing."""
        left_out = [Blob(address, len(content), pack(content)) for address, content in self._left_out.items()]
        return _parcel_of, ([*self._opened(), *left_out],)

    def _opened(self) -> list[Blob]:
        if self._left_out and self._known.losses() != self._losses:
            for address, content in self._left_out.items():
                self._new[address] = Blob(address, len(content), pack(content))
            self._left_out.clear()
        return [self._new[address] for address in sorted(self._new)]

    def __len__(self) -> int:
        return len(self._opened())

    def __iter__(self) -> Iterator[Blob]:
        return iter(self._opened())

    @overload
    def __getitem__(self, at: int) -> Blob: ...
    @overload
    def __getitem__(self, at: slice) -> list[Blob]: ...
    def __getitem__(self, at: int | slice) -> Blob | list[Blob]:
        return self._opened()[at]


def _parcel_of(blobs: list[Blob]) -> Parcel:
    return Parcel(KnownAddresses(), 0, {blob.address: blob for blob in blobs}, {})


@dataclass(slots=True)
class ContentWriter:
    """Collects the blobs of one command.

    Attributes:
        keys: of the space.
        owner: whose content it is; a reader names the owner too.
        cache: gets the content once it is committed.
        known: addresses that need not be sent.
        sending: blobs of commands that are on their way: a task's write and the checkpoint after it hold the same.

    """

    keys: SpaceKeys
    owner: str
    cache: SegmentCache = field(default_factory=SegmentCache)
    known: KnownAddresses = field(default_factory=KnownAddresses)
    sending: WeakValueDictionary[bytes, Blob] = field(default_factory=WeakValueDictionary)
    _named: set[bytes] = field(default_factory=set)
    _blobs: dict[bytes, Blob] = field(default_factory=dict)
    _left_out: dict[bytes, _Bytes] = field(default_factory=dict)
    _losses: int = field(init=False)
    _seen: float = field(default_factory=time.time)
    _since: float = field(init=False)
    _new: dict[bytes, bytes] = field(default_factory=dict)
    _new_bytes: int = 0

    def __post_init__(self) -> None:
        self._losses = self.known.losses()
        self._since = self._seen

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
        return Parcel(self.known, self._losses, self._blobs, self._left_out)

    def committed(self) -> None:
        """Note that the command is committed: what it brought is stored (what it left out is as old as it was)."""
        self.known.add(self._blobs, self._since, self._losses)
        self.cache.add(self._new)

    def seen(self) -> float:
        """Return since when all that was put is known to be stored, once it is committed (seconds since 1970)."""
        return self._seen

    def _store(self, content: _Bytes) -> bytes:
        address = self.keys.address(self.owner, content)
        if address not in self._named:
            self._named.add(address)
            if known := self.known.seen((address,)):
                self._left_out[address] = content
                self._seen = min(self._seen, known[address])
            else:
                self._blobs[address] = self._packed(address, content)
                # Of what is more than the cache holds, a copy for it would be one copy of a large value too many.
                self._new_bytes += len(content)
                if len(content) <= limits.SEGMENT_CACHED_BYTES_MAX and self._new_bytes <= self.cache.max_bytes:
                    self._new[address] = bytes(content)
        return address

    def _packed(self, address: bytes, content: _Bytes) -> Blob:
        """Return the blob; another command that is on its way with the same content shares it."""
        blob = self.sending.get(address)
        if blob is None:
            blob = self.sending[address] = Blob(address, len(content), pack(content))
        return blob
