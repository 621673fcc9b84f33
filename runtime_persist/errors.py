"""Every error the package raises, in one tree.

Each class has a stable ``code`` (for programs), a ``kind`` (what sort of thing happened) and a message that says
what is wrong and what to do next. The docstring is the default message. The native error, when there is one, is
kept as ``__cause__``.

Errors derive from :class:`RuntimeError` on purpose: LangGraph's executors drop ``GraphBubbleUp`` and
``CancelledError`` raised by a saver, and its default retry policy does not retry ``RuntimeError``.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

Kind = Literal["retry", "conflict", "fenced", "invalid", "corrupt", "unknown", "failed", "bug"]


class RuntimePersistError(RuntimeError):
    """Something went wrong in runtime_persist."""

    code: ClassVar[str] = "RUNTIME_PERSIST"
    kind: ClassVar[Kind] = "bug"

    def __init__(self, message: str = "", **details: Any) -> None:
        """Keep ``details`` (ids, epochs, names) beside the message; without a message the docstring is used."""
        self.message = message or (type(self).__doc__ or "").strip().split("\n", 1)[0]
        self.details = details
        super().__init__(self.message)

    def __str__(self) -> str:
        """Return the code and the message, as logs and terminals show it."""
        return f"[{self.code}] {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with message and details (multiprocessing hands errors over)."""
        return _rebuild, (type(self), self.message, self.details)


def _rebuild(cls: type[RuntimePersistError], message: str, details: dict[str, Any]) -> RuntimePersistError:
    return cls(message, **details)


# --- bad input -------------------------------------------------------------------------------------------------


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


# --- refused by ownership -----------------------------------------------------------------------------------------


class Fenced(RuntimePersistError):
    """The write was refused: the writer no longer owns the run."""

    code = "FENCED"
    kind = "fenced"


class LeaseLost(Fenced):
    """The lease was taken over by a newer epoch; nothing of this writer counts any more."""

    code = "LEASE_LOST"


class LeaseExpired(Fenced):
    """The lease ran out; an expired lease is never renewed: claim the run again (L1: invoke(None))."""

    code = "LEASE_EXPIRED"


class LeaseReleased(Fenced):
    """The lease was released; claim the run again before writing."""

    code = "LEASE_RELEASED"


class ThreadMismatch(Fenced):
    """The session is bound to a lease of another thread."""

    code = "THREAD_MISMATCH"


class RunStopping(Fenced):
    """The run is being stopped: results of work in flight are accepted, new work is not."""

    code = "RUN_STOPPING"


class ThreadOwned(RuntimePersistError):
    """A live run owns this thread; wait for it, cancel it, or use another thread id."""

    code = "THREAD_OWNED"
    kind = "conflict"


class ThreadBusy(RuntimePersistError):
    """The thread has an open run, and on_busy="reject" asks for none; nothing was written."""

    code = "THREAD_BUSY"
    kind = "conflict"


class ThreadMovedOn(RuntimePersistError):
    """A later run of the thread has begun since; retry that one, or start a new run at a checkpoint."""

    code = "THREAD_MOVED_ON"
    kind = "conflict"


class AlreadyAnswered(RuntimePersistError):
    """The question was answered before; the first answer counts."""

    code = "ALREADY_ANSWERED"
    kind = "conflict"


class ConsumerMoved(RuntimePersistError):
    """Another process acknowledged events under the same consumer's name; what it did not handle comes again."""

    code = "CONSUMER_MOVED"
    kind = "conflict"


class WorkspaceBusy(RuntimePersistError):
    """Another attempt or node works in this directory; give each its own, or wait."""

    code = "WORKSPACE_BUSY"
    kind = "conflict"


class StaleWriter(RuntimePersistError):
    """Another writer moved this thread on since it was loaded; load the thread again and repeat the call."""

    code = "STALE_WRITER"
    kind = "conflict"


class SpaceReadOnly(RuntimePersistError):
    """The space is an imported bundle: it is looked at, and nothing is claimed, resumed or written there."""

    code = "SPACE_READ_ONLY"
    kind = "conflict"


class SpaceIncomplete(RuntimePersistError):
    """A bundle was being imported into the space, and that never ended; import the same file again to finish it."""

    code = "SPACE_INCOMPLETE"
    kind = "conflict"


class SpaceTaken(RuntimePersistError):
    """The space is there already, and is not of this bundle; import it into another one."""

    code = "SPACE_TAKEN"
    kind = "conflict"


class ThreadDeleted(RuntimePersistError):
    """The thread was deleted after this checkpoint was made; start anew on it, or use another thread id."""

    code = "THREAD_DELETED"
    kind = "conflict"


class ClockWentBack(RuntimePersistError):
    """A checkpoint's id is not greater than its parent's: the clock of this process is behind; set it right."""

    code = "CLOCK_WENT_BACK"
    kind = "conflict"


class CheckpointConflict(RuntimePersistError):
    """A checkpoint with this id and other content is already stored."""

    code = "CHECKPOINT_CONFLICT"
    kind = "conflict"


class CommandMismatch(RuntimePersistError):
    """This command id was already used for another request."""

    code = "COMMAND_MISMATCH"
    kind = "conflict"


class IdempotencyMismatch(RuntimePersistError):
    """This idempotency key was already used for another request; use a new key for a new request."""

    code = "IDEMPOTENCY_MISMATCH"
    kind = "conflict"


class OperationMismatch(RuntimePersistError):
    """An operation with this identity was journalled with other arguments; give it a key or keep the order of calls."""

    code = "OPERATION_MISMATCH"
    kind = "conflict"


class IllegalTransition(RuntimePersistError):
    """The run or attempt is in a state from which this is not possible."""

    code = "ILLEGAL_TRANSITION"
    kind = "conflict"


class NothingToClaim(RuntimePersistError):
    """The run cannot be claimed now."""

    code = "NOTHING_TO_CLAIM"
    kind = "conflict"


class RecoveryPlanChanged(RuntimePersistError):
    """A run is not as the recovery plan saw it, so nothing was done; look again."""

    code = "RECOVERY_PLAN_CHANGED"
    kind = "conflict"


class CapacityReached(RuntimePersistError):
    """All places are taken: slots of the instance, runs of the graph, or the run's scope; wait until one is free."""

    code = "CAPACITY_REACHED"
    kind = "conflict"


class CapacityUnknown(RuntimePersistError):
    """The instance has no report that counts: none, one that ran out, or another instance's; report, then claim."""

    code = "CAPACITY_UNKNOWN"
    kind = "conflict"


class ReportIgnored(RuntimePersistError):
    """A report about an attempt is a duplicate, was overtaken, has no sequence or is late; nothing was changed."""

    code = "REPORT_IGNORED"
    kind = "conflict"


class CallbackRefused(RuntimePersistError):
    """The callback token is not this attempt's, has expired or was revoked; nothing was changed."""

    code = "CALLBACK_REFUSED"
    kind = "fenced"


# --- not provable -------------------------------------------------------------------------------------------------


class OutcomeUnknown(RuntimePersistError):
    """The connection was lost around the commit and the receipt cannot be read; look it up by its command id."""

    code = "OUTCOME_UNKNOWN"
    kind = "unknown"


class OperationUnknown(RuntimePersistError):
    """An earlier try of this operation started and nothing proves what became of it; a person has to say."""

    code = "OPERATION_UNKNOWN"
    kind = "unknown"


class BudgetExhausted(RuntimePersistError):
    """The run's budget is spent: it waits for a person, who raises it (runs.raise_budget) or cancels the run."""

    code = "BUDGET_EXHAUSTED"
    kind = "unknown"


class DomainsOpen(RuntimePersistError):
    """The run has execution domains that may still write outside; each must be proved revoked first."""

    code = "DOMAINS_OPEN"
    kind = "unknown"


class CheckpointNotDurable(RuntimePersistError):
    """The checkpoint this task runs on was not stored in time; the operation was not started."""

    code = "CHECKPOINT_NOT_DURABLE"
    kind = "unknown"


class ResultPending(RuntimePersistError):
    """The run has no result yet."""

    code = "RESULT_PENDING"
    kind = "unknown"


# --- stored data is wrong -----------------------------------------------------------------------------------------


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


# --- work that failed ---------------------------------------------------------------------------------------------


class TicketsTaken(RuntimePersistError):
    """All that is left of the run's budget is reserved by calls that are being made; wait until one is settled."""

    code = "TICKETS_TAKEN"
    kind = "conflict"


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


# --- the database ---------------------------------------------------------------------------------------------------


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
