"""What explains where a run stands: it, who comes before it, who holds what it needs, who could take it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, and_, bindparam, func, literal_column, or_, select
from sqlalchemy.types import BigInteger

from runtime_persist.dialects.sql import bind, constant
from runtime_persist.model.domains import DomainState
from runtime_persist.model.states import RunStatus
from runtime_persist.plan import Plan, Query, Row, many, one_or_none
from runtime_persist.queries import fleet, run_pages
from runtime_persist.queries import runs as run_queries
from runtime_persist.schema import attempts, domains, graphs, runs
from runtime_persist.schema.runs import is_active

if TYPE_CHECKING:
    from collections.abc import Sequence

_R = runs.c
_LISTED_MAX: ColumnElement[int] = literal_column("100")
_PENDING_MAX = 100
_FIRST = (_R.run_id, _R.graph, _R.status, _R.worker_id)

READ_OLDER = Query(
    "read_older_runs",
    select(*_FIRST)
    .where(
        _R.space == bind(_R.space),
        _R.thread_id == bind(_R.thread_id),
        _R.thread_run_no < bind(_R.thread_run_no),
        _R.finished_us.is_(None),
    )
    .order_by(_R.thread_run_no)
    .limit(_LISTED_MAX),
)
READ_SCOPE_HOLDER = Query(
    "read_scope_holder_of",
    select(*_FIRST)
    .where(_R.space == bind(_R.space), _R.scope == bind(_R.scope), _R.run_id != bind(_R.run_id), is_active(runs))
    .limit(literal_column("1")),
)
_before = or_(
    _R.priority > bind(_R.priority),
    and_(
        _R.priority == bind(_R.priority),
        or_(
            _R.queued_us < bindparam("place_us", type_=BigInteger()),
            and_(_R.queued_us == bindparam("place_us", type_=BigInteger()), _R.run_id < bind(_R.run_id)),
        ),
    ),
)
_queued_before = (
    _R.space == bind(_R.space),
    _R.graph == bind(_R.graph),
    _R.status == constant(RunStatus.QUEUED.value),
    _before,
)
READ_AHEAD = Query(
    "read_runs_ahead",
    select(func.count().label("ahead")).where(*_queued_before),
)
READ_FIRST_AHEAD = Query(
    "read_first_run_ahead",
    select(_R.run_id)
    .where(*_queued_before)
    .order_by(_R.priority.desc(), _R.queued_us, _R.run_id)
    .limit(literal_column("1")),
)
READ_GRAPH = Query(
    "read_graph_of_run",
    select(graphs).where(graphs.c.space == bind(graphs.c.space), graphs.c.graph == bind(graphs.c.graph)),
)
READ_ACTIVE = Query(
    "read_active_of_graph",
    select(func.count().label("active")).where(
        _R.space == bind(_R.space), _R.graph == bind(_R.graph), _R.run_id != bind(_R.run_id), is_active(runs)
    ),
)
READ_OTHER_GRAPHS = Query(
    "read_other_waiting_graphs",
    select(_R.graph)
    .where(_R.space == bind(_R.space), _R.status == constant(RunStatus.QUEUED.value), _R.graph != bind(_R.graph))
    .distinct()
    .order_by(_R.graph)
    .limit(_LISTED_MAX),
)
READ_DOMAINS = Query(
    "read_open_domains_of_run",
    select(domains)
    .where(
        domains.c.space == bind(domains.c.space),
        domains.c.run_id == bind(domains.c.run_id),
        domains.c.state == constant(DomainState.OPEN.value),
    )
    .order_by(domains.c.opened_us)
    .limit(_LISTED_MAX),
)
READ_ATTEMPT = Query(
    "read_attempt_of_run",
    select(attempts).where(
        attempts.c.space == bind(attempts.c.space), attempts.c.attempt_id == bind(attempts.c.attempt_id)
    ),
)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a run stands, read in one snapshot.

    Attributes:
        run: its row, with the database clock (``now_us``).
        attempt: its current attempt.
        older: the open runs of its thread that come before it, oldest first.
        scope_holder: the active run that has its scope.
        ahead: how many queued runs of its graph come before it.
        first_ahead: the first of them.
        others: the other graphs that have queued runs.
        graph: its graph as it is registered.
        active: how many other runs of its graph are active.
        instances: what workers reported of themselves.
        held: the tasks that hold slots: ``instance_id, run_id, epoch``.
        domains: its execution domains that are not proved revoked.
        pending: its operations without an outcome, each with its last try.
        partial: it was read from a bundle: nothing is known of other runs, nor of workers.

    """

    run: Row
    attempt: Row | None
    older: Sequence[Row] = ()
    scope_holder: Row | None = None
    ahead: int = 0
    first_ahead: str | None = None
    others: Sequence[str] = ()
    graph: Row | None = None
    active: int = 0
    instances: Sequence[Row] = ()
    held: Sequence[Row] = ()
    domains: Sequence[Row] = ()
    pending: Sequence[Row] = ()
    partial: bool = False


def standing(space: str, run_id: str) -> Plan[Standing | None]:
    """Read where a run stands (None: there is no such run)."""
    run = yield from run_queries.run(space, run_id)
    if run is None:
        return None
    of_run = {"space": space, "run_id": run_id}
    of_graph = {"space": space, "graph": run["graph"]}
    found: Row | None
    attempt = scope_holder = None
    if run["attempt_id"] is not None:
        attempt = yield from one_or_none(READ_ATTEMPT, space=space, attempt_id=run["attempt_id"])
    if run["scope"] is not None:
        scope_holder = yield from one_or_none(READ_SCOPE_HOLDER, **of_run, scope=run["scope"])
    ahead, first_ahead = 0, None
    if run["status"] == RunStatus.QUEUED:
        place = {**of_graph, "run_id": run_id, "priority": run["priority"], "place_us": run["queued_us"]}
        found = yield from one_or_none(READ_AHEAD, **place)
        ahead = 0 if found is None else found["ahead"]
        found = yield from one_or_none(READ_FIRST_AHEAD, **place)
        first_ahead = None if found is None else found["run_id"]
    found = yield from one_or_none(READ_ACTIVE, **of_graph, run_id=run_id)
    instances, held = yield from fleet.reported(space)
    return Standing(
        run,
        attempt,
        older=(
            yield from many(READ_OLDER, space=space, thread_id=run["thread_id"], thread_run_no=run["thread_run_no"])
        ),
        scope_holder=scope_holder,
        ahead=ahead,
        first_ahead=first_ahead,
        others=[row["graph"] for row in (yield from many(READ_OTHER_GRAPHS, **of_graph))],
        graph=(yield from one_or_none(READ_GRAPH, **of_graph)),
        active=0 if found is None else found["active"],
        instances=instances,
        held=held,
        domains=(yield from many(READ_DOMAINS, **of_run)),
        pending=(yield from run_pages.pending(space, run_id, _PENDING_MAX)),
    )
