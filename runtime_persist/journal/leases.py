"""What every command under a run's lease says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime_persist.engine import OwnedRun


def leased(owned: OwnedRun) -> dict[str, Any]:
    """Return the fields of a command under a run's lease."""
    lease = owned.lease
    return {
        "space": lease.space,
        "run_id": lease.run_id,
        "epoch": lease.epoch,
        "actor": f"worker:{lease.worker_id}",
    }
