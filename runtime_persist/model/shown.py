"""The status shown to a person: derived when read, never stored (design: domain §3.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime_persist.model.evidence import Observed
from runtime_persist.model.states import FINAL_RUN, Control, LeasePhase, RunStatus

if TYPE_CHECKING:
    from collections.abc import Mapping


def shown_status(run: Mapping[str, Any], now_us: int) -> str:
    """Return what a person is told about a run.

    ``unknown`` is said when nothing proves what became of it: it is lost, or its lease ran out after it may have
    started. Args: the run's row and the database clock in microseconds.
    """
    status = RunStatus(run["status"])
    if status in FINAL_RUN:
        return status.value
    stale = run["phase"] != LeasePhase.RELEASED and run["expires_us"] <= now_us
    dispatched = status is RunStatus.DISPATCHING
    observed = run.get("observed_state") if dispatched else None  # of an attempt past its start fence
    if status is RunStatus.LOST or (stale and (status is RunStatus.RUNNING or observed is not None)):
        return "unknown"
    if run["control"] == Control.STOPPING:
        return "cancelling"
    if dispatched and not stale:
        return "waiting_runtime" if observed == Observed.ACCEPTED else "starting"
    return "queued" if dispatched else status.value
