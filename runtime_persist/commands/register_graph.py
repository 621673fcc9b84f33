"""register_graph: some process of the space can run a graph of this name."""

from __future__ import annotations

from dataclasses import dataclass

from runtime_persist.commands.parts.spec import ColdCommand, Command, Decision, Locked
from runtime_persist.dialects.sql import bind, insert
from runtime_persist.model.guards import CONTROL
from runtime_persist.plan import Call, Plan, Query, done
from runtime_persist.schema import graphs


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterGraph(Command):
    """Note the name; a name that is known stays as it is."""

    graph: str


REGISTER = Query(
    "register_graph",
    insert(graphs).values(**{column.name: bind(column) for column in graphs.c}).on_conflict_do_nothing(),
)


def decide(command: RegisterGraph, locked: Locked) -> Plan[Decision]:
    """Return the insert."""
    row = {"space": command.space, "graph": command.graph, "registered_us": locked.now_us}
    return done(Decision({}, effects=[Call(REGISTER, row)]))


SPEC = ColdCommand(
    name="register_graph",
    dto=RegisterGraph,
    guard=CONTROL,
    decide=decide,
    statements=(REGISTER,),
    locks_run=False,
)
