"""A bus: short messages between the processes that share a database. Best effort: what counts is in the database.

It wakes who waits, so that nobody has to ask again and again, and it carries what is never stored (live streams). A
message may be lost; everybody who waits for one looks for himself from time to time.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Bus(ABC):
    """Sends to, and hears from, the other processes at the same database. Every method may be called on any thread."""

    def __init__(self) -> None:
        """Hear nothing yet."""
        self._lock = threading.Lock()
        self._receivers: defaultdict[str, list[Callable[[bytes | None], None]]] = defaultdict(list)

    @property
    @abstractmethod
    def hears(self) -> bool:
        """Return whether messages of others are known to arrive here (else whoever waits only looks)."""

    @abstractmethod
    def publish(self, channel: str, message: bytes) -> None:
        """Send a message to all other processes that listen to a channel. Never waits; drops what is too much."""

    @abstractmethod
    def flush(self) -> None:
        """Wait until what was published before is on its way."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything. Closing twice does nothing."""

    @abstractmethod
    def _listen(self, channel: str) -> None:
        """Begin to hear a channel."""

    @abstractmethod
    def _unlisten(self, channel: str) -> None:
        """Stop hearing a channel."""

    def subscribe(self, channel: str, receive: Callable[[bytes | None], None]) -> Callable[[], None]:
        """Call ``receive`` with each message of a channel, on a thread of the bus; return what ends it.

        ``receive(None)`` says that messages may have been missed. It must not wait.
        """
        with self._lock:
            first = not self._receivers[channel]
            self._receivers[channel].append(receive)
        if first:
            self._listen(channel)

        def unsubscribe() -> None:
            with self._lock:
                found = self._receivers.get(channel, [])
                if receive in found:
                    found.remove(receive)
                if found:
                    return
                self._receivers.pop(channel, None)
            self._unlisten(channel)

        return unsubscribe

    def _channels(self) -> list[str]:
        with self._lock:
            return list(self._receivers)

    def _received(self, channel: str, message: bytes | None) -> None:
        with self._lock:
            found = list(self._receivers.get(channel, ()))
        for receive in found:
            receive(message)

    def _missed(self) -> None:
        """Tell all that messages may have been missed."""
        for channel in self._channels():
            self._received(channel, None)
