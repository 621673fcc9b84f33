"""What recovery would do, as pure code: situation (from rows) -> action, reason, effect outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from runtime_persist.model.shown import shown_status
from runtime_persist.model.states import FINAL_RUN, OperationStatus, RunStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Action(BaseModel):
    """One thing recovery would do.

    Attributes:
        subject: run or operation id.
        situation: what the rows say.
        action: what would be done.
        outside: effect outside the database: ``none``, ``call``, ``repeat with the same key``, ``a person decides``.

    """

    model_config = ConfigDict(frozen=True)

    subject: str
    situation: str
    action: str
    outside: str


_RUN = {
    "unknown": (
        "it may have started, its lease ran out, and nothing proves what became of it",
        "a worker claims it under the next epoch, revokes the old one, and resumes at the last checkpoint",
    ),
    "queued": ("it was never sent to a runtime, or yielded", "a worker claims and starts it"),
    "waiting_approval": ("it waits for a person", "nothing until somebody answers"),
    "running": ("a live lease holds it", "nothing while the lease is renewed"),
    "starting": ("a live lease holds it", "nothing while the lease is renewed"),
    "cancelling": ("it takes no new work", "it ends as cancelled once it has stopped"),
    "retry_wait": ("it waits for its next attempt", "a worker claims it for a new attempt when its time comes"),
    "created": ("it is not queued yet", "nothing"),
}


def plan(run: Mapping[str, Any], operations: Sequence[Mapping[str, Any]], now_us: int) -> list[Action]:
    """Return what recovery would do with a run and its operations.

    Args:
        run: its row.
        operations: rows of its operations with ``try_status`` of the last try.
        now_us: database clock in microseconds.

    """
    run_id = run["run_id"]
    if RunStatus(run["status"]) in FINAL_RUN:
        return [Action(subject=run_id, situation=f"it {run['status']}", action="nothing", outside="none")]
    shown = shown_status(run, now_us)
    situation, action = _RUN[shown]
    actions = [Action(subject=run_id, situation=situation, action=action, outside="none")]
    live = shown in {"running", "starting", "cancelling"}
    for operation in operations:
        if operation["status"] == OperationStatus.PENDING:
            actions.append(_pending(operation, live=live))
        elif operation["status"] == OperationStatus.SUCCEEDED:
            actions.append(
                Action(
                    subject=operation["operation_id"],
                    situation=f"{operation['name']}: its result is stored",
                    action="the stored result is returned",
                    outside="none",
                ),
            )
    return actions


def _pending(operation: Mapping[str, Any], *, live: bool) -> Action:
    name, subject = operation["name"], operation["operation_id"]
    if live and operation["try_status"] == "started":
        return Action(
            subject=subject,
            situation=f"{name}: a call is in flight",
            action="nothing",
            outside="in flight",
        )
    situation = f"{name}: try {operation['try_no']} started and nothing proves what became of it"
    done = {
        "retry": ("it is called again with the same idempotency key", "repeat with the same key"),
        "fail": ("it fails with OperationFailed and is not called again", "none"),
        "ask": ("the run waits with the question", "a person decides"),
    }
    action, outside = done[operation["on_unknown"]]
    return Action(subject=subject, situation=situation, action=action, outside=outside)
