"""The three gates of whoever makes a run active: a slot of its instance, a place of its graph, and its scope.

Each gate is a lock, then a count in a statement of its own: what others committed while this one waited is counted.
They are passed in one order, so nobody waits for somebody who waits for him:
instance, thread, run, graph, scope.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from sqlalchemy import func, select

from runtime_persist.dialects.sql import bind, locked_word, now_us, words
from runtime_persist.errors import CapacityReached, CapacityUnknown
from runtime_persist.model.capacity import Report, task_id
from runtime_persist.model.states import ACTIVE_RUN
from runtime_persist.plan import Query, many, one_or_none
from runtime_persist.schema import graphs, instances, runs
from runtime_persist.schema.runs import is_active

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from runtime_persist.plan import Plan, Row

_locked = (
    select(instances)
    .where(instances.c.space == bind(instances.c.space), instances.c.instance_id == bind(instances.c.instance_id))
    .with_for_update()
    .cte("locked_instance")
)
LOCK_INSTANCE = Query("lock_instance", select(*_locked.c, now_us().label("now_us")))
READ_HELD = Query(
    "read_held_slots",
    select(runs.c.run_id, runs.c.epoch).where(
        runs.c.space == bind(runs.c.space), runs.c.instance_id == bind(runs.c.instance_id), is_active(runs)
    ),
)
LOCK_SCOPE = Query("lock_scope", select(locked_word(words("scope_of_space")).label("one")))
READ_SCOPE = Query(
    "read_scope_holder",
    select(runs.c.run_id).where(
        runs.c.space == bind(runs.c.space),
        runs.c.scope == bind(runs.c.scope),
        runs.c.scope.is_not(None),
        is_active(runs),
    ),
)
LOCK_LIMIT = Query(
    "lock_graph_limit",
    select(graphs.c.max_concurrency)
    .where(
        graphs.c.space == bind(graphs.c.space),
        graphs.c.graph == bind(graphs.c.graph),
        graphs.c.max_concurrency.is_not(None),
    )
    .with_for_update(),
)
COUNT_PLACES = Query(
    "count_places",
    select(func.count().label("taken")).where(
        runs.c.space == bind(runs.c.space), runs.c.graph == bind(runs.c.graph), is_active(runs)
    ),
)
PLACES = (LOCK_LIMIT, COUNT_PLACES, LOCK_SCOPE, READ_SCOPE)
"""What :func:`take_places` may run."""


def check_report(instance_id: str | None, worker_id: str, row: Row | None, now: int) -> Report:
    """Return the report of a locked instance (raises CapacityUnknown: there is none that counts)."""
    report = None if row is None else Report.stored(row["slots"], row["active_task_ids"])
    if row is None or instance_id is None:
        why = "has not reported its capacity"
    elif row["worker_id"] != worker_id:
        why = f"is one of worker {row['worker_id']}, not of {worker_id}"
    elif row["expires_us"] <= now:
        why = f"reported its capacity last {(now - row['reported_us']) / 1_000_000:.1f} s ago, which is too long"
    elif row["draining"]:
        why = "is shutting down"
    elif report is None:
        why = "reported its capacity incompletely"
    else:
        return report
    msg = f"instance {instance_id} {why}; it may claim nothing until it reports again"
    raise CapacityUnknown(msg, instance_id=instance_id, worker_id=worker_id)


def take_slot(space: str, instance_id: str, report: Report, run_id: str) -> Plan[None]:
    """Check that the instance (its row is locked) has a free slot for a run (raises CapacityReached)."""
    held = yield from many(READ_HELD, space=space, instance_id=instance_id)
    check_slot(instance_id, report, (task_id(row["run_id"], row["epoch"]) for row in held if row["run_id"] != run_id))


def check_slot(instance_id: str, report: Report, held: Iterable[str]) -> None:
    """Raise CapacityReached unless the instance has a free slot beside what it reported and the tasks it holds."""
    taken = report.occupied(held)
    if taken >= report.slots:
        msg = f"instance {instance_id} has {taken} of {report.slots} slots taken"
        raise CapacityReached(msg, gate="instance", instance_id=instance_id, taken=taken, places=report.slots)


def take_places(run: Row, ended: Sequence[Row] = ()) -> Plan[None]:
    """Check that a run may become active: its graph has a place, and its scope is free (raises CapacityReached).

    One that is active already (left, lost) has its places. ``ended``: other runs whose end is part of the command.
    """
    if run["status"] in ACTIVE_RUN:
        return
    limit = yield from one_or_none(LOCK_LIMIT, space=run["space"], graph=run["graph"])
    if limit is not None:
        places = yield from one_or_none(COUNT_PLACES, space=run["space"], graph=run["graph"])
        freed = sum(one["graph"] == run["graph"] and one["status"] in ACTIVE_RUN for one in ended)
        check_places(run["graph"], limit["max_concurrency"], (0 if places is None else places["taken"]) - freed)
    yield from take_scope(run, ended)


def take_scope(run: Row, ended: Sequence[Row] = ()) -> Plan[None]:
    """Check that no active run has the scope of this one (raises CapacityReached)."""
    if run["scope"] is None:
        return
    yield from many(LOCK_SCOPE, scope_of_space=orjson.dumps([run["space"], run["scope"]]).decode())
    holders = yield from many(READ_SCOPE, space=run["space"], scope=run["scope"])
    found = {row["run_id"] for row in holders} - {row["run_id"] for row in ended}
    if found:
        msg = f"run {min(found)} has the scope {run['scope']!r} of run {run['run_id']}"
        raise CapacityReached(msg, gate="scope", scope=run["scope"], run_id=min(found))


def check_places(graph: str, limit: int, taken: int) -> None:
    """Raise CapacityReached unless fewer runs of the graph are active than may be."""
    if taken >= limit:
        msg = f"graph {graph!r} has {taken} active runs, and max_concurrency={limit}"
        raise CapacityReached(msg, gate="graph", graph=graph, taken=taken, places=limit)
