"""What must hold of runs at every moment: statements whose rows are what does not.

They count in the database, so they cost the same to look at whatever number of runs there is, and can be asked while
any number of workers work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, func, or_, select

from runtime_persist.dialects.sql import bind, constant
from runtime_persist.model.domains import DomainState
from runtime_persist.model.states import FINAL_ATTEMPT, FINAL_RUN, LeasePhase, RunStatus
from runtime_persist.plan import Query
from runtime_persist.queries import tickets as ticket_queries
from runtime_persist.schema import attempts, domains, events, graphs, instances, runs
from runtime_persist.schema.runs import is_active

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import ColumnElement

_R, _A, _E, _G, _I, _D = runs.c, attempts.c, events.c, graphs.c, instances.c, domains.c


def _one_of(column: ColumnElement[str], statuses: Iterable[str]) -> ColumnElement[bool]:
    return column.in_([constant(str(status)) for status in sorted(statuses)])


_FREE = _R.phase == constant(LeasePhase.RELEASED.value)
_FINAL = _one_of(_R.status, FINAL_RUN)
_HOLDS = is_active(runs)
"""A run that holds its slot, its graph's place and its scope. A lost one does: it may still run."""
_LEASED = and_(_HOLDS, _R.status != constant(RunStatus.LOST.value))
_OPEN_ATTEMPT = ~_one_of(_A.status, FINAL_ATTEMPT)

UNLEASED = Query(
    "live_unleased",
    select(_R.run_id, _R.status, _R.phase, _R.expires_us, _R.worker_id).where(
        _R.space == bind(_R.space),
        or_(
            and_(_LEASED, or_(_FREE, _R.expires_us <= constant(0), _R.worker_id.is_(None))),
            and_(~_HOLDS, ~_FREE),
        ),
    ),
)
_told = (
    select(_E.run_id, func.count().label("told"), func.min(_E.seq).label("first"), func.max(_E.seq).label("last"))
    .where(_E.space == bind(_R.space))
    .group_by(_E.run_id)
    .subquery()
)
GAPS = Query(
    "live_event_gaps",
    select(_R.run_id, _R.event_seq, _told.c.told, _told.c.first, _told.c.last)
    .select_from(runs.outerjoin(_told, _told.c.run_id == _R.run_id))
    .where(
        _R.space == bind(_R.space),
        or_(
            _told.c.told.is_(None),
            _told.c.told != _R.event_seq,
            _told.c.first != constant(1),
            _told.c.last != _R.event_seq,
        ),
    ),
)
_unfinished = (
    select(_A.run_id, func.count().label("unfinished"))
    .where(_A.space == bind(_R.space), _OPEN_ATTEMPT)
    .group_by(_A.run_id)
    .subquery()
)
ATTEMPTS = Query(
    "live_attempts",
    select(_R.run_id, _R.status, _unfinished.c.unfinished)
    .select_from(runs.join(_unfinished, _unfinished.c.run_id == _R.run_id))
    .where(_R.space == bind(_R.space), or_(_unfinished.c.unfinished > constant(1), _FINAL)),
)
SCOPES = Query(
    "live_scopes",
    select(func.coalesce(_R.scope, _R.thread_id).label("scope"), func.count().label("runs"))
    .where(_R.space == bind(_R.space), _HOLDS)
    .group_by(func.coalesce(_R.scope, _R.thread_id))
    .having(func.count() > constant(1)),
)
LIMITS = Query(
    "live_limits",
    select(_G.graph, _G.max_concurrency, func.count().label("runs"))
    .select_from(graphs.join(runs, and_(_R.space == _G.space, _R.graph == _G.graph)))
    .where(_G.space == bind(_G.space), _HOLDS)
    .group_by(_G.graph, _G.max_concurrency)
    .having(func.count() > _G.max_concurrency),
)
SLOTS = Query(
    "live_slots",
    select(_I.instance_id, _I.slots, func.count().label("runs"))
    .select_from(instances.join(runs, and_(_R.space == _I.space, _R.instance_id == _I.instance_id)))
    .where(_I.space == bind(_I.space), _HOLDS)
    .group_by(_I.instance_id, _I.slots)
    .having(func.count() > _I.slots),
)
_opened = (
    select(func.count())
    .where(_D.space == _R.space, _D.run_id == _R.run_id, _D.state == constant(DomainState.OPEN.value))
    .scalar_subquery()
)
DOMAINS = Query(
    "live_domains",
    select(_R.run_id, _R.status, _R.phase, _R.epoch, _R.domains_open).where(
        _R.space == bind(_R.space),
        _R.domains_opened > constant(0),
        or_(
            _R.domains_open != _opened,
            and_(~_HOLDS, _R.domains_open > constant(0)),
            and_(
                _R.phase == constant(LeasePhase.ACTIVE.value),
                select(constant(1))
                .where(
                    _D.space == _R.space,
                    _D.run_id == _R.run_id,
                    _D.state == constant(DomainState.OPEN.value),
                    _D.epoch < _R.epoch,
                )
                .exists(),
            ),
        ),
    ),
)
BUDGETS = Query("live_budgets", ticket_queries.WRONG.statement)
RULES = {
    UNLEASED: "an active run has no lease, or a run that is not active has one",
    GAPS: "the events of a run are not 1, 2, 3 … up to its event_seq",
    ATTEMPTS: "a run has more than one open attempt, or has ended and has one",
    SCOPES: "more than one run is active in an execution scope",
    LIMITS: "more runs of a graph are active than its max_concurrency",
    SLOTS: "more runs hold slots of an instance than it has",
    DOMAINS: "a run counts its execution domains wrongly, or is active or ended while one is open that must not be",
    BUDGETS: "the counters of a run's budget are not what its tickets add up to",
}
"""What is asked, and what it means when there is an answer."""
