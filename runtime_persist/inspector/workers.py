"""What workers reported of themselves, and which of them could take a run: pure functions of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from pydantic import BaseModel, ConfigDict

from runtime_persist.inspector.spelling import ago
from runtime_persist.model.capacity import Report, task_id
from runtime_persist.queries.claiming import ANY_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class WorkerView(BaseModel):
    """A worker as it reported itself last. Times are microseconds since 1970 by the database clock.

    Attributes:
        worker_id: host, process and a random part.
        instance_id: of its report.
        state: ``alive``, ``draining`` (it claims nothing more) or ``gone`` (its report ran out).
        slots: tasks that it executes at the same time.
        occupied: slots that are taken, as it says or as the database does.
        graphs: name -> versions that it executes (``*``: all).
        active_task_ids: what it executes, as it said.
        reported_us: when it said so.
        expires_us: until when that counts.

    """

    model_config = ConfigDict(frozen=True)

    worker_id: str
    instance_id: str
    host: str
    state: str
    slots: int
    occupied: int
    graphs: dict[str, list[str]]
    active_task_ids: list[str]
    reported_us: int
    expires_us: int


class Verdict(BaseModel):
    """Whether a worker could take a run, and why not."""

    model_config = ConfigDict(frozen=True)

    worker_id: str
    could: bool
    why: str


def worker_views(rows: Sequence[Mapping[str, Any]], held: Sequence[Mapping[str, Any]], now_us: int) -> list[WorkerView]:
    """Return the workers of their rows; ``held`` are the tasks that hold slots in the database."""
    tasks: dict[str, list[str]] = {}
    for row in held:
        tasks.setdefault(row["instance_id"], []).append(task_id(row["run_id"], row["epoch"]))
    return [_view(row, tasks.get(row["instance_id"], []), now_us) for row in rows]


def _view(row: Mapping[str, Any], held: list[str], now_us: int) -> WorkerView:
    report = Report.stored(row["slots"], row["active_task_ids"])
    gone = row["expires_us"] <= now_us or report is None
    state = "gone" if gone else "draining" if row["draining"] else "alive"
    return WorkerView(
        worker_id=row["worker_id"],
        instance_id=row["instance_id"],
        host=row["host"],
        state=state,
        slots=row["slots"],
        occupied=len(held) if report is None else report.occupied(held),
        graphs={name: sorted(versions) for name, versions in orjson.loads(row["graphs"]).items()},
        active_task_ids=[] if report is None else list(report.active_task_ids),
        reported_us=row["reported_us"],
        expires_us=row["expires_us"],
    )


def verdict(worker: WorkerView, graph: str, version: str | None, now_us: int) -> Verdict:
    """Return whether a worker could take a run of a graph's version now."""
    versions = worker.graphs.get(graph)
    if worker.state == "gone":
        why = f"gone: it reported last {ago(worker.reported_us, now_us)}"
    elif worker.state == "draining":
        why = "it is shutting down"
    elif versions is None:
        why = f"it does not have graph {graph}"
    elif version is not None and not {version, ANY_VERSION} & set(versions):
        why = f"it has version {', '.join(versions)} of {graph}, not {version}"
    elif worker.occupied >= worker.slots:
        why = f"all {worker.slots} of its slots are taken"
    else:
        why = f"{worker.slots - worker.occupied} of {worker.slots} slots are free"
        return Verdict(worker_id=worker.worker_id, could=True, why=why)
    return Verdict(worker_id=worker.worker_id, could=False, why=why)
