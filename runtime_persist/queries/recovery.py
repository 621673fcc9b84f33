"""The open rows of a run, for the recovery table: what it stands on, and what of it has no end.

Of a long run little is open: its calls are read from the checkpoint on that it goes on from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, literal_column, or_, select, tuple_

from runtime_persist.dialects.sql import bind, constant, number
from runtime_persist.model.budgets import TicketState
from runtime_persist.model.domains import DomainState
from runtime_persist.model.states import OperationStatus
from runtime_persist.plan import Plan, Query, Row, many, one_or_none
from runtime_persist.queries import runs as run_queries
from runtime_persist.schema import attempts, checkpoints, domains, heads, operation_tries, operations, tickets, writes

if TYPE_CHECKING:
    from collections.abc import Sequence

_C, _D, _H, _O, _T, _W = checkpoints.c, domains.c, heads.c, operations.c, operation_tries.c, writes.c
_SPACE, _THREAD, _RUN = bind(_H.space), bind(_H.thread_id), bind(_O.run_id)
_CHECKPOINT_OF_HEAD = and_(
    _C.space == _H.space,
    _C.thread_id == _H.thread_id,
    _C.checkpoint_ns == _H.checkpoint_ns,
    _C.checkpoint_id == _H.checkpoint_id,
)
# Each head's checkpoint by its key: in a join SQLite reads all of the thread's checkpoints, and looks for their heads.
_stands = (
    select(
        _H.checkpoint_ns,
        _H.checkpoint_id,
        select(_C.created_us).where(_CHECKPOINT_OF_HEAD).scalar_subquery().label("created_us"),
    )
    .where(_H.space == _SPACE, _H.thread_id == _THREAD)
    .subquery("stands")
)
READ_HEAD = Query("read_head_of_thread", select(_stands).where(_stands.c.checkpoint_ns == constant("")))
_since = _stands.c.created_us >= number("since_us")
READ_HEADS = Query("read_heads_since", select(_stands).where(_since))
READ_WRITES = Query(
    "read_writes_of_heads",
    select(_W.checkpoint_ns, _W.checkpoint_id, _W.task_id, _W.task_path, _W.idx, _W.channel)
    .where(
        _W.space == _SPACE,
        _W.thread_id == _THREAD,
        tuple_(_W.checkpoint_ns, _W.checkpoint_id).in_(
            select(_stands.c.checkpoint_ns, _stands.c.checkpoint_id).where(_since)
        ),
    )
    .order_by(_W.task_id, _W.idx),
)
_LAST_TRY = and_(_T.space == _O.space, _T.operation_id == _O.operation_id, _T.try_no == _O.try_no)
_ITS_ATTEMPT = and_(attempts.c.space == _T.space, attempts.c.attempt_id == _T.attempt_id)
# An operation that another run began has a further try of this one: the few are found without its own first tries.
_TRIED = select(_T.operation_id).where(_T.space == _SPACE, _T.run_id == _RUN, _T.try_no > literal_column("1"))
READ_CALLS = Query(
    "read_open_calls",
    select(
        _O.operation_id,
        _O.checkpoint_ns,
        _O.name,
        _O.ordinal,
        _O.status,
        _O.phase,
        _O.on_unknown,
        _O.run_id,
        _O.node_attempt,
        _O.try_no,
        _O.error_type,
        _O.created_us,
        _T.status.label("try_status"),
        _T.epoch.label("try_epoch"),
        attempts.c.status.label("try_attempt_status"),
    )
    .select_from(operations.outerjoin(operation_tries, _LAST_TRY).outerjoin(attempts, _ITS_ATTEMPT))
    .where(
        _O.space == _SPACE,
        or_(_O.run_id == _RUN, _O.operation_id.in_(_TRIED)),
        or_(_O.created_us >= number("since_us"), _O.status == constant(OperationStatus.PENDING.value)),
    )
    .order_by(_O.created_us, _O.operation_id),
)
_K = tickets.c
READ_RESERVED = Query(
    "read_reserved_tickets",
    select(_K.operation_id, _K.epoch, _O.name, _O.status.label("operation_status"))
    .select_from(tickets.outerjoin(operations, and_(_O.space == _K.space, _O.operation_id == _K.operation_id)))
    .where(_K.space == bind(_K.space), _K.run_id == bind(_K.run_id), _K.state == constant(TicketState.RESERVED.value))
    .order_by(_K.reserved_us, _K.operation_id),
)
READ_OPEN_DOMAINS = Query(
    "read_left_domains",
    select(domains)
    .where(_D.space == bind(_D.space), _D.run_id == bind(_D.run_id), _D.state == constant(DomainState.OPEN.value))
    .order_by(_D.opened_us, _D.domain_id),
)


@dataclass(frozen=True, slots=True)
class OpenRows:
    """What was read of a run, all of one moment if it was read in a snapshot."""

    run: Row
    attempts: Sequence[Row]
    began: bool
    domains: Sequence[Row]
    operations: Sequence[Row]
    tickets: Sequence[Row]
    heads: Sequence[Row]
    writes: Sequence[Row]


def open_rows(space: str, run_id: str) -> Plan[OpenRows | None]:
    """Read what of a run is open."""
    run = yield from run_queries.run(space, run_id)
    if run is None:
        return None
    key, thread = {"space": space, "run_id": run_id}, {"space": space, "thread_id": run["thread_id"]}
    began = yield from run_queries.began(space, run["thread_id"], run_id)
    head = yield from one_or_none(READ_HEAD, **thread)
    goes_on = head is not None and (began or run["retry_of_run_id"] is not None)
    since = head["created_us"] if goes_on and head is not None else 0
    stands: Sequence[Row] = ()
    wrote: Sequence[Row] = ()
    if goes_on:
        stands = yield from many(READ_HEADS, **thread, since_us=since)
        wrote = yield from many(READ_WRITES, **thread, since_us=since)
    return OpenRows(
        run,
        (yield from run_queries.attempts_of(space, run_id)),
        began,
        (yield from many(READ_OPEN_DOMAINS, **key)),
        (yield from many(READ_CALLS, **key, since_us=since)),
        (yield from many(READ_RESERVED, **key)),
        stands,
        wrote,
    )
