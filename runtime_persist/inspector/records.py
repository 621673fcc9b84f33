"""What the commands of the command line list, out of a bundle instead of a database: the same records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime_persist.errors import OperationNotFound, RunNotFound
from runtime_persist.inspector.bundle import view_of
from runtime_persist.inspector.operations import OperationDetails, OperationRow
from runtime_persist.model.domains import Domain
from runtime_persist.model.records import EventRecord, RunRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime_persist.inspector.bundles.recovery import RecoveryBundle


def run_of(bundle: RecoveryBundle, run_id: str) -> RunRecord:
    """Return the run (raises RunNotFound: the bundle is of another one)."""
    if run_id != bundle.manifest.run_id:
        msg = f"the bundle is of run {bundle.manifest.run_id}, not of {run_id!r}"
        raise RunNotFound(msg, run_id=run_id)
    return RunRecord.of(bundle.run)


def events_of(bundle: RecoveryBundle, run_id: str, after: int = 0) -> list[EventRecord]:
    """Return the run's events behind a number (raises RunNotFound)."""
    run_of(bundle, run_id)
    return [EventRecord.of(row) for row in bundle.rows["events"] if row["seq"] > after]


def domains_of(bundle: RecoveryBundle, run_id: str) -> Sequence[Domain]:
    """Return the run's execution domains, oldest first (raises RunNotFound)."""
    run_of(bundle, run_id)
    rows = sorted(bundle.rows["domains"], key=lambda row: (row["opened_us"], row["domain_id"]))
    return [Domain.of(row) for row in rows]


def operations_of(
    bundle: RecoveryBundle, limit: int, *, unknown: bool = False, before: str | None = None
) -> list[OperationRow]:
    """Return the run's newest calls; ``before``: only those with a smaller id."""
    rows = {row["operation_id"]: row for row in bundle.rows["operations"]}
    found: list[OperationRow] = []
    for one in reversed(view_of(bundle).operations):
        if not one.tries or (unknown and (one.status != "pending" or one.tries[-1].shown != "unknown")):
            continue
        if before is None or one.operation_id < before:
            last = one.tries[-1]
            said = {"shown": last.shown, "run_id": last.run_id}
            found.append(OperationRow.model_validate({**rows[one.operation_id], **said}, extra="ignore"))
    return found[:limit]


def operation_of(bundle: RecoveryBundle, operation_id: str) -> OperationDetails:
    """Return one call with its tries (raises OperationNotFound)."""
    for one in view_of(bundle).operations:
        if one.operation_id == operation_id:
            (row,) = (row for row in bundle.rows["operations"] if row["operation_id"] == operation_id)
            return OperationDetails.model_validate({**row, "tries": one.tries})
    msg = f"there is no operation {operation_id!r} in the bundle of run {bundle.manifest.run_id}"
    raise OperationNotFound(msg, operation_id=operation_id)
