"""Errors of the database."""

from __future__ import annotations

from runtime_persist.errors.base import RuntimePersistError

__all__ = [
    "ConnectionLost",
    "InvariantBroken",
    "StoreBusy",
    "StoreFailed",
]


class StoreBusy(RuntimePersistError):
    """The database stayed busy for longer than the retries allow; nothing was written."""

    code = "STORE_BUSY"
    kind = "retry"


class ConnectionLost(RuntimePersistError):
    """The connection to the database was lost; nothing is known to be written."""

    code = "CONNECTION_LOST"
    kind = "retry"


class StoreFailed(RuntimePersistError):
    """The database refused the statement; nothing was written."""

    code = "STORE_FAILED"
    kind = "bug"


class InvariantBroken(RuntimePersistError):
    """Rows contradict each other; nothing was changed."""

    code = "PERSISTENCE_INVARIANT_BROKEN"
    kind = "bug"
