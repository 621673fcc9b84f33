"""commit_workflow_checkpoint: the holder of a lease stores a checkpoint of its thread. Hot: one bundle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import checkpoint_rows
from runtime_persist.commands.parts.guards import FENCE
from runtime_persist.commands.parts.spec import HotCommand, LeaseCommand
from runtime_persist.errors import CheckpointConflict
from runtime_persist.model.guards import LEASE_ACTIVE

if TYPE_CHECKING:
    from runtime_persist.commands.parts.checkpoint_rows import CheckpointRow


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitWorkflowCheckpoint(LeaseCommand):
    """Store ``row`` as a checkpoint of ``thread_id`` and make it the head of its namespace.

    Refused: the lease is lost, released or expired; another checkpoint has this id (CheckpointConflict).
    """

    thread_id: str
    row: CheckpointRow


def _conflict(command: CommitWorkflowCheckpoint) -> CheckpointConflict:
    return CheckpointConflict(
        f"checkpoint {command.row.checkpoint_id} of thread {command.thread_id!r} is stored with other content",
        checkpoint_id=command.row.checkpoint_id,
    )


SPEC = HotCommand(
    name="commit_workflow_checkpoint",
    dto=CommitWorkflowCheckpoint,
    guard=LEASE_ACTIVE,
    receipt=checkpoint_rows.receipt(FENCE),
    effects=(checkpoint_rows.BLOBS, checkpoint_rows.MOVE_HEAD),
    params=lambda command: checkpoint_rows.params(command, command.row, command.run_id, command.epoch),
    lookup=lambda command: checkpoint_rows.lookup(command.space, command.thread_id, command.row),
    fingerprint=lambda command: command.row.fingerprint,
    refuse=lambda command, _: _conflict(command),
    conflict=_conflict,
)
