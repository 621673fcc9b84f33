"""The operation journal: what nodes and tools call, so that nothing outside happens twice unnoticed."""

from __future__ import annotations

from runtime_persist.journal.operation import OnUnknown, operation
from runtime_persist.journal.outcomes import DidNotHappen, Happened, Reconcile, StillUnknown, Try
from runtime_persist.journal.step import step
from runtime_persist.journal.workspace import workspace

__all__ = [
    "DidNotHappen",
    "Happened",
    "OnUnknown",
    "Reconcile",
    "StillUnknown",
    "Try",
    "operation",
    "step",
    "workspace",
]
