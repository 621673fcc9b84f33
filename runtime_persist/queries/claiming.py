"""What may be claimed now, and in which order: by priority, then round-robin between graphs, then first come.

A graph has at most three *heads*: its first queued run, its first run whose retry is due, and its first run that was
left (its lease ran out). Each is found in an index of its own, so a hundred thousand queued runs of one graph cost a
look nothing. What is read without a lock is a hint: the claim itself decides, under its locks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    bindparam,
    case,
    cast,
    exists,
    func,
    literal_column,
    null,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.types import BigInteger

from runtime_persist.dialects.sql import among, bind, constant, now_us
from runtime_persist.model.lease import BLOCKED
from runtime_persist.model.states import Control, RunStatus
from runtime_persist.plan import Plan, Query, Row, many
from runtime_persist.schema import graphs, runs
from runtime_persist.schema.runs import is_active

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sqlalchemy.sql.selectable import FromClause

ANY_VERSION = "*"
QUEUED, DUE, LEFT, TO_END = "queued", "due", "left", "to_end"
HEADS = (QUEUED, DUE, LEFT)
_ONE: ColumnElement[Any] = literal_column("1")
_STATUS = {QUEUED: RunStatus.QUEUED, DUE: RunStatus.RETRY_WAIT}


@dataclass(frozen=True, slots=True)
class Head:
    """The first claimable run of one kind of a graph, as it was read.

    Attributes:
        kind: ``queued``, ``due`` (for a retry), ``left`` (its lease ran out) or ``to_end`` (it is only to be ended).
        graph: name of its graph.
        run_id, thread_id: the run.
        priority: the higher goes first.
        queued_us: its place among its graph's.
        blocked: an earlier takeover could not prove that its execution domains are revoked.
        served_no: of the graph's last claim in its turn.
        limited: the graph has a ``max_concurrency``.
        full: and all its places are taken.

    """

    kind: str
    graph: str
    run_id: str
    thread_id: str
    priority: int
    queued_us: int
    blocked: bool
    served_no: int
    limited: bool
    full: bool

    @property
    def names(self) -> Mapping[str, str]:
        """Return what names the run."""
        return {"run_id": self.run_id, "thread_id": self.thread_id, "graph": self.graph}


def claimable(run: FromClause, kind: str) -> ColumnElement[bool]:
    """Return the condition that a run may be claimed, by what its row says and no lock is needed for.

    Only the oldest open run of its thread may, and nobody who is active may have its scope.
    """
    if kind == LEFT:
        going_on = run.c.control == constant(Control.OPEN.value)
        return and_(is_active(run), going_on, run.c.expires_us <= select(now_us()).scalar_subquery())
    older, holder = runs.alias("older"), runs.alias("holder")
    due = run.c.next_attempt_us <= select(now_us()).scalar_subquery() if kind == DUE else true()
    # Looked up for each run by itself: an anti-join would read all open runs for the first one.
    waits_for = (
        select(constant(1))
        .where(
            older.c.space == run.c.space,
            older.c.thread_id == run.c.thread_id,
            older.c.thread_run_no < run.c.thread_run_no,
            older.c.finished_us.is_(None),
        )
        .limit(_ONE)
        .correlate(run)
        .scalar_subquery()
    )
    return and_(
        run.c.status == constant(_STATUS[kind].value),
        due,
        waits_for.is_(None),
        or_(
            run.c.scope.is_(None),
            ~exists().where(
                holder.c.space == run.c.space,
                holder.c.scope == run.c.scope,
                holder.c.scope.is_not(None),
                is_active(holder),
            ),
        ),
    )


def served(run: FromClause) -> ColumnElement[bool]:
    """Return the condition that the caller has the graph's version (list parameter ``graphs``, see :func:`keys`)."""
    version = func.coalesce(run.c.graph_version, constant(""))
    return or_(
        among(run.c.graph.concat(constant(":")).concat(version), "graphs"),
        among(run.c.graph.concat(constant(f":{ANY_VERSION}")), "graphs"),
    )


def in_order(found: Select[Any], run: FromClause, kind: str) -> Select[Any]:
    """Return a select of a graph's runs of one kind in the order in which they are claimed."""
    if kind == QUEUED:
        return found.order_by(run.c.priority.desc(), run.c.queued_us, run.c.run_id)
    if kind == DUE:
        return found.order_by(run.c.next_attempt_us, run.c.run_id)
    # Of those that could not be taken over, the one that was tried longest ago.
    last = is_blocked(run)
    return found.order_by(last, case((last == constant(1), run.c.expires_us), else_=run.c.queued_us), run.c.run_id)


def is_blocked(run: FromClause) -> ColumnElement[int]:
    """Return 1 when an earlier takeover of the run was blocked, else 0."""
    return case((run.c.revocation == constant(BLOCKED), constant(1)), else_=constant(0))


def _heads(kind: str) -> Select[Any]:
    """Return each served graph with its first claimable run of a kind.

    What is told of the run is looked up by its key, column by column: of a join, a planner that expects many graphs
    would read all runs.
    """
    first, place, run = runs.alias("first"), runs.alias("place"), runs.alias("head")
    candidates = select(first.c.run_id).where(
        first.c.space == graphs.c.space,
        first.c.graph == graphs.c.graph,
        served(first),
        claimable(first, kind),
    )
    limit = graphs.c.max_concurrency
    taken = select(func.count()).where(
        place.c.space == graphs.c.space, place.c.graph == graphs.c.graph, is_active(place)
    )
    picked = (
        select(
            graphs.c.space,
            graphs.c.graph,
            graphs.c.served_no,
            limit,
            case((limit.is_(None), constant(0)), else_=taken.correlate(graphs).scalar_subquery()).label("taken"),
            in_order(candidates, first, kind).limit(_ONE).correlate(graphs).scalar_subquery().label("run_id"),
        )
        .where(graphs.c.space == bind(graphs.c.space), among(graphs.c.graph.concat(constant(":")), "graphs"))
        .cte(f"picked_{kind}")
        .prefix_with("MATERIALIZED")
    )

    def told(value: ColumnElement[Any], name: str) -> ColumnElement[Any]:
        found = select(value).where(run.c.space == picked.c.space, run.c.run_id == picked.c.run_id)
        return found.correlate(picked).scalar_subquery().label(name)

    return select(
        constant(kind).label("kind"),
        picked.c.graph,
        picked.c.run_id,
        told(run.c.thread_id, "thread_id"),
        told(run.c.priority, "priority"),
        told(run.c.queued_us, "queued_us"),
        told(is_blocked(run), "blocked"),
        picked.c.served_no,
        picked.c.max_concurrency,
        picked.c.taken,
    ).where(picked.c.run_id.is_not(None))


# A run that is being stopped is anybody's, whatever its graph: ending it needs neither code nor a slot.
_TO_END = (
    select(
        constant(TO_END).label("kind"),
        runs.c.graph,
        runs.c.run_id,
        runs.c.thread_id,
        runs.c.priority,
        runs.c.queued_us,
        is_blocked(runs).label("blocked"),
        constant(0).label("served_no"),
        cast(null(), BigInteger).label("max_concurrency"),
        constant(0).label("taken"),
    )
    .where(
        runs.c.space == bind(runs.c.space),
        runs.c.control == constant(Control.STOPPING.value),
        is_active(runs),
        runs.c.expires_us <= select(now_us()).scalar_subquery(),
    )
    .order_by(is_blocked(runs), runs.c.expires_us)
    .limit(bindparam("ends_max", type_=BigInteger()))
)
HEADS_OF_GRAPHS = Query(
    "read_heads",
    union_all(*(_heads(kind) for kind in HEADS), _TO_END.subquery("ending").select()),
    each="graphs",
)


def keys(versions: Mapping[str, Collection[str]]) -> list[str]:
    """Return what a caller serves as the list parameter of :func:`served`: name -> versions (``*``: all of them).

    A run without a version is anybody's who has its graph.
    """
    return [f"{graph}:{version}" for graph, listed in versions.items() for version in ("", *listed)]


def heads(space: str, versions: Mapping[str, Collection[str]], ends: int) -> Plan[list[Head]]:
    """Read the heads of the graphs that are served, those that are only to be ended (``ends`` at most) behind them.

    The others come in the order in which they are to be claimed: by priority, then the graph that was served longest
    ago, then by place; what could not be taken over at the last try comes last.
    """
    now = yield from _claimable_heads(space, keys(versions), ends)
    found = sorted(now, key=lambda head: (head.blocked, -head.priority, head.queued_us))
    firsts: dict[str, Head] = {}
    for head in found:
        if head.kind != TO_END:
            firsts.setdefault(head.graph, head)
    turns = sorted(firsts.values(), key=lambda head: (head.blocked, -head.priority, head.served_no, head.graph))
    rank = {head.graph: number for number, head in enumerate(turns)}
    return sorted(found, key=lambda head: (head.kind == TO_END, rank.get(head.graph, 0)))


def waiting(space: str, served_keys: Collection[str]) -> Plan[bool]:
    """Return whether a run of graphs (as :func:`keys` gives them) could be claimed now, and is not blocked."""
    found = yield from _claimable_heads(space, served_keys, 0)
    return any(not head.blocked for head in found)


def _claimable_heads(space: str, served_keys: Collection[str], ends: int) -> Plan[list[Head]]:
    rows = yield from many(HEADS_OF_GRAPHS, space=space, graphs=list(served_keys), ends_max=ends)
    return [head for head in map(_head, rows) if head.kind in {LEFT, TO_END} or not head.full]


def _head(row: Row) -> Head:
    limit = row["max_concurrency"]
    return Head(
        row["kind"],
        row["graph"],
        row["run_id"],
        row["thread_id"],
        row["priority"],
        row["queued_us"] or 0,
        bool(row["blocked"]),
        row["served_no"],
        limited=limit is not None,
        full=limit is not None and row["taken"] >= limit,
    )
