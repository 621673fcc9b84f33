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


@lru_cache(maxsize=limits.KEYS_CACHED_MAX)
def _thread_hash(secret: bytes, thread_id: str) -> bytes:
    return blake3(thread_id.encode(), key=secret).digest()


@lru_cache(maxsize=limits.KEYS_CACHED_MAX)
def _owner_key(secret: bytes, owner: str) -> bytes:
    return blake3(b"owner\0" + owner.encode(), key=secret).digest()


def fingerprint(*parts: bytes) -> bytes:
    """Return 16 bytes that change when any part, or the split between parts, changes."""
    hasher = blake3()
    for part in parts:
        hasher.update(len(part).to_bytes(8, "big"))
        hasher.update(part)
    return hasher.digest(length=16)
