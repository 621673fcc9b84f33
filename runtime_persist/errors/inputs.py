"""Errors of bad input: what was asked for cannot be done as it was asked; nothing was written."""

from __future__ import annotations

from runtime_persist.errors.base import RuntimePersistError

__all__ = [
    "BundleTooLarge",
    "CheckpointNotFound",
    "Closed",
    "DatabaseUnavailable",
    "DomainNotFound",
    "InvalidInput",
    "InvalidThreadId",
    "InvalidUrl",
    "MissingDependency",
    "OperationNeedsRun",
    "OperationNotFound",
    "OperationOrder",
    "OperationUnsupported",
    "QuestionNotFound",
    "RunNotFound",
    "SchemaMissing",
    "SchemaTooNew",
    "ThreadNotEmpty",
    "ThreadNotFound",
    "UnknownGraph",
    "UnsafeWorkspace",
    "UnsupportedValue",
    "ValueTooLarge",
]


class InvalidInput(RuntimePersistError):
    """An argument cannot be used; nothing was written."""

    code = "INVALID_INPUT"
    kind = "invalid"


class InvalidUrl(InvalidInput):
    """The database URL cannot be used."""

    code = "INVALID_URL"


class InvalidThreadId(InvalidInput):
    """The thread id cannot be used: a non-empty text (or an int) of at most 1,024 bytes of UTF-8 is needed."""

    code = "INVALID_THREAD_ID"


class UnknownGraph(InvalidInput):
    """No graph of that name is registered in this process."""

    code = "UNKNOWN_GRAPH"


class RunNotFound(InvalidInput):
    """There is no run of that id in this space."""

    code = "RUN_NOT_FOUND"


class ThreadNotFound(InvalidInput):
    """Nothing is stored under that thread id (namespace, checkpoint id, channel) in this space."""

    code = "THREAD_NOT_FOUND"


class CheckpointNotFound(InvalidInput):
    """There is no checkpoint of that id where it was looked for."""

    code = "CHECKPOINT_NOT_FOUND"


class ThreadNotEmpty(InvalidInput):
    """A thread that something is to be copied to has checkpoints or runs already; use a new thread id."""

    code = "THREAD_NOT_EMPTY"


class QuestionNotFound(InvalidInput):
    """The run does not ask that; see runs.questions(run_id)."""

    code = "QUESTION_NOT_FOUND"


class OperationNotFound(InvalidInput):
    """There is no operation of that id in this space."""

    code = "OPERATION_NOT_FOUND"


class DomainNotFound(InvalidInput):
    """The run has no execution domain of that id."""

    code = "DOMAIN_NOT_FOUND"


class OperationNeedsRun(InvalidInput):
    """An operation was called inside a graph that is not bound to a run; call the graph through runtime.bind(graph)."""

    code = "OPERATION_NEEDS_RUN"


class OperationUnsupported(InvalidInput):
    """The operation cannot be journalled here; nothing was sent."""

    code = "OPERATION_UNSUPPORTED"


class OperationOrder(InvalidInput):
    """Calls of one operation are in flight at the same time in one task: tell them apart by key=."""

    code = "OPERATION_ORDER"


class UnsupportedValue(InvalidInput):
    """A value cannot be stored so that an equal one comes back; nothing was written."""

    code = "UNSUPPORTED_VALUE"


class ValueTooLarge(InvalidInput):
    """A value is larger than max_value_bytes; nothing was written."""

    code = "VALUE_TOO_LARGE"


class BundleTooLarge(InvalidInput):
    """A recovery bundle is larger than its limits allow; raise them, or leave its content out."""

    code = "BUNDLE_TOO_LARGE"


class UnsafeWorkspace(InvalidInput):
    """Runs of the graph would share one working directory at the same time; isolate it, or allow one run at a time."""

    code = "UNSAFE_WORKSPACE"


class MissingDependency(InvalidInput):
    """An optional dependency is not installed."""

    code = "MISSING_DEPENDENCY"


class SchemaMissing(InvalidInput):
    """The database has no runtime_persist tables; run `runtime-persist db upgrade` with a role that may create them."""

    code = "SCHEMA_MISSING"


class SchemaTooNew(InvalidInput):
    """The database schema has a newer major version than this code; upgrade runtime_persist."""

    code = "SCHEMA_TOO_NEW"


class DatabaseUnavailable(InvalidInput):
    """The database cannot be opened."""

    code = "DATABASE_UNAVAILABLE"


class Closed(InvalidInput):
    """The runtime or saver was closed, or belongs to a process that forked; open a new one."""

    code = "CLOSED"
