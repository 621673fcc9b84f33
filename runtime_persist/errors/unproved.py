"""Errors of what nobody can prove, or nobody knows yet."""

from __future__ import annotations

from runtime_persist.errors.base import RuntimePersistError

__all__ = [
    "BudgetExhausted",
    "CheckpointNotDurable",
    "DomainsOpen",
    "OperationUnknown",
    "OutcomeUnknown",
    "ResultPending",
]


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
