"""What a process knows about content: verified bytes it need not read again, addresses it need not send again."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from runtime_persist.model import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


class SegmentCache:
    """Verified content by address: the most recently used, up to a number of bytes. Safe for threads."""

    def __init__(self, max_bytes: int = limits.SEGMENTS_CACHED_BYTES_MAX) -> None:
        """Keep nothing yet."""
        self.max_bytes = max_bytes
        self._bytes = 0
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, addresses: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return what is known of some content."""
        found: dict[bytes, bytes] = {}
        with self._lock:
            for address in addresses:
                content = self._kept.get(address)
                if content is not None:
                    self._kept.move_to_end(address)
                    found[address] = content
        return found

    def add(self, contents: Mapping[bytes, bytes]) -> None:
        """Keep content that has the hash of its address."""
        with self._lock:
            for address, content in contents.items():
                if len(content) > limits.SEGMENT_CACHED_BYTES_MAX or address in self._kept:
                    continue
                self._kept[address] = content
                self._bytes += len(content) + _OVERHEAD_BYTES
            while self._bytes > self.max_bytes:
                _, content = self._kept.popitem(last=False)
                self._bytes -= len(content) + _OVERHEAD_BYTES

    def clear(self) -> None:
        """Keep nothing."""
        with self._lock:
            self._kept.clear()
            self._bytes = 0


_OVERHEAD_BYTES = 200
"""What an entry costs beside its content: two byte strings and a place in a dict."""


NEVER: Final = 0.0
"""When content was seen that was not."""


def recent(seen: float, max_seconds: float = limits.CARRIED_SECONDS) -> bool:
    """Return whether what was seen at a time (seconds since 1970) may be relied on.

    The wall clock, because it also goes on while the machine sleeps; a time that lies ahead of it says nothing.
    """
    return 0 <= time.time() - seen <= max_seconds


class KnownAddresses:
    """Content this process sent, or read without a mark, a short while ago. Safe for threads.

    What is known is not sent again. That is right as long as nobody removes content within a multiple of
    ``max_seconds`` of marking it (ARCHITECTURE, Content), and that the server is the one that acknowledged it: a
    standby that took over may have less, so everything is forgotten with a lost connection.
    """

    def __init__(
        self,
        losses: Callable[[], int] = lambda: 0,
        max_entries: int = limits.KNOWN_ADDRESSES_MAX,
        max_seconds: float = limits.KNOWN_SECONDS,
    ) -> None:
        """Know nothing yet; ``losses`` counts the connections that were lost."""
        self.losses = losses
        self._max_entries = max_entries
        self._max_seconds = max_seconds
        self._seen: OrderedDict[bytes, tuple[float, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, address: bytes) -> bool:
        return bool(self.seen([address]))

    def seen(self, addresses: Iterable[bytes]) -> dict[bytes, float]:
        """Return what is known of some content, and when each was seen (seconds since 1970)."""
        losses, now = self.losses(), time.time()
        found: dict[bytes, float] = {}
        for address in addresses:
            at, counted = self._seen.get(address, (NEVER, losses))
            if at != NEVER and counted == losses and 0 <= now - at <= self._max_seconds:
                found[address] = at
        return found

    def add(self, addresses: Iterable[bytes], since: float | None = None, losses: int | None = None) -> None:
        """Note that some content is stored.

        Args:
            addresses: of the content.
            since: when that began to be found out, seconds since 1970 (None: now).
            losses: nothing is noted if a connection was lost since they were counted.

        """
        counted = self.losses()
        if losses is not None and losses != counted:
            return
        at = time.time() if since is None else since
        with self._lock:
            for address in addresses:
                before, earlier = self._seen.get(address, (NEVER, counted))
                self._seen[address] = (max(at, before) if earlier == counted else at), counted
                self._seen.move_to_end(address)
            while len(self._seen) > self._max_entries:
                self._seen.popitem(last=False)
