"""expire_delete_marks: the marks of threads that were deleted long ago go; nothing of those threads is left then."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, select

from runtime_persist.commands.parts.spec import ColdCommand, Command, Decision, Locked
from runtime_persist.dialects.sql import among, bind, now_us, number
from runtime_persist.model.guards import CONTROL
from runtime_persist.plan import Call, Plan, Query, many
from runtime_persist.schema import threads


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireDeleteMarks(Command):
    """Delete marks that are older than ``kept_us`` by the database's clock, oldest first. Answer: ``expired``.

    The mark of a thread that was used again since stays: its row is the thread's. So does one that somebody is
    writing to at this moment.

    Attributes:
        kept_us: microseconds that a mark is kept for.
        rows_max: at most so many in one transaction; the caller sends the next one.

    """

    kept_us: int
    rows_max: int


_T = threads.c
# Nobody waits here: a row that is locked is one that its thread is returning to.
LOCK_MARKS = Query(
    "lock_old_marks",
    select(_T.thread_hash)
    .where(
        _T.space == bind(_T.space),
        _T.thread_id.is_(None),
        _T.deleted_us <= now_us() - number("kept_us"),
    )
    .order_by(_T.deleted_us)
    .limit(number("rows_max"))
    .with_for_update(skip_locked=True),
)
DELETE_MARKS = Query(
    "delete_old_marks",
    delete(threads).where(_T.space == bind(_T.space), among(_T.thread_hash, "hashes")),
    each="hashes",
)


def decide(command: ExpireDeleteMarks, locked: Locked) -> Plan[Decision]:
    """Return the deletes of the marks that were locked."""
    del locked
    found = yield from many(LOCK_MARKS, space=command.space, kept_us=command.kept_us, rows_max=command.rows_max)
    hashes = [row["thread_hash"] for row in found]
    return Decision(
        {"expired": len(hashes)},
        effects=[Call(DELETE_MARKS, {"space": command.space, "hashes": hashes})],
    )


SPEC = ColdCommand(
    name="expire_delete_marks",
    dto=ExpireDeleteMarks,
    guard=CONTROL,
    decide=decide,
    statements=(LOCK_MARKS, DELETE_MARKS),
    locks_run=False,
)
