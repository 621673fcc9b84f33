"""What recovery would do with the run of a bundle: the same rows, so the same plan and the same hash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime_persist.model.budgets import TicketState
from runtime_persist.model.domains import DomainState
from runtime_persist.model.states import OperationStatus, TryStatus
from runtime_persist.recovery import Found, RecoveryPlan, plan_of
from runtime_persist.recovery.found import goes_on

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime_persist.inspector.bundles.recovery import RecoveryBundle
    from runtime_persist.plan import Row


def plan_of_bundle(bundle: RecoveryBundle) -> RecoveryPlan:
    """Return what recovery would have done with the run at the moment the bundle was read."""
    return plan_of(_found(bundle))


def _found(bundle: RecoveryBundle) -> Found:
    run, rows = bundle.run, bundle.rows
    run_id = run["run_id"]
    checkpoints = {(row["checkpoint_ns"], row["checkpoint_id"]): row for row in rows["checkpoints"]}
    began = any(row["run_id"] == run_id for row in rows["checkpoints"])
    heads = [
        {**head, "created_us": checkpoints[head["checkpoint_ns"], head["checkpoint_id"]]["created_us"]}
        for head in rows["heads"]
        if (head["checkpoint_ns"], head["checkpoint_id"]) in checkpoints
    ]
    root = next((head for head in heads if not head["checkpoint_ns"]), None)
    anchored = root is not None and goes_on(run, began=began)
    since = root["created_us"] if anchored and root is not None else 0
    heads = [head for head in heads if anchored and head["created_us"] >= since]
    standing = {(head["checkpoint_ns"], head["checkpoint_id"]) for head in heads}
    stored = any(row["run_id"] == run_id and row["epoch"] == run["epoch"] for row in rows["checkpoints"])
    return Found(
        run=run,
        attempts=sorted(rows["attempts"], key=lambda row: row["attempt_no"]),
        progressed=stored or any(_succeeded(row, run) for row in rows["operation_tries"]),
        began=began,
        domains=[row for row in rows["domains"] if row["state"] == DomainState.OPEN],
        operations=[
            row for row in _with_tries(rows) if row["created_us"] >= since or row["status"] == OperationStatus.PENDING
        ],
        tickets=_tickets(rows),
        heads=heads,
        writes=[row for row in rows["writes"] if (row["checkpoint_ns"], row["checkpoint_id"]) in standing],
    )


def _succeeded(row: Row, run: Row) -> bool:
    ours = row["run_id"] == run["run_id"] and row["epoch"] == run["epoch"]
    return bool(ours and row["status"] == TryStatus.SUCCEEDED)


def _with_tries(rows: Mapping[str, Sequence[Row]]) -> list[Row]:
    tries = {(row["operation_id"], row["try_no"]): row for row in rows["operation_tries"]}
    attempts = {row["attempt_id"]: row for row in rows["attempts"]}
    found: list[Row] = []
    for row in rows["operations"]:
        last = tries.get((row["operation_id"], row["try_no"]), {})
        attempt = attempts.get(last.get("attempt_id"), {})
        said = {
            "try_status": last.get("status"),
            "try_epoch": last.get("epoch"),
            "try_attempt_status": attempt.get("status"),
        }
        found.append({**row, **said})
    return sorted(found, key=lambda row: (row["created_us"], row["operation_id"]))


def _tickets(rows: Mapping[str, Sequence[Row]]) -> list[Row]:
    operations = {row["operation_id"]: row for row in rows["operations"]}
    found: list[Row] = []
    for row in rows["tickets"]:
        if row["state"] == TicketState.RESERVED:
            call = operations.get(row["operation_id"], {})
            found.append({**row, "name": call.get("name"), "operation_status": call.get("status")})
    return found
