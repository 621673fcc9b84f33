"""register_graph: some process of the space can run a graph of this name; what counts for runs that are started."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func

from runtime_persist.commands.parts.spec import ColdCommand, Command, Decision, Locked
from runtime_persist.dialects.sql import bind, excluded, insert
from runtime_persist.model.guards import CONTROL
from runtime_persist.plan import Call, Plan, Query, done
from runtime_persist.schema import graphs


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterGraph(Command):
    """Note the name, and what was registered last.

    Attributes:
        graph: its name.
        version: of its definition: runs that are started from now on belong to it (None: what is registered stays).
        retry_policy: encoded, for runs that are started without one (None: what is registered stays).

    """

    graph: str
    version: str | None = None
    retry_policy: str | None = None


REGISTER = Query(
    "register_graph",
    insert(graphs)
    .values(**{column.name: bind(column) for column in graphs.c})
    .on_conflict_do_update(
        index_elements=[graphs.c.space, graphs.c.graph],
        set_={
            "version": func.coalesce(excluded("version"), graphs.c.version),
            "retry_policy": func.coalesce(excluded("retry_policy"), graphs.c.retry_policy),
        },
    ),
)


def decide(command: RegisterGraph, locked: Locked) -> Plan[Decision]:
    """Return the insert."""
    row = {
        "space": command.space,
        "graph": command.graph,
        "version": command.version,
        "retry_policy": command.retry_policy,
        "registered_us": locked.now_us,
    }
    return done(Decision({}, effects=[Call(REGISTER, row)]))


SPEC = ColdCommand(
    name="register_graph",
    dto=RegisterGraph,
    guard=CONTROL,
    decide=decide,
    statements=(REGISTER,),
    locks_run=False,
)
