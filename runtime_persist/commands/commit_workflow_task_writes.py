"""commit_workflow_task_writes: the holder of a lease stores the writes of one task. Hot: one bundle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import write_rows
from runtime_persist.commands.parts.guards import FENCE
from runtime_persist.commands.parts.spec import HotCommand, LeaseCommand
from runtime_persist.errors import InvariantBroken
from runtime_persist.model.guards import LEASE_ACTIVE

if TYPE_CHECKING:
    from runtime_persist.commands.parts.write_rows import TaskWrites


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitWorkflowTaskWrites(LeaseCommand):
    """Store the writes of one task; its checkpoint may not be stored yet.

    Refused: the lease is lost, released or expired.
    """

    thread_id: str
    given: TaskWrites


SPEC = HotCommand(
    name="commit_workflow_task_writes",
    dto=CommitWorkflowTaskWrites,
    guard=LEASE_ACTIVE,
    receipt=write_rows.REGULAR,
    effects=(write_rows.SPECIAL, write_rows.BLOBS),
    params=lambda command: write_rows.params(command, command.given, command.run_id, command.epoch),
    lookup=lambda command: write_rows.lookup(command.space, command.thread_id, command.given),
    fingerprint=lambda command: command.given.fingerprint(),
    # Rows that are there already keep their place (first wins), so the fence alone says whether it was accepted.
    accepted=lambda outcome: outcome.counts[FENCE] == 1,
    refuse=lambda _command, _outcome: InvariantBroken(),
)
