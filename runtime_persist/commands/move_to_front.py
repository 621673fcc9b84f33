"""move_to_front: a queued run comes next ("run now"); one that waits for its retry is queued. Slots still count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import func, select, union

from runtime_persist.commands.parts import run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Command, Decision, Locked, RunChange
from runtime_persist.dialects.sql import bind, constant
from runtime_persist.errors import IllegalTransition, InvariantBroken
from runtime_persist.model import limits
from runtime_persist.model.guards import CONTROL
from runtime_persist.model.states import RunStatus
from runtime_persist.plan import Plan, Query, one_or_none
from runtime_persist.schema import graphs, runs

if TYPE_CHECKING:
    from sqlalchemy import ScalarSelect, Subquery


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveToFront(Command):
    """Give a run the first place of the queue, before any priority. Answer: ``status``.

    Of several such runs the one that was moved last comes first. An older open run of its thread still comes before it,
    and it takes no more than any other run: a slot, a place of its graph, its scope. Refused: it is neither queued nor
    due for a retry (IllegalTransition).
    """

    run_id: str


_FRONT = limits.PRIORITY_MAX + 1


def _first_of(graph: Subquery) -> ScalarSelect[int]:
    """Return the first place of a graph's runs that were moved: one step into the index of its queue."""
    return (
        select(runs.c.queued_us)
        .where(
            runs.c.space == bind(runs.c.space),
            runs.c.graph == graph.c.graph,
            runs.c.status == constant(RunStatus.QUEUED.value),
            runs.c.priority == constant(_FRONT),
        )
        .order_by(runs.c.queued_us)
        .limit(constant(1))
        .scalar_subquery()
    )


def _read_front() -> Query:
    known = select(graphs.c.graph).where(graphs.c.space == bind(graphs.c.space))
    own = select(bind(runs.c.graph).label("graph"))
    each = union(known, own).subquery("each")
    return Query("read_front", select(func.min(_first_of(each)).label("queued_us")))


READ_FRONT = _read_front()


def decide(command: MoveToFront, locked: Locked) -> Plan[Decision]:
    """Return the run queued, in front of all that were not moved."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    run = taking.taken(before, None, locked.now_us)
    run.run["priority"] = _FRONT
    found = yield from one_or_none(READ_FRONT, space=command.space, graph=before["graph"])
    front = found["queued_us"] if found is not None else None
    # Places are times, and no run was ever queued before 1970; two may be moved within one step of the clock.
    first = min(-locked.now_us, 0 if front is None else front - 1)
    if before["status"] == RunStatus.RETRY_WAIT:
        run.move(RunStatus.QUEUED, queued_us=first, next_attempt_us=None)
    elif before["status"] == RunStatus.QUEUED:
        run.run["queued_us"] = first
    else:
        msg = f"run {command.run_id} is {before['status']}; only one that is queued or waits for a retry can be moved"
        raise IllegalTransition(msg, run_id=command.run_id, status=before["status"])
    run.tell("run.moved_to_front")
    return Decision({"status": run.run["status"]}, runs=[RunChange(before, run.run, run.events)])


SPEC = ColdCommand(
    name="move_to_front",
    dto=MoveToFront,
    guard=CONTROL,
    decide=decide,
    statements=(READ_FRONT, run_rows.SAVE_RUN),
)
