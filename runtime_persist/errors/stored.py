"""Errors of stored data that is wrong, or that this code cannot or may not load."""

from __future__ import annotations

from runtime_persist.errors.base import RuntimePersistError

__all__ = [
    "CheckpointCorrupt",
    "IncompatibleClass",
    "UnknownFormat",
    "UntrustedType",
]


class CheckpointCorrupt(RuntimePersistError):
    """Stored content is missing or does not have the hash of its address."""

    code = "CHECKPOINT_CORRUPT"
    kind = "corrupt"


class UnknownFormat(RuntimePersistError):
    """Stored data has a format version this code does not know; upgrade runtime_persist."""

    code = "UNKNOWN_FORMAT"
    kind = "corrupt"


class UntrustedType(RuntimePersistError):
    """A stored value names a class or a call that may not be used to load it; nothing was imported or called."""

    code = "UNTRUSTED_TYPE"
    kind = "corrupt"


class IncompatibleClass(RuntimePersistError):
    """A stored value cannot be built of its class as it is now; change it back, or use register_upgrade."""

    code = "INCOMPATIBLE_CLASS"
    kind = "corrupt"
