"""From a claim to a running attempt: activate the lease, write the start fence, report what is seen of the attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime_persist.commands.activate_lease import ActivateLease
from runtime_persist.commands.report_attempt_event import ReportAttemptEvent
from runtime_persist.commands.request_start import RequestStart
from runtime_persist.model.evidence import IN_PROCESS, Observed
from runtime_persist.model.ids import new_id

if TYPE_CHECKING:
    from runtime_persist.engine.flow import Flow
    from runtime_persist.engine.owned import OwnedRun


def leased(owned: OwnedRun) -> dict[str, Any]:
    """Return the fields of a command under a worker's lease."""
    lease = owned.lease
    return {
        "space": lease.space,
        "run_id": lease.run_id,
        "epoch": lease.epoch,
        "actor": f"worker:{lease.worker_id}",
    }


def activate_lease(owned: OwnedRun) -> Flow[None]:
    """Activate a claimed lease: an attempt may be started under it now, and ``owned`` knows which."""
    receipt = yield owned.coordinator.commit(
        ActivateLease(command_id=new_id(), attempt_id=new_id(), **leased(owned)),
    )
    owned.attempt_id = receipt.result["attempt_id"]


def request_start(
    owned: OwnedRun,
    *,
    runtime: str = IN_PROCESS,
    handle: str | None = None,
    callback_hash: bytes | None = None,
    callback_ttl_us: int = 0,
) -> Flow[None]:
    """Write the start fence of the attempt; nothing of it is sent anywhere before this is committed."""
    yield owned.coordinator.commit(
        RequestStart(
            command_id=new_id(),
            attempt_id=owned.attempt_id,
            runtime=runtime,
            handle=handle,
            callback_hash=callback_hash,
            callback_ttl_us=callback_ttl_us,
            **leased(owned),
        ),
    )


def report(owned: OwnedRun, observed: Observed, sequence: int) -> Flow[None]:
    """Report what was seen of the attempt."""
    yield owned.coordinator.commit(
        ReportAttemptEvent(
            command_id=new_id(),
            attempt_id=owned.attempt_id,
            observed=observed,
            sequence=sequence,
            **leased(owned),
        ),
    )


def activate(owned: OwnedRun) -> Flow[None]:
    """Activate, start and report an attempt that this process executes itself, right away.

    An in-process attempt opens no execution domain: its writes that count are fenced ones.
    """
    yield from activate_lease(owned)
    yield from request_start(owned)
    yield from report(owned, Observed.RUNNING, 1)
