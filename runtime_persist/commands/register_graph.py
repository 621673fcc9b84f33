"""register_graph: some process of the space can run a graph of this name; what counts for runs that are started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import case, func, select

from runtime_persist.commands.parts.spec import ColdCommand, Command, Decision, Locked
from runtime_persist.dialects.sql import bind, constant, excluded, insert, number
from runtime_persist.model.guards import CONTROL
from runtime_persist.model.workspace import Workspace
from runtime_persist.plan import Call, Query, one_or_none
from runtime_persist.schema import graphs

if TYPE_CHECKING:
    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterGraph(Command):
    """Note the name, and what was registered last.

    Attributes:
        graph: its name.
        version: of its definition: runs that are started from now on belong to it (None: what is registered stays).
        retry_policy: encoded, for runs that are started without one (None: what is registered stays).
        max_concurrency: how many of its runs may be active at the same time, over all workers and callers (0: any
            number; None: what is registered stays). Runs that are active already go on.
        workspace: encoded, the directory that its attempts work in (None: what is registered stays).

    Refused: its runs would share one directory at the same time (UnsafeWorkspace).

    """

    graph: str
    version: str | None = None
    retry_policy: str | None = None
    max_concurrency: int | None = None
    workspace: str | None = None


LOCK = Query(
    "lock_registered_graph",
    select(graphs.c.max_concurrency, graphs.c.workspace)
    .where(graphs.c.space == bind(graphs.c.space), graphs.c.graph == bind(graphs.c.graph))
    .with_for_update(),
)
_SAID = ("space", "graph", "version", "retry_policy", "registered_us", "workspace")
_LIMIT = func.nullif(number("limit_said"), constant(0))
REGISTER = Query(
    "register_graph",
    insert(graphs)
    .values(max_concurrency=_LIMIT, **{name: bind(graphs.c[name]) for name in _SAID})
    .on_conflict_do_update(
        index_elements=[graphs.c.space, graphs.c.graph],
        set_={
            "version": func.coalesce(excluded("version"), graphs.c.version),
            "retry_policy": func.coalesce(excluded("retry_policy"), graphs.c.retry_policy),
            "max_concurrency": case((number("limit_said").is_(None), graphs.c.max_concurrency), else_=_LIMIT),
            "workspace": func.coalesce(excluded("workspace"), graphs.c.workspace),
        },
    ),
)


def decide(command: RegisterGraph, locked: Locked) -> Plan[Decision]:
    """Return the insert."""
    before = yield from one_or_none(LOCK, space=command.space, graph=command.graph)
    limit, workspace = command.max_concurrency, command.workspace
    if before is not None:
        limit = before["max_concurrency"] if limit is None else limit
        workspace = before["workspace"] if workspace is None else workspace
    if workspace is not None:
        Workspace.decoded(workspace).check_shared(command.graph, limit or None)
    row = {
        "space": command.space,
        "graph": command.graph,
        "version": command.version,
        "retry_policy": command.retry_policy,
        "limit_said": command.max_concurrency,
        "workspace": command.workspace,
        "registered_us": locked.now_us,
    }
    return Decision({}, effects=[Call(REGISTER, row)])


SPEC = ColdCommand(
    name="register_graph",
    dto=RegisterGraph,
    guard=CONTROL,
    decide=decide,
    statements=(LOCK, REGISTER),
    locks_run=False,
)
