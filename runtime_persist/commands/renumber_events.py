"""renumber_events: positions of another server, out of a restored dump, become the first ones; consumers begin anew."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import update

from runtime_persist.commands.parts.spec import ColdCommand, Command, Decision, Locked
from runtime_persist.dialects.sql import bind, constant
from runtime_persist.dialects.transactions import unassigned_number
from runtime_persist.model.guards import CONTROL
from runtime_persist.plan import Call, Plan, Query, one_or_none
from runtime_persist.queries import events as event_queries
from runtime_persist.schema import cursors, events, runs


@dataclass(frozen=True, slots=True, kw_only=True)
class RenumberEvents(Command):
    """Put events whose position no transaction of this server can have had in front of all others.

    They would be delivered only when the server's own transactions have come so far, and new events would lie in front
    of cursors. Each run's events keep their order. Every consumer gets all events again: nothing says which of them it
    had. Answer: ``found`` (False: there are none, and nothing was changed).
    """


# The runs first: whoever appends to one of them waits for this, and goes on from the new position.
RUNS = Query(
    "renumber_runs",
    update(runs)
    .values(event_position=constant(0))
    .where(runs.c.space == bind(runs.c.space), runs.c.event_position >= unassigned_number()),
)
EVENTS = Query(
    "renumber_events",
    update(events)
    .values(position=constant(0))
    .where(events.c.space == bind(events.c.space), events.c.position >= unassigned_number()),
)
CURSORS = Query(
    "rewind_cursors",
    update(cursors)
    .values(position=constant(0), run_id=constant(""), seq=constant(0), command_id=constant(""))
    .where(cursors.c.space == bind(cursors.c.space)),
)


def decide(command: RenumberEvents, _: Locked) -> Plan[Decision]:
    """Return the updates, when there is anything to renumber."""
    space = {"space": command.space}
    if (yield from one_or_none(event_queries.READ_FOREIGN, **space)) is None:
        return Decision({"found": False})
    return Decision({"found": True}, effects=[Call(query, space) for query in (RUNS, EVENTS, CURSORS)])


SPEC = ColdCommand(
    name="renumber_events",
    dto=RenumberEvents,
    guard=CONTROL,
    decide=decide,
    statements=(event_queries.READ_FOREIGN, RUNS, EVENTS, CURSORS),
    locks_run=False,
)
