"""A run that is rolled back: its thread goes back to where the run began, in the transaction that ends the run.

What the run stored in the thread goes, as if the run had not been: its checkpoints, and what was put on top of them
meanwhile (a person's edit of the state is made of them), in every namespace. What it did outside stays in the journal,
and the run itself stays with its events: facts are not undone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, func, or_, select

from runtime_persist.commands.parts import head_rows
from runtime_persist.commands.parts.spec import Event
from runtime_persist.dialects.sql import bind, words
from runtime_persist.model.states import FINAL_RUN
from runtime_persist.plan import Call, Plan, Query, Row, one_or_none
from runtime_persist.schema import checkpoints, writes

if TYPE_CHECKING:
    from runtime_persist.commands.parts.taking import Taken

_C, _W = checkpoints.c, writes.c
_NOTHING = "\U0010ffff"  # greater than every id

READ_BEGINNING = Query(
    "read_beginning",
    select(func.min(_C.checkpoint_id).label("first_id"), func.max(_C.orphan).label("orphan")).where(
        _C.space == bind(_C.space), _C.thread_id == bind(_C.thread_id), _C.run_id == bind(_C.run_id)
    ),
)
# Ids of one thread never go back and its runs come one behind the other: from the run's first checkpoint on
# everything is the run's, or stands on it. Writes of its own may also lie on the checkpoint it began at.
DELETE_WRITES = Query(
    "delete_writes_rolled_back",
    delete(writes).where(
        _W.space == bind(_W.space),
        _W.thread_id == bind(_W.thread_id),
        or_(_W.checkpoint_id >= words("first_id"), _W.run_id == bind(_W.run_id)),
    ),
)
DELETE_CHECKPOINTS = Query(
    "delete_checkpoints_rolled_back",
    delete(checkpoints).where(
        _C.space == bind(_C.space), _C.thread_id == bind(_C.thread_id), _C.checkpoint_id >= words("first_id")
    ),
)
STATEMENTS = (READ_BEGINNING, DELETE_WRITES, DELETE_CHECKPOINTS, *head_rows.STATEMENTS)


def roll_back(run: Taken) -> Plan[None]:
    """Take the thread back to where the run began, if the run has ended and is one that is to be rolled back.

    The thread is locked, so nothing is put or pruned between the look and the deletes.
    """
    row = run.run
    if not row["rolls_back"] or row["status"] not in FINAL_RUN:
        return
    began = yield from beginning(row)
    if began["orphan"]:  # pruned since it was asked for: nothing would be left to go back to
        _tell(run, "run.rollback_refused", reason="pruned")
        return
    thread = {"space": row["space"], "thread_id": row["thread_id"]}
    run.effects += [
        Call(DELETE_WRITES, thread | {"run_id": row["run_id"], "first_id": began["first_id"] or _NOTHING}),
        Call(DELETE_CHECKPOINTS, thread | {"first_id": began["first_id"] or _NOTHING}),
        *head_rows.fall_back(row["space"], row["thread_id"]),
    ]
    _tell(run, "run.rolled_back")


def _tell(run: Taken, kind: str, **payload: str) -> None:
    """Append a fact in front of the run's end: behind that no event of it follows."""
    run.events.insert(-1, Event(kind, payload, run.run["attempt_id"]))


def beginning(run: Row) -> Plan[Row]:
    """Read a run's first checkpoint (``first_id``), and whether what it began at was pruned since (``orphan``)."""
    found = yield from one_or_none(READ_BEGINNING, space=run["space"], thread_id=run["thread_id"], run_id=run["run_id"])
    return found or {"first_id": None, "orphan": None}
