"""Keyed hashes of a space: content addresses, thread hashes, fingerprints (BLAKE3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from blake3 import blake3

from runtime_persist.model import limits


@dataclass(frozen=True, slots=True)
class SpaceKeys:
    """Hashes under a space's secret: equal content of two spaces has unrelated addresses.

    Attributes:
        space: tenant.
        secret: 32 random bytes, made with the space's row.

    """

    space: str
    secret: bytes = field(repr=False)

    def thread_hash(self, thread_id: str) -> bytes:
        """Return the 32-byte key of a thread's row."""
        return _thread_hash(self.secret, thread_id)

    def address(self, owner: str, content: bytes | memoryview) -> bytes:
        """Return the address of content: BLAKE3 keyed by owner, 16 bytes."""
        return blake3(content, key=_owner_key(self.secret, owner)).digest(length=limits.ADDRESS_BYTES)

    def hidden(self, content: bytes) -> str:
        """Return what is stored instead of content that must not be: equal content gives equal text."""
        return blake3(b"hidden\0" + content, key=self.secret).digest(length=16).hex()

    def callback_hash(self, token: str) -> bytes:
        """Return the 32-byte keyed hash of a callback token: who reads the database cannot report."""
        return blake3(b"callback\0" + token.encode(), key=self.secret).digest()


@lru_cache(maxsize=limits.KEYS_CACHED_MAX)
def _thread_hash(secret: bytes, thread_id: str) -> bytes:
    return blake3(thread_id.encode(), key=secret).digest()


@lru_cache(maxsize=limits.KEYS_CACHED_MAX)
def _owner_key(secret: bytes, owner: str) -> bytes:
    return blake3(b"owner\0" + owner.encode(), key=secret).digest()


def fingerprint(*parts: bytes) -> bytes:
    """Return 16 bytes that change when any part, or the split between parts, changes."""
    framed = [piece for part in parts for piece in (len(part).to_bytes(8, "big"), part)]
    if sum(map(len, parts)) <= _JOINED_BYTES_MAX:
        return blake3(b"".join(framed)).digest(length=16)
    hasher = blake3()
    for piece in framed:
        hasher.update(piece)
    return hasher.digest(length=16)


_JOINED_BYTES_MAX = 65_536
"""Parts of so much are put together and hashed at once; of more, a copy would cost more than the calls."""
