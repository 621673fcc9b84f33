"""Who could do what: the workers as they reported themselves, and the graphs as they are registered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from runtime_persist.inspector.workers import WorkerView, worker_views
from runtime_persist.model.states import ACTIVE_RUN, RunStatus
from runtime_persist.queries import fleet as queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime_persist.engine import Engine, Flow


class GraphView(BaseModel):
    """A graph that runs can be started of.

    Attributes:
        graph: its name.
        version: of the definition that was registered last.
        max_concurrency: how many of its runs may be active (None: any number).
        workspace: what its attempts share (None: nothing).
        retry_policy: for runs that are started without one (None: a failure is final).
        waiting: its runs that wait for a worker, or for their retry.
        active: its runs that hold one of its places.
        asking: its runs that wait for a person.
        workers: that are alive and have it, in whatever version.

    """

    model_config = ConfigDict(frozen=True)

    graph: str
    version: str | None
    max_concurrency: int | None
    workspace: dict[str, Any] | None
    retry_policy: dict[str, Any] | None
    waiting: int
    active: int
    asking: int
    workers: int


def load_workers(engine: Engine) -> Flow[list[WorkerView]]:
    """Read the workers, those that are alive first."""
    found: queries.Fleet = yield engine.coordinator.read(
        "read_fleet", lambda: queries.fleet(engine.space), snapshot=True
    )
    workers = worker_views(found.instances, found.held, found.now_us)
    return sorted(workers, key=lambda worker: (worker.state == "gone", worker.worker_id))


def load_graphs(engine: Engine) -> Flow[list[GraphView]]:
    """Read the graphs by name, with their open runs and who has them."""
    found: queries.Fleet = yield engine.coordinator.read(
        "read_fleet", lambda: queries.fleet(engine.space), snapshot=True
    )
    workers = [one for one in worker_views(found.instances, found.held, found.now_us) if one.state != "gone"]
    return [_graph(row, found.counts, workers) for row in found.graphs]


def _graph(row: Mapping[str, Any], counts: Sequence[Mapping[str, Any]], workers: list[WorkerView]) -> GraphView:
    open_ = {one["status"]: one["runs"] for one in counts if one["graph"] == row["graph"]}
    return GraphView(
        graph=row["graph"],
        version=row["version"],
        max_concurrency=row["max_concurrency"] or None,
        workspace=json.loads(row["workspace"]) if row["workspace"] else None,
        retry_policy=json.loads(row["retry_policy"]) if row["retry_policy"] else None,
        waiting=sum(open_.get(status, 0) for status in (RunStatus.QUEUED, RunStatus.RETRY_WAIT)),
        active=sum(open_.get(status, 0) for status in ACTIVE_RUN),
        asking=open_.get(RunStatus.WAITING_APPROVAL, 0),
        workers=sum(row["graph"] in worker.graphs for worker in workers),
    )
