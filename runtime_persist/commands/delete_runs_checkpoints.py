"""delete_runs_checkpoints: the checkpoints of some runs go, with their writes; heads fall back to what is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import delete, select, tuple_

from runtime_persist.commands.parts import head_rows
from runtime_persist.commands.parts.spec import ColdCommand, Decision, Locked, ThreadCommand
from runtime_persist.dialects.sql import among, bind
from runtime_persist.model.guards import THREAD
from runtime_persist.plan import Call, Plan, Query, done
from runtime_persist.schema import checkpoints, writes

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRunsCheckpoints(ThreadCommand):
    """Delete the thread's checkpoints whose metadata names one of ``run_refs``.

    Refused: a live run owns the thread (ThreadOwned).
    """

    run_refs: tuple[str, ...]


_C, _W = checkpoints.c, writes.c
_OF_RUNS: tuple[ColumnElement[bool], ...] = (
    _C.space == bind(_C.space),
    _C.thread_id == bind(_C.thread_id),
    among(_C.run_ref, "run_refs"),
)
DELETE_WRITES = Query(
    "delete_writes_of_runs",
    delete(writes).where(
        _W.space == bind(_W.space),
        _W.thread_id == bind(_W.thread_id),
        tuple_(_W.checkpoint_ns, _W.checkpoint_id).in_(select(_C.checkpoint_ns, _C.checkpoint_id).where(*_OF_RUNS)),
    ),
    each="run_refs",
)
DELETE_CHECKPOINTS = Query("delete_checkpoints_of_runs", delete(checkpoints).where(*_OF_RUNS), each="run_refs")


def decide(command: DeleteRunsCheckpoints, locked: Locked) -> Plan[Decision]:
    """Return the deletes, then the heads."""
    del locked
    thread = {"space": command.space, "thread_id": command.thread_id}
    of_runs = thread | {"run_refs": list(command.run_refs)}
    return done(
        Decision(
            {},
            effects=[
                Call(DELETE_WRITES, of_runs),
                Call(DELETE_CHECKPOINTS, of_runs),
                *head_rows.fall_back(command.space, command.thread_id),
            ],
        )
    )


SPEC = ColdCommand(
    name="delete_runs_checkpoints",
    dto=DeleteRunsCheckpoints,
    guard=THREAD,
    decide=decide,
    statements=(DELETE_WRITES, DELETE_CHECKPOINTS, *head_rows.STATEMENTS),
    locks_thread=True,
    locks_run=False,
)
