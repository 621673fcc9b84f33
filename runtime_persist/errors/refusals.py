"""Errors of refusals: somebody else owns it, came first, or has to be waited for."""

from __future__ import annotations

from runtime_persist.errors.base import RuntimePersistError

__all__ = [
    "AlreadyAnswered",
    "CallbackRefused",
    "CapacityReached",
    "CapacityUnknown",
    "CheckpointConflict",
    "ClockWentBack",
    "CommandMismatch",
    "ConsumerMoved",
    "Fenced",
    "IdempotencyMismatch",
    "IllegalTransition",
    "LeaseExpired",
    "LeaseLost",
    "LeaseReleased",
    "NothingToClaim",
    "OperationMismatch",
    "RecoveryPlanChanged",
    "ReportIgnored",
    "RunStopping",
    "SpaceIncomplete",
    "SpaceReadOnly",
    "SpaceTaken",
    "StaleWriter",
    "ThreadBusy",
    "ThreadDeleted",
    "ThreadMismatch",
    "ThreadMovedOn",
    "ThreadOwned",
    "TicketsTaken",
    "WorkspaceBusy",
]


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


class TicketsTaken(RuntimePersistError):
    """All that is left of the run's budget is reserved by calls that are being made; wait until one is settled."""

    code = "TICKETS_TAKEN"
    kind = "conflict"
