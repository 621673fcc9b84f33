"""Errors of work that failed: operations, attempts, runs."""

from __future__ import annotations

from runtime_persist.errors.base import RuntimePersistError

__all__ = [
    "AttemptFailed",
    "OperationFailed",
    "RunCancelled",
    "RunFailed",
    "RuntimeFailed",
]


class OperationFailed(RuntimePersistError):
    """The journal holds a failure of this operation."""

    code = "OPERATION_FAILED"
    kind = "failed"


class RunFailed(RuntimePersistError):
    """The run ended without a result."""

    code = "RUN_FAILED"
    kind = "failed"


class RuntimeFailed(RuntimePersistError):
    """A runtime could not start an attempt; nothing of it was executed."""

    code = "RUNTIME_FAILED"
    kind = "retry"


class AttemptFailed(RuntimePersistError):
    """An attempt failed in its runtime; the run is attempted again as its retry policy says."""

    code = "ATTEMPT_FAILED"
    kind = "failed"


class RunCancelled(RunFailed):
    """The run was cancelled."""

    code = "RUN_CANCELLED"
