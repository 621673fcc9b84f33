"""What is looked at of a run, a page at a time: the newest of what there may be any number of.

A page begins behind a key, never at a count, so it costs the same wherever it is. Ids of operations, and of a
namespace's checkpoints, are in the order in which they were given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import case, func, literal_column, select

from runtime_persist.dialects.sql import among, bind, constant, number, words
from runtime_persist.model.states import OperationStatus, TryStatus
from runtime_persist.plan import Plan, Query, Row, many, one_or_none
from runtime_persist.queries import domains as domain_queries
from runtime_persist.queries import operation_list
from runtime_persist.queries.checkpoints import LAST
from runtime_persist.queries.runs import READ_ATTEMPTS, READ_RUN
from runtime_persist.schema import checkpoints, events, heads, operation_tries, operations

if TYPE_CHECKING:
    from collections.abc import Sequence

_C, _E, _H, _O, _T = checkpoints.c, events.c, heads.c, operations.c, operation_tries.c
_METADATA_BYTES_MAX = 65_536
_NAMESPACES_MAX = 50

READ_CHECKPOINTS = Query(
    "read_checkpoints_of_run",
    select(
        _C.checkpoint_ns,
        _C.checkpoint_id,
        _C.parent_id,
        _C.epoch,
        _C.created_us,
        # Large metadata is not read for a look at the run.
        case((func.length(_C.metadata) <= constant(_METADATA_BYTES_MAX), _C.metadata)).label("metadata"),
    )
    .where(
        _C.space == bind(_C.space),
        _C.thread_id == bind(_C.thread_id),
        _C.checkpoint_ns == bind(_C.checkpoint_ns),
        _C.checkpoint_id < words("before"),
        _C.run_id == bind(_C.run_id),
    )
    .order_by(_C.checkpoint_id.desc())
    .limit(number("page_rows")),
)
READ_NAMESPACES = Query(
    "read_newest_namespaces",
    select(_H.checkpoint_ns)
    .where(_H.space == bind(_H.space), _H.thread_id == bind(_H.thread_id))
    .order_by(case((_H.checkpoint_ns == literal_column("''"), constant(0)), else_=constant(1)), _H.checkpoint_id.desc())
    .limit(number("page_rows")),
)
READ_NEWEST_EVENTS = Query(
    "read_newest_events",
    select(events)
    .where(_E.space == bind(_E.space), _E.run_id == bind(_E.run_id), _E.seq < number("before_seq"))
    .order_by(_E.seq.desc())
    .limit(number("page_rows")),
)
COUNT_BEGUN = Query(
    "count_operations_begun",
    select(func.count().label("found")).where(_O.space == bind(_O.space), _O.run_id == bind(_O.run_id)),
)
# Its tries that are no success name its operations without an outcome, however many others it has.
READ_PENDING = Query(
    "read_pending_operations_of_run",
    select(
        *_O,
        _T.status.label("try_status"),
        _T.started_us.label("try_started_us"),
        _T.epoch.label("try_epoch"),
        _T.provider_request_id,
    )
    .select_from(
        operation_tries.join(
            operations, (_O.space == _T.space) & (_O.operation_id == _T.operation_id) & (_O.try_no == _T.try_no)
        )
    )
    .where(
        _T.space == bind(_T.space),
        _T.run_id == bind(_T.run_id),
        _T.status.in_([constant(one.value) for one in (TryStatus.STARTED, TryStatus.UNKNOWN, TryStatus.FAILED)]),
        _O.status == constant(OperationStatus.PENDING.value),
    )
    .order_by(_O.operation_id.concat(constant("")))  # few: the index of all operations is no way to order them
    .limit(number("page_rows")),
)
READ_TRIES = Query(
    "read_tries_of_operations",
    select(operation_tries)
    .where(_T.space == bind(_T.space), among(_T.operation_id, "operation_ids"))
    .order_by(_T.operation_id, _T.try_no),
    each="operation_ids",
)


@dataclass(frozen=True, slots=True)
class RunRows:
    """A run and what it did, read in one snapshot; of operations, checkpoints and events the newest.

    Attributes:
        operations: oldest first; all that are pending are among them.
        tries: of these operations, of whatever run.
        more: how many older ones there are besides, by what they are; what is not counted is None.

    """

    run: Row
    attempts: list[Row]
    operations: list[Row]
    tries: list[Row]
    checkpoints: list[Row]
    domains: list[Row]
    events: list[Row]
    more: dict[str, int | None] = field(default_factory=dict)


def page(space: str, run_id: str, rows: int) -> Plan[RunRows | None]:
    """Read a run and the newest of what it did (None: there is no such run)."""
    run = yield from one_or_none(READ_RUN, space=space, run_id=run_id)
    if run is None:
        return None
    key = {"space": space, "run_id": run_id}
    listed = yield from operation_list.listing(space, run_id, rows, unknown=False)
    held = yield from pending(space, run_id, rows)
    found: dict[str, Row] = {row["operation_id"]: row for row in (*held, *listed)}
    ids = sorted(found)
    tries = (yield from many(READ_TRIES, space=space, operation_ids=ids)) if ids else ()
    stored = yield from newest_checkpoints(space, run["thread_id"], run_id, rows)
    told = list((yield from many(READ_NEWEST_EVENTS, **key, before_seq=run["event_seq"] + 1, page_rows=rows)))
    counted: int = len(found)
    if len(listed) == rows:
        row = yield from one_or_none(COUNT_BEGUN, **key)
        counted = max(counted, 0 if row is None else row["found"])
    more: dict[str, int | None] = {
        "operations": counted - len(found),
        "checkpoints": None if len(stored) == rows else 0,
        "events": run["event_seq"] - len(told),
    }
    return RunRows(
        run,
        list((yield from many(READ_ATTEMPTS, **key))),
        [found[one] for one in ids],
        list(tries),
        stored[::-1],
        list((yield from domain_queries.of_run(space, run_id))),
        told[::-1],
        more,
    )


def pending(space: str, run_id: str, rows: int) -> Plan[Sequence[Row]]:
    """Read the operations of which a run made the last try, and that have no outcome; with that try."""
    return (yield from many(READ_PENDING, space=space, run_id=run_id, page_rows=rows))


def newest_checkpoints(
    space: str, thread_id: str, run_id: str, rows: int, ns: str | None = None, before: str | None = None
) -> Plan[list[Row]]:
    """Read the newest checkpoints that a run stored, newest first.

    Args:
        space: tenant.
        thread_id: the run's thread.
        run_id: the run.
        rows: at most so many.
        ns: only of this namespace (None: of the root and the namespaces that were written last).
        before: only those with a smaller id: the page behind the one that ended there.

    """
    names = [ns] if ns is not None else []
    if ns is None:
        given = {"space": space, "thread_id": thread_id, "page_rows": _NAMESPACES_MAX}
        names = [row["checkpoint_ns"] for row in (yield from many(READ_NAMESPACES, **given))]
    found: list[Row] = []
    for name in names:
        key = {"space": space, "thread_id": thread_id, "checkpoint_ns": name, "run_id": run_id}
        found += yield from many(READ_CHECKPOINTS, **key, before=before or LAST, page_rows=rows)
    return sorted(found, key=lambda row: row["checkpoint_id"], reverse=True)[:rows]
