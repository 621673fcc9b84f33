"""put_thread_writes: somebody without a lease stores the writes of one task (level L0). Hot: one bundle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime_persist.commands.parts import write_rows
from runtime_persist.commands.parts.guards import FENCE
from runtime_persist.commands.parts.spec import HotCommand, ThreadCommand
from runtime_persist.errors import InvariantBroken
from runtime_persist.model.guards import THREAD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime_persist.commands.parts.write_rows import TaskWrites


@dataclass(frozen=True, slots=True, kw_only=True)
class PutThreadWrites(ThreadCommand):
    """Store the writes of one task; its checkpoint may not be stored yet.

    Refused: a live run owns the thread (ThreadOwned).
    """

    given: TaskWrites

    @property
    def named_id(self) -> str:
        """Return the smallest checkpoint id this names."""
        return self.given.checkpoint_id


def _params(command: PutThreadWrites) -> tuple[Mapping[str, Any], Mapping[str, Sequence[Mapping[str, Any]]]]:
    params, rows = write_rows.params(command, command.given, None, None)
    return params | {"thread_hash": command.thread_hash, "named_id": command.named_id}, rows


SPEC = HotCommand(
    name="put_thread_writes",
    dto=PutThreadWrites,
    guard=THREAD,
    receipt=write_rows.REGULAR,
    effects=(write_rows.SPECIAL, write_rows.BLOBS),
    params=_params,
    lookup=lambda command: write_rows.lookup(command.space, command.thread_id, command.given),
    fingerprint=lambda command: command.given.fingerprint(),
    accepted=lambda outcome: outcome.counts[FENCE] == 1,
    refuse=lambda _command, _outcome: InvariantBroken(),
)
