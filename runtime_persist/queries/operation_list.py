"""Operations for people: the newest ones, of a run or of all, with what is known about their last try."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, bindparam, case, exists, literal_column, or_, select
from sqlalchemy.types import BigInteger

from runtime_persist.dialects.sql import bind, constant, now_us, words
from runtime_persist.model.states import LeasePhase, OperationStatus, TryStatus
from runtime_persist.plan import Plan, Query, Row, many, one_or_none
from runtime_persist.queries.checkpoints import LAST
from runtime_persist.schema import operation_tries, operations, runs

if TYPE_CHECKING:
    from collections.abc import Sequence

_O, _T = operations.c, operation_tries.c
_PAGE = bindparam("page_rows", type_=BigInteger())
# A try that started is in flight as long as the lease it was started under is live; then nothing proves what becomes of
# it any more.
_in_flight = exists().where(
    runs.c.space == _T.space,
    runs.c.run_id == _T.run_id,
    runs.c.epoch == _T.epoch,
    runs.c.phase != constant(LeasePhase.RELEASED.value),
    runs.c.expires_us > now_us(),
)
_shown = case(
    (and_(_T.status == constant(TryStatus.STARTED.value), ~_in_flight), constant(TryStatus.UNKNOWN.value)),
    else_=_T.status,
)
_last_try = operations.join(
    operation_tries, (_T.space == _O.space) & (_T.operation_id == _O.operation_id) & (_T.try_no == _O.try_no)
)
_LISTED = (*_O, _shown.label("try_shown"), _T.run_id.label("try_run_id"), _T.started_us.label("try_started_us"))
_asked_for = or_(
    bindparam("only_unknown", type_=BigInteger()) == constant(0),
    and_(_O.status == constant(OperationStatus.PENDING.value), _shown == constant(TryStatus.UNKNOWN.value)),
)
_before = _O.operation_id < words("before")

# Ids are in the order in which they were given, so a page begins behind an id, and costs the same wherever that is.
LIST_OPERATIONS = Query(
    "list_operations",
    select(*_LISTED)
    .select_from(_last_try)
    .where(_O.space == bind(_O.space), _before, _asked_for)
    .order_by(_O.operation_id.desc())
    .limit(_PAGE),
)
_again = operation_tries.alias("again")
_TAKEN_OVER = select(_again.c.operation_id).where(
    _again.c.space == bind(_O.space), _again.c.run_id == bind(_O.run_id), _again.c.try_no > literal_column("1")
)
LIST_BEGUN = Query(
    "list_operations_begun",
    select(*_LISTED)
    .select_from(_last_try)
    .where(_O.space == bind(_O.space), _O.run_id == bind(_O.run_id), _before, _asked_for)
    .order_by(_O.operation_id.desc())
    .limit(_PAGE),
)
LIST_TAKEN_OVER = Query(
    "list_operations_taken_over",
    select(*_LISTED)
    .select_from(_last_try)
    .where(
        _O.space == bind(_O.space),
        _O.operation_id.in_(_TAKEN_OVER),
        _O.run_id != bind(_O.run_id),
        _before,
        _asked_for,
    )
    .order_by(_O.operation_id.desc())
    .limit(_PAGE),
)
READ_TRIES = Query(
    "read_operation_tries",
    select(*_T, _shown.label("shown"))
    .where(_T.space == bind(_T.space), _T.operation_id == bind(_T.operation_id))
    .order_by(_T.try_no),
)
READ_OPERATION = Query(
    "read_operation_alone",
    select(operations).where(_O.space == bind(_O.space), _O.operation_id == bind(_O.operation_id)),
)


def listing(space: str, run_id: str | None, rows: int, *, unknown: bool, before: str | None = None) -> Plan[list[Row]]:
    """Read the newest operations: those that a run made, or all.

    Args:
        space: tenant.
        run_id: only operations that this run began, or tried again after another one (None: all).
        rows: at most so many.
        unknown: only those of which nothing proves what became of them.
        before: only those with a smaller id: the page behind the one that ended there.

    """
    page = {"space": space, "only_unknown": int(unknown), "page_rows": rows, "before": before or LAST}
    if run_id is None:
        return list((yield from many(LIST_OPERATIONS, **page)))
    begun = list((yield from many(LIST_BEGUN, **page, run_id=run_id)))
    begun += yield from many(LIST_TAKEN_OVER, **page, run_id=run_id)
    return sorted(begun, key=lambda row: row["operation_id"], reverse=True)[:rows]


def with_tries(space: str, operation_id: str) -> Plan[tuple[Row, Sequence[Row]] | None]:
    """Read an operation and its tries, each with what is known about it (``shown``)."""
    row = yield from one_or_none(READ_OPERATION, space=space, operation_id=operation_id)
    if row is None:
        return None
    return row, (yield from many(READ_TRIES, space=space, operation_id=operation_id))
