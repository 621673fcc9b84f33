"""What workers reported of themselves, the graphs, and how many runs of each are open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select

from runtime_persist.dialects.sql import bind, now_us
from runtime_persist.plan import Plan, Query, Row, many, one_or_none
from runtime_persist.queries import graphs as graph_queries
from runtime_persist.queries import open_runs
from runtime_persist.schema import instances, runs
from runtime_persist.schema.runs import is_active

if TYPE_CHECKING:
    from collections.abc import Sequence

READ_INSTANCES = Query(
    "read_instances",
    select(instances).where(instances.c.space == bind(instances.c.space)).order_by(instances.c.worker_id),
)
READ_HELD = Query(
    "read_held_of_instances",
    select(runs.c.instance_id, runs.c.run_id, runs.c.epoch).where(
        runs.c.space == bind(runs.c.space), runs.c.instance_id.is_not(None), is_active(runs)
    ),
)
READ_CLOCK = Query("read_clock", select(now_us().label("now_us")))


@dataclass(frozen=True, slots=True)
class Fleet:
    """What there is, read in one snapshot.

    Attributes:
        now_us: the database clock.
        instances: what workers reported of themselves.
        held: the tasks that hold slots: ``instance_id, run_id, epoch``.
        graphs: the registered ones, by name.
        counts: open runs: ``status, graph, runs, oldest_us, now_us``.

    """

    now_us: int
    instances: Sequence[Row]
    held: Sequence[Row]
    graphs: Sequence[Row]
    counts: Sequence[Row]


def reported(space: str) -> Plan[tuple[Sequence[Row], Sequence[Row]]]:
    """Read the instances, and the tasks that hold their slots."""
    return (yield from many(READ_INSTANCES, space=space)), (yield from many(READ_HELD, space=space))


def fleet(space: str) -> Plan[Fleet]:
    """Read what there is."""
    clock = yield from one_or_none(READ_CLOCK)
    found, held = yield from reported(space)
    graphs = yield from graph_queries.registered(space)
    counts = yield from open_runs.open_counts(space)
    return Fleet(0 if clock is None else clock["now_us"], found, held, list(graphs.values()), counts)
