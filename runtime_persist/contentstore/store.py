"""The database as content store: what a process knows of it, and what makes writers and readers.

Blobs travel inside the command that refers to them, or ahead of it when they are many megabytes. So nothing is visible
before the commit that references it, and an address without content cannot be committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from runtime_persist.contentstore.cache import KnownAddresses, SegmentCache
from runtime_persist.contentstore.reader import ContentReader
from runtime_persist.contentstore.writer import ContentWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime_persist.contentstore.parcel import Turns
    from runtime_persist.model.keys import SpaceKeys
    from runtime_persist.model.payload import Blob


class ContentStore:
    """The content of one owner in a space.

    Attributes:
        keys: of the space.
        owner: whose content it is; a reader names the owner too.
        cache: verified content in memory.
        known: addresses that are committed.

    """

    def __init__(self, keys: SpaceKeys, owner: str, losses: Callable[[], int] = lambda: 0) -> None:
        """Know nothing yet; what is known ends with the next of ``losses``, the connections that were lost."""
        self.keys = keys
        self.owner = owner
        self.cache = SegmentCache()
        self._sending: WeakValueDictionary[bytes, Blob] = WeakValueDictionary()
        self._turns: Turns = {}
        self.known = KnownAddresses(losses)

    def writer(self, *, everything: bool = False, ahead: bool = False) -> ContentWriter:
        """Return what collects the content of one command.

        Args:
            everything: what is known to be stored is sent too; for values that are rarely stored twice.
            ahead: the caller sends much content ahead of the command (``ContentWriter.ahead``).

        """
        known = KnownAddresses(self.known.losses) if everything else self.known
        return ContentWriter(self.keys, self.owner, self.cache, known, self._sending, self._turns, goes_ahead=ahead)

    def reader(self) -> ContentReader:
        """Return what collects the content of one read."""
        return ContentReader(self.keys, self.owner, self.cache, self.known)
