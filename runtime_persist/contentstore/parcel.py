"""What a command brings along, and how a large value's content is stored ahead of its command, part by part."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, overload

from runtime_persist.contentstore.cache import KnownAddresses, recent
from runtime_persist.contentstore.packing import pack, unpack
from runtime_persist.model import limits
from runtime_persist.model.payload import Blob

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

Content = bytes | memoryview
Turns = dict[bytes, "Future[None]"]
"""Content that some part is just storing, by address; done when that part is, whatever became of it."""

_ROUNDS_MAX: Final = 4  # a connection that is lost again and again: then the command itself brings what it needs


class Part:
    """Some content on its way ahead of its command. Others that need it wait for its turn instead of sending it too."""

    def __init__(self, known: KnownAddresses, turns: Turns) -> None:
        """Hold nothing yet."""
        self.blobs: list[Blob] = []
        self.bytes = 0
        self.turn: Future[None] = Future()
        self._known = known
        self._turns = turns
        self._losses = known.losses()
        self._since = time.time()
        self._claimed: set[bytes] = set()

    def claim(self, address: bytes) -> Future[None] | None:
        """Take content over; return the turn to wait for if another part has it."""
        turn = self._turns.setdefault(address, self.turn)
        if turn is not self.turn:
            return turn
        self._claimed.add(address)
        return None

    def disclaim(self, address: bytes) -> None:
        """Let go of content that needs not be sent."""
        self._claimed.discard(address)
        self._turns.pop(address, None)

    def add(self, blob: Blob) -> None:
        """Hold content that was claimed."""
        self.blobs.append(blob)
        self.bytes += len(blob.content)

    def settled(self, done: Future[Any] | None) -> None:
        """Let go of what was claimed: ``done`` says what became of it (None: it was not sent)."""
        if done is not None and done.exception() is None:
            self._known.add(self._claimed, self._since, self._losses)
        for address in self._claimed:
            self._turns.pop(address, None)
        self.turn.set_result(None)


class Parcel(Sequence[Blob]):
    """The blobs that a command brings along, in address order: all writers lock them in the same order.

    It is opened each time the command is tried. When a connection was lost since it was packed, the server may be
    another one that has less, and what was left out because it was known to be stored is sent too. So it is when the
    process slept so long that somebody may have collected it.

    Attributes:
        size: bytes of the content that was not known to be stored.
        seen: since when all of it is known to be stored, once the command is committed (seconds since 1970).

    """

    def __init__(self, known: KnownAddresses, sending: MutableMapping[bytes, Blob], turns: Turns) -> None:
        """Bring nothing yet; ``sending`` shares blobs with other commands, ``turns`` with parts that go ahead."""
        self.size = 0
        self.seen = self._since = time.time()
        self._known = known
        self._sending = sending
        self._turns = turns
        self._losses = known.losses()
        self._new: dict[bytes, Content] = {}
        self._packed: dict[bytes, Blob] = {}
        self._left_out: dict[bytes, Content] = {}

    def bring(self, address: bytes, content: Content) -> None:
        """Add content that is not known to be stored."""
        self._new[address] = content
        self.size += len(content)

    def leave_out(self, address: bytes, content: Content, seen: float) -> None:
        """Add content that is known to be stored, and since when."""
        self._left_out[address] = content
        self.seen = min(self.seen, seen)

    def committed(self) -> None:
        """Note that the command is committed, and what it brought with it."""
        self._known.add(self._new, self._since, self._losses)

    @property
    def large(self) -> bool:
        """Return whether its content is to be stored ahead of the command."""
        return self.size > limits.CONTENT_AHEAD_BYTES_MIN

    def pack(self) -> None:
        """Pack everything now, where the caller is, and not when the parcel is opened."""
        for address in self._new:
            self._blob(address)

    def ahead(self) -> Iterator[Part | Future[None]]:
        """Give what has to be done before the command may be sent; nothing for a small one.

        A part is to be stored before the next one is asked for, a future (somebody else stores the same) waited for.
        Content is packed part by part. It stays at hand until the command is committed: after a lost connection all
        of it goes again, as far as it was not sent since.
        """
        if not self.large:
            return
        for _ in range(_ROUNDS_MAX):
            yield from self._round(deque(sorted(self._new)))
            losses = self._known.losses()
            if losses == self._losses:
                return
            self._losses = losses
            self._new |= self._left_out
            self._left_out.clear()

    def _round(self, queue: deque[bytes]) -> Iterator[Part | Future[None]]:
        while queue:
            part = Part(self._known, self._turns)
            try:
                elsewhere = self._fill(part, queue)
            except BaseException:
                part.settled(None)
                raise
            if part.blobs:
                yield part
                for blob in part.blobs:
                    self._left_out[blob.address] = self._new.pop(blob.address)
            elif elsewhere:
                yield next(iter(elsewhere.values()))
            queue.extend(elsewhere)  # looked at again: stored by then, or left to us

    def _fill(self, part: Part, queue: deque[bytes]) -> dict[bytes, Future[None]]:
        """Take content from the queue into a part; return what other parts are storing."""
        elsewhere: dict[bytes, Future[None]] = {}
        while queue and part.bytes < limits.CONTENT_PART_BYTES_MAX:
            address = queue.popleft()
            if (turn := part.claim(address)) is not None:
                elsewhere[address] = turn
            elif known := self._known.seen((address,)):  # looked at behind the claim: what was just stored is known
                part.disclaim(address)
                self.leave_out(address, self._new.pop(address), known[address])
            else:
                content = self._new[address]
                part.add(Blob(address, len(content), pack(content)))
        return elsewhere

    def __reduce__(self) -> tuple[Callable[[list[Blob]], Parcel], tuple[list[Blob]]]:
        """Bring everything to another process, which knows of nothing."""
        left_out = [Blob(address, len(content), pack(content)) for address, content in self._left_out.items()]
        return _parcel_of, ([*self._opened(), *left_out],)

    def _opened(self) -> list[Blob]:
        if self._left_out and not (self._known.losses() == self._losses and recent(self.seen)):
            self._new |= self._left_out
            self._left_out.clear()
        return [self._blob(address) for address in sorted(self._new)]

    def _blob(self, address: bytes) -> Blob:
        """Return content packed; another command that is on its way with the same shares it."""
        blob = self._packed.get(address) or self._sending.get(address)
        if blob is None:
            content = self._new[address]
            blob = self._sending[address] = Blob(address, len(content), pack(content))
        self._packed[address] = blob
        return blob

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
    made = Parcel(KnownAddresses(), {}, {})
    for blob in blobs:
        made.bring(blob.address, unpack(blob.content))
    return made
