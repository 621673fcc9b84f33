"""replace_thread_checkpoint: a checkpoint that is stored again under its id with other content (level L0 only).

The stock savers replace the row. The head stays where it is: a re-put is not a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Executable, update

from runtime_persist.commands.parts import checkpoint_rows, content
from runtime_persist.commands.parts.guards import FENCE
from runtime_persist.commands.parts.spec import HotCommand, ThreadCommand
from runtime_persist.dialects.sql import bind
from runtime_persist.errors import StaleWriter
from runtime_persist.model.guards import THREAD
from runtime_persist.plan import Fragment, Inputs
from runtime_persist.schema import checkpoints

if TYPE_CHECKING:
    from runtime_persist.commands.parts.checkpoint_rows import CheckpointRow


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceThreadCheckpoint(ThreadCommand):
    """Replace the stored checkpoint of ``row``'s id.

    Refused: a live run owns the thread (ThreadOwned); the checkpoint is gone (StaleWriter).
    """

    row: CheckpointRow

    @property
    def named_id(self) -> str:
        """Return the smallest checkpoint id this names."""
        return self.row.named_id


def _replace(inputs: Inputs) -> Executable:
    changed = ("parent_id", "body", "metadata", "fingerprint", "run_id", "epoch", "run_ref")
    return (
        update(checkpoints)
        .values(**{name: bind(checkpoints.c[name]) for name in changed})
        .where(
            *(
                checkpoints.c[name] == bind(checkpoints.c[name])
                for name in ("space", "thread_id", "checkpoint_ns", "checkpoint_id")
            ),
            inputs.gate(),
        )
    )


SPEC = HotCommand(
    name="replace_thread_checkpoint",
    dto=ReplaceThreadCheckpoint,
    guard=THREAD,
    receipt=Fragment("checkpoint", _replace, source=FENCE),
    effects=(content.fragment("checkpoint"),),
    params=lambda command: (
        checkpoint_rows.params(command, command.row, None, None)[0]
        | {"thread_hash": command.thread_hash, "named_id": command.named_id},
        {"blobs": content.rows(command.row.blobs)},
    ),
    lookup=lambda command: checkpoint_rows.lookup(command.space, command.thread_id, command.row),
    fingerprint=lambda command: command.row.fingerprint,
    refuse=lambda command, _: StaleWriter(
        f"checkpoint {command.row.checkpoint_id} of thread {command.thread_id!r} is gone",
        checkpoint_id=command.row.checkpoint_id,
    ),
)
