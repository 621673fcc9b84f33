"""claim_next: a worker is given the first run of a graph that nobody else is about to take, under its next epoch.

It waits for nobody's thread or run: what somebody else has locked is passed over (somebody is about to take, end or
change it). So it may lock the graph before the run, and many workers claim at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, cast, func, literal_column, select, true, update

from runtime_persist.commands.parts import admission, claiming
from runtime_persist.commands.parts.spec import ColdCommand, Command, Decision, Locked
from runtime_persist.dialects.sql import bind, constant, joined, now_us
from runtime_persist.errors import NothingToClaim
from runtime_persist.model.guards import CLAIM
from runtime_persist.model.states import ACTIVE_RUN
from runtime_persist.plan import Call, Query, RowName, many, one_or_none
from runtime_persist.queries.claiming import HEADS, HEADS_OF_GRAPHS, claimable, in_order, keys, served, waiting
from runtime_persist.schema import graphs, runs, threads
from runtime_persist.schema.runs import is_active

if TYPE_CHECKING:
    from sqlalchemy import Select
    from sqlalchemy.sql.selectable import FromClause

    from runtime_persist.plan import Plan, Row

_CANDIDATES_MAX = 256
"""So many runs that others have locked are passed over; a limit makes a planner take them out of the index in order."""
_THREAD = ("space", "thread_hash", "thread_id", "owner_run_id", "run_no")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimNext(Command):
    """Claim the first run of one kind of a graph.

    Answer: as of ``claim_run``, and ``run_id``, ``thread_id``, ``graph``.

    Attributes:
        graph: name of the graph.
        kind: ``queued``, ``due`` (for a retry) or ``left`` (its lease ran out).
        versions: of the graph's definition that the worker may execute (``*``: all of them).
        instance_id: whose slot it takes.
        served_no: of the graph's last claim in its turn, as it was read: another number means that the graph had its
            turn meanwhile. None: no other graph waits and this one has no limit, so it need not be anybody's turn.
        others: graphs and versions that the worker serves besides (:func:`runtime_persist.queries.claiming.keys`).
            Without a turn nothing is taken while a run of them could be: it may have been queued since the look.
        waits: for whoever serves the graph at this moment (else it is refused).
        starts: the worker executes the run itself, as soon as this is committed. So the start fence is written along
            (answer: ``started``), unless the run is taken over or stopped: then something has to be done before.

    Refused: nothing of that kind that is not locked, somebody else's turn, a limit or another graph's run that was not
    known of (NothingToClaim); the instance has no report that counts (CapacityUnknown); no slot of it, no place of the
    graph, or the scope is taken (CapacityReached).

    """

    graph: str
    kind: str
    worker_id: str
    instance_id: str
    attempt_id: str
    ttl_us: int
    versions: tuple[str, ...] = ()
    served_no: int | None = None
    others: tuple[str, ...] = ()
    waits: bool = False
    starts: bool = False


def _candidates(kind: str, candidate: FromClause, *columns: Any) -> Select[Any]:
    """Return a graph's runs of a kind in the order in which they are claimed."""
    found = select(*columns).where(
        candidate.c.space == bind(runs.c.space),
        candidate.c.graph == bind(runs.c.graph),
        served(candidate),
        claimable(candidate, kind),
    )
    return in_order(found, candidate, kind)


def _first_unlocked(kind: str) -> Select[Any]:
    """Return the first run of a kind that nobody has locked, nor its thread, and lock both.

    No statistics of the tables can make a planner read the queue for it: the candidates come out of their index one by
    one, for as long as they are asked for, and of each the thread and then the run are looked up by their keys.
    """
    candidate, run = runs.alias("candidate"), runs.alias("run")
    names = (candidate.c[name] for name in ("space", "run_id", "thread_id"))
    first = _candidates(kind, candidate, *names).limit(literal_column(str(_CANDIDATES_MAX))).subquery("first")
    thread = (
        select(*(threads.c[name] for name in _THREAD))
        .where(threads.c.space == first.c.space, threads.c.thread_id == first.c.thread_id)
        .with_for_update(skip_locked=True)
        .lateral("thread")
    )
    found = (
        select(*run.c)
        .where(
            run.c.space == thread.c.space,  # so that it comes behind the thread
            run.c.run_id == first.c.run_id,
            claimable(run, kind),  # tested again above the lock
        )
        .with_for_update(skip_locked=True)
        .lateral("found")
    )
    both = first.join(thread, true()).join(found, true())
    return select(*found.c, *(thread.c[name].label(f"thread__{name}") for name in _THREAD)).select_from(both)


def _first(kind: str) -> Select[Any]:
    """Return the first run of a kind, where nobody else can have locked anything."""
    candidate = runs.alias("candidate")
    columns = (*candidate.c, *(threads.c[name].label(f"thread__{name}") for name in _THREAD))
    of_run = (threads.c.space == candidate.c.space) & (threads.c.thread_id == candidate.c.thread_id)
    return _candidates(kind, candidate, *columns).join(threads, of_run)


def _with_what_it_joins(first: Select[Any]) -> Select[Any]:
    """Return the first row, and what it would join: tasks of its instance, places of its graph."""
    held, place = runs.alias("held"), runs.alias("place")
    picked = first.limit(literal_column("1")).cte("picked").prefix_with("MATERIALIZED")
    tasks = (
        select(joined(held.c.run_id.concat(constant(":")).concat(cast(held.c.epoch, Text))))
        .where(
            held.c.space == bind(runs.c.space),
            held.c.instance_id == bind(runs.c.instance_id),
            is_active(held),
        )
        .scalar_subquery()
    )
    taken = (
        select(func.count())
        .where(place.c.space == bind(runs.c.space), place.c.graph == bind(runs.c.graph), is_active(place))
        .scalar_subquery()
    )
    limit = (
        select(graphs.c.max_concurrency)
        .where(graphs.c.space == bind(runs.c.space), graphs.c.graph == bind(runs.c.graph))
        .scalar_subquery()
    )
    return select(
        *picked.c,
        tasks.label("held__tasks"),
        limit.label("limit__places"),
        taken.label("limit__taken"),
        now_us().label("now_us"),
    )


def _pick(kind: str) -> Query:
    """Return the statement that locks a graph's first run of a kind with its thread, and counts what it would join."""
    whole, alone = (_with_what_it_joins(first(kind)) for first in (_first_unlocked, _first))
    return Query(f"pick_{kind}_run", whole, each="graphs", alone=alone)


PICKS = {kind: _pick(kind) for kind in HEADS}
_graph = (
    select(graphs.c.served_no)
    .where(graphs.c.space == bind(graphs.c.space), graphs.c.graph == bind(graphs.c.graph))
    .with_for_update()
)
LOCK_GRAPH = Query("lock_graph", _graph)
LOCK_FREE_GRAPH = Query("lock_free_graph", _graph.with_for_update(skip_locked=True))
_others = graphs.alias("others")
TAKE_TURN = Query(
    "take_turn",
    update(graphs)
    .values(
        served_no=select(func.max(_others.c.served_no) + constant(1))
        .where(_others.c.space == bind(graphs.c.space))
        .scalar_subquery()
    )
    .where(graphs.c.space == bind(graphs.c.space), graphs.c.graph == bind(graphs.c.graph)),
    row=RowName(graphs.name, ("graph",)),
)


def decide(command: ClaimNext, locked: Locked) -> Plan[Decision]:
    """Return the graph's next run under its next epoch."""
    report = admission.check_report(command.instance_id, command.worker_id, locked.instance, locked.now_us)
    yield from _wait_for_turn(command)
    picked = yield from one_or_none(
        PICKS[command.kind],
        space=command.space,
        graph=command.graph,
        instance_id=command.instance_id,
        graphs=keys({command.graph: command.versions}),
    )
    if picked is None:
        msg = f"no {command.kind} run of graph {command.graph!r} is free"
        raise NothingToClaim(msg, graph=command.graph, kind=command.kind)
    before, thread = _rows(picked)
    run = yield from claiming.about_to_take(before, picked["now_us"])
    others = (one for one in (picked["held__tasks"] or "").split(",") if one.rpartition(":")[0] != before["run_id"])
    admission.check_slot(command.instance_id, report, filter(None, others))
    if before["status"] not in ACTIVE_RUN:
        _check_limit(command, picked)
        yield from admission.take_scope(before)
    turn = [] if command.served_no is None else [Call(TAKE_TURN, {"space": command.space, "graph": command.graph})]
    decision = yield from claiming.claimed(command, before, thread, run, turn, starts=command.starts)
    names = {name: before[name] for name in ("run_id", "thread_id", "graph")}
    return Decision({**decision.result, **names}, decision.runs, decision.effects)


def _wait_for_turn(command: ClaimNext) -> Plan[None]:
    """Lock the graph; refuse when it has had a turn since it was read, or needs none and another graph waits."""
    if command.served_no is None:
        if command.others and (yield from waiting(command.space, command.others)):
            msg = f"a run of another graph waits since {command.graph!r} was looked at; look again whose turn it is"
            raise NothingToClaim(msg, graph=command.graph, served=True)
        return
    query = LOCK_GRAPH if command.waits else LOCK_FREE_GRAPH
    rows = yield from many(query, space=command.space, graph=command.graph)
    if not rows or rows[0]["served_no"] != command.served_no:
        why = "is being served" if not rows else "was served meanwhile"
        msg = f"graph {command.graph!r} {why}; look again whose turn it is"
        raise NothingToClaim(msg, graph=command.graph, served=True)


def _check_limit(command: ClaimNext, picked: Row) -> None:
    limit = picked["limit__places"]
    if limit is None:
        return
    if command.served_no is None:  # its row is not locked: others could be counting the same places
        msg = f"graph {command.graph!r} has a limit since it was looked at; look again"
        raise NothingToClaim(msg, graph=command.graph, served=True)
    admission.check_places(command.graph, limit, picked["limit__taken"])


def _rows(picked: Row) -> tuple[Row, Row]:
    """Return the run and the thread of a picked row."""
    run: dict[str, Any] = {column.name: picked[column.name] for column in runs.c}
    return run, {name: picked[f"thread__{name}"] for name in _THREAD}


SPEC = ColdCommand(
    name="claim_next",
    dto=ClaimNext,
    guard=CLAIM,
    decide=decide,
    statements=(
        LOCK_GRAPH,
        LOCK_FREE_GRAPH,
        HEADS_OF_GRAPHS,
        *PICKS.values(),
        admission.LOCK_SCOPE,
        admission.READ_SCOPE,
        *claiming.STATEMENTS,
        TAKE_TURN,
    ),
    locks_run=False,
    locks_instance=True,
)
