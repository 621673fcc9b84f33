"""A first recovery bundle of one run: assembled in one consistent read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ormsgpack
from pydantic import BaseModel, ConfigDict

from runtime_persist.adapters.workflow.encoding import decoded_metadata
from runtime_persist.engine import Engine, Flow, ownership
from runtime_persist.errors import RunNotFound
from runtime_persist.inspector.database import DatabaseView, load_database
from runtime_persist.inspector.dispatch import Action, plan
from runtime_persist.model.payload import PayloadRef
from runtime_persist.model.records import RunRecord
from runtime_persist.queries import runs as run_queries

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol

_EVENTS_MAX = 1_000
_QUESTION_BYTES_MAX = 65_536


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class AttemptView(_Frozen):
    """One dispatch of the run."""

    attempt_no: int
    attempt_id: str
    status: str
    cause: str
    epoch: int | None
    worker_id: str | None
    claimed_us: int | None
    start_requested_us: int | None
    ended_us: int | None
    termination_reason: str | None
    error_code: str | None


class CheckpointView(_Frozen):
    """One checkpoint that the run wrote."""

    checkpoint_ns: str
    checkpoint_id: str
    parent_id: str | None
    epoch: int | None
    step: int | None
    source: str | None
    created_us: int


class TryView(_Frozen):
    """One physical try of an operation. ``shown`` is ``unknown`` also while nobody has stated it yet."""

    try_no: int
    status: str
    shown: str
    epoch: int
    run_id: str
    error_type: str | None
    started_us: int
    ended_us: int | None


class OperationView(_Frozen):
    """One call of the outside world."""

    operation_id: str
    name: str
    ordinal: str
    checkpoint_ns: str
    status: str
    on_unknown: str
    request: str
    idempotency_key: str
    error_type: str | None
    error_text: str | None
    tries: list[TryView]


class EventView(_Frozen):
    """One fact of the run."""

    seq: int
    type: str
    actor: str
    attempt_id: str | None
    epoch: int | None
    payload: dict[str, Any]
    created_us: int


class RecoveryBundle(_Frozen):
    """What is needed to explain a run, read in one snapshot.

    Attributes:
        run: the run.
        database: where it was read.
        question: why it waits for a person, if it does.
        attempts: its dispatches.
        checkpoints: what it stored.
        operations: its journal.
        events: its facts, in order.
        recovery: what recovery would do now.

    """

    run: RunRecord
    database: DatabaseView
    question: Any
    attempts: list[AttemptView]
    checkpoints: list[CheckpointView]
    operations: list[OperationView]
    events: list[EventView]
    recovery: list[Action]


def load_bundle(engine: Engine, serde: SerializerProtocol, run_id: str) -> Flow[RecoveryBundle]:
    """Read the bundle of a run (raises RunNotFound)."""
    rows: run_queries.RunRows | None = yield engine.coordinator.read(
        "read_bundle",
        lambda: run_queries.bundle(engine.space, run_id, _EVENTS_MAX),
        snapshot=True,
    )
    if rows is None:
        msg = f"there is no run {run_id!r} in space {engine.space!r}"
        raise RunNotFound(msg, run_id=run_id)
    database = yield from load_database(engine)
    question = yield from _question(engine, serde, rows.run["question"], run_id)
    run = RunRecord.of(rows.run)
    live = run.shown in {"running", "starting", "cancelling"}
    operations = [_operation(row, rows, live=live) for row in rows.operations]
    last = {view.operation_id: view.tries[-1].status if view.tries else None for view in operations}
    joined = [{**row, "try_status": last[row["operation_id"]]} for row in rows.operations]
    return RecoveryBundle(
        run=run,
        database=database,
        question=question,
        attempts=[AttemptView.model_validate(dict(row)) for row in rows.attempts],
        checkpoints=[_checkpoint(row, serde) for row in rows.checkpoints],
        operations=operations,
        events=[_event(row) for row in rows.events],
        recovery=plan(rows.run, joined, rows.run["now_us"]),
    )


def _question(engine: Engine, serde: SerializerProtocol, data: bytes | None, run_id: str) -> Flow[Any]:
    """Load what a person is asked; of a large question only the size is told."""
    if data is None:
        return None
    size = PayloadRef.decoded(data).size
    if size > _QUESTION_BYTES_MAX:
        return f"({size:,} bytes, not loaded; runtime.runs.question gives it)"
    return (yield from ownership.decode(engine, serde, data, f"the question of run {run_id}"))


def _operation(row: Any, rows: run_queries.RunRows, *, live: bool) -> OperationView:
    tries = []
    for tried in rows.tries:
        if tried["operation_id"] == row["operation_id"]:
            ours = live and tried["epoch"] == rows.run["epoch"]
            shown = "unknown" if tried["status"] == "started" and not ours else tried["status"]
            tries.append(TryView.model_validate({**tried, "shown": shown}))
    return OperationView.model_validate({**row, "tries": tries})


def _checkpoint(row: Any, serde: SerializerProtocol) -> CheckpointView:
    large = row["metadata"] is None  # too large to be read for the two words of it that are shown
    metadata = {} if large else dict(decoded_metadata(row["metadata"], serde))
    return CheckpointView.model_validate(
        {**row, "step": metadata.get("step"), "source": metadata.get("source")},
    )


def _event(row: Any) -> EventView:
    payload = ormsgpack.unpackb(row["payload"]) if row["payload"] else {}
    return EventView.model_validate({**row, "payload": payload})
