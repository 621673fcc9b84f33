"""copy_thread: a thread's checkpoints, writes and journal under another id; content is shared, not copied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import thread_copies
from runtime_persist.commands.parts.spec import ColdCommand, Decision, Locked, ThreadCommand
from runtime_persist.errors import InvalidInput, InvariantBroken
from runtime_persist.model.guards import THREAD

if TYPE_CHECKING:
    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyThread(ThreadCommand):
    """Copy ``source_id`` to this (empty) thread, at a checkpoint boundary of the source.

    Refused: a live run owns the target (ThreadOwned); the target is not empty (ThreadNotEmpty), or was deleted
    (ThreadDeleted).
    """

    source_id: str
    source_hash: bytes


def decide(command: CopyThread, locked: Locked) -> Plan[Decision]:
    """Return the copies, of a source that cannot move meanwhile."""
    if locked.thread is None:
        raise InvariantBroken
    if command.source_id == command.thread_id:
        msg = f"thread {command.thread_id!r} cannot be copied onto itself"
        raise InvalidInput(msg)
    yield from thread_copies.check_target(command.space, locked.thread)
    yield from thread_copies.hold_source(command.space, command.source_id, command.source_hash)
    copies = thread_copies.copy_whole(command.space, command.source_id, command.thread_id)
    return Decision({}, effects=copies)


SPEC = ColdCommand(
    name="copy_thread",
    dto=CopyThread,
    guard=THREAD,
    decide=decide,
    statements=(*thread_copies.CHECKS, *thread_copies.WHOLE),
    locks_thread=True,
    locks_run=False,
)
