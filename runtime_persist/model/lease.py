"""The execution lease: the right to commit for a run."""

from __future__ import annotations

from dataclasses import dataclass

MANUAL_GRAPH = "lease"
"""Graph name of runs that were made by ``runtime.lease()``: nothing can be resumed there."""

EMPTY_DOMAIN_SET = "empty-domain-set"
"""Revocation of a run that never opened an execution domain: its only writes that count are fenced ones."""

ALL_REVOKED = "all-domains-revoked"
"""Revocation of a run that opened execution domains: each of them has its receipt."""

BLOCKED = "blocked"
"""Instead of a revocation: who claimed the run could not prove that its domains are revoked; nothing starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionLease:
    """The right of one worker to commit for a run; only the epoch decides, and it only grows.

    Attributes:
        space: tenant.
        run_id: the run.
        thread_id: the run's thread (None: a run without a thread).
        epoch: the fencing token.
        worker_id: who holds it; never compared, names are reused.
        attempt_id: the attempt running under this epoch ("" while recovering).

    """

    space: str
    run_id: str
    thread_id: str
    epoch: int
    worker_id: str
    attempt_id: str = ""
