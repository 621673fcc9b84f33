"""Rows that name others that are not there, and counters that are not what they count: statements that give such rows.

Each gives ``what`` (the row) and ``missing`` (what it names, or what was counted).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import and_, cast, exists, func, literal_column, or_, select
from sqlalchemy.types import Text

from runtime_persist.dialects.sql import bind, constant, now_us, number
from runtime_persist.model.lease import BLOCKED
from runtime_persist.model.states import FINAL_RUN, LeasePhase
from runtime_persist.plan import Query
from runtime_persist.schema import (
    attempts,
    blobs,
    checkpoints,
    domains,
    events,
    heads,
    operation_tries,
    operations,
    runs,
    threads,
    tickets,
)

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Table

_R, _A, _D, _E, _H, _C = runs.c, attempts.c, domains.c, events.c, heads.c, checkpoints.c
_O, _T, _TH, _K, _B = operations.c, operation_tries.c, threads.c, tickets.c, blobs.c


def _query(
    name: str, table: Table, what: ColumnElement[str], missing: ColumnElement[str], *where: ColumnElement[bool]
) -> Query:
    statement = (
        select(what.label("what"), missing.label("missing"))
        .where(table.c.space == bind(table.c.space), *where)
        .limit(number("page_rows"))
    )
    return Query(f"doctor_{name}", statement)


def _without_run(name: str, table: Table, what: ColumnElement[str]) -> Query:
    return _query(
        name, table, what, table.c.run_id, ~exists().where(_R.space == table.c.space, _R.run_id == table.c.run_id)
    )


def _count(table: Table) -> ColumnElement[int]:
    return (
        select(func.count())
        .select_from(table)
        .where(table.c.space == _R.space, table.c.run_id == _R.run_id)
        .scalar_subquery()
    )


ATTEMPT_WITHOUT_RUN = _without_run("attempts", attempts, _A.attempt_id)
EVENT_WITHOUT_RUN = _without_run("events", events, _E.type)
DOMAIN_WITHOUT_RUN = _without_run("domains", domains, _D.domain_id)
TICKET_WITHOUT_RUN = _without_run("tickets", tickets, _K.operation_id)
TRY_WITHOUT_OPERATION = _query(
    "tries",
    operation_tries,
    _T.run_id,
    _T.operation_id,
    ~exists().where(_O.space == _T.space, _O.operation_id == _T.operation_id),
)
RUN_WITHOUT_ATTEMPT = _query(
    "run_attempt",
    runs,
    _R.run_id,
    _R.attempt_id,
    _R.attempt_id.is_not(None),
    ~exists().where(_A.space == _R.space, _A.attempt_id == _R.attempt_id),
)
HEAD_WITHOUT_CHECKPOINT = _query(
    "heads",
    heads,
    _H.thread_id,
    _H.checkpoint_id,
    ~exists().where(
        _C.space == _H.space,
        _C.thread_id == _H.thread_id,
        _C.checkpoint_ns == _H.checkpoint_ns,
        _C.checkpoint_id == _H.checkpoint_id,
    ),
)
_parent = checkpoints.alias("parent")
CHECKPOINT_WITHOUT_PARENT = _query(
    "parents",
    checkpoints,
    _C.checkpoint_id,
    _C.parent_id,
    _C.parent_id.is_not(None),
    _C.orphan == literal_column("0"),
    ~exists().where(
        _parent.c.space == _C.space,
        _parent.c.thread_id == _C.thread_id,
        _parent.c.checkpoint_ns == _C.checkpoint_ns,
        _parent.c.checkpoint_id == _C.parent_id,
    ),
)
OWNER_WITHOUT_RUN = _query(
    "owners",
    threads,
    _TH.thread_id,
    _TH.owner_run_id,
    _TH.thread_id.is_not(None),
    _TH.owner_run_id.is_not(None),
    ~exists().where(_R.space == _TH.space, _R.run_id == _TH.owner_run_id),
)
ATTEMPTS_MISCOUNTED = _query(
    "attempt_no", runs, _R.run_id, cast(_count(attempts), Text), _R.attempt_no != _count(attempts)
)
DOMAINS_MISCOUNTED = _query(
    "domains_opened", runs, _R.run_id, cast(_count(domains), Text), _R.domains_opened != _count(domains)
)
_tries = (
    select(func.count())
    .select_from(operation_tries)
    .where(_T.space == _O.space, _T.operation_id == _O.operation_id)
    .scalar_subquery()
)
TRIES_MISCOUNTED = _query(
    "try_no", operations, _O.operation_id, cast(_tries, Text), _O.copied_from.is_(None), _O.try_no != _tries
)
BLOCKED_RUN = _query("blocked", runs, _R.run_id, _R.status, _R.revocation == constant(BLOCKED))
LEFT_RUN = _query(
    "left",
    runs,
    _R.run_id,
    _R.status,
    _R.status.not_in([constant(one.value) for one in sorted(FINAL_RUN)]),
    or_(_R.revocation.is_(None), _R.revocation != constant(BLOCKED)),
    and_(_R.phase != constant(LeasePhase.RELEASED.value), _R.expires_us <= now_us()),
)
CLOCK: Final = Query("doctor_clock", select(now_us().label("now_us")))
