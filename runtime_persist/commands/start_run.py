"""start_run: a run is asked for and queued for a worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import content, run_rows
from runtime_persist.commands.parts.spec import ColdCommand, Decision, Event, Locked, RunChange, ThreadCommand
from runtime_persist.errors import InvariantBroken
from runtime_persist.model.guards import CONTROL
from runtime_persist.model.states import RunStatus
from runtime_persist.plan import done

if TYPE_CHECKING:
    from runtime_persist.commands.parts.run_request import RunRequest
    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRun(ThreadCommand):
    """Queue a run. Answer: ``run_id`` and ``thread_id`` (of the first run with this command id)."""

    request: RunRequest


def decide(command: StartRun, locked: Locked) -> Plan[Decision]:
    """Return the queued run as the last one of its thread."""
    thread, request, now = locked.thread, command.request, locked.now_us
    if thread is None:
        raise InvariantBroken
    created = request.row(thread, now)
    queued = run_rows.move_run(created, RunStatus.QUEUED, now, queued_us=now)
    facts = (Event("run.created", {"graph": request.graph}), Event("run.queued"))
    return done(
        Decision(
            {"run_id": request.run_id, "thread_id": command.thread_id},
            runs=[RunChange(None, queued, facts)],
            effects=[
                run_rows.save_thread(thread, owner_run_id=thread["owner_run_id"], run_no=thread["run_no"] + 1),
                *content.store(command.space, request.owner, request.blobs),
            ],
        )
    )


SPEC = ColdCommand(
    name="start_run",
    dto=StartRun,
    guard=CONTROL,
    decide=decide,
    statements=(run_rows.INSERT_RUN, run_rows.SAVE_THREAD, content.STORE_BLOB),
    locks_thread=True,
    locks_run=False,
    fingerprint=lambda command: command.request.fingerprint,
)
