"""The commit coordinator: the transaction path, retries, receipts of unknown outcomes."""

from __future__ import annotations

from runtime_persist.coordinator.commit import CommitCoordinator
from runtime_persist.coordinator.transaction import CommitReceipt

__all__ = ["CommitCoordinator", "CommitReceipt"]
