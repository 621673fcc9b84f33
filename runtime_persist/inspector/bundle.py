"""A run as people look at it: of a database, in one consistent read, or of a bundle's file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ormsgpack
from pydantic import BaseModel, ConfigDict, Field

from runtime_persist.adapters.workflow import RawSerializer
from runtime_persist.adapters.workflow.encoding import decoded_metadata
from runtime_persist.engine import Engine, Flow, payloads
from runtime_persist.errors import RunNotFound, RuntimePersistError
from runtime_persist.inspector.database import DatabaseView, load_database
from runtime_persist.inspector.plain import plain
from runtime_persist.inspector.recovery import plan_of_bundle
from runtime_persist.model.domains import Domain
from runtime_persist.model.payload import PayloadRef
from runtime_persist.model.records import RunRecord
from runtime_persist.queries import run_pages
from runtime_persist.recovery import PlanItem, RecoveryPlan, plan_of
from runtime_persist.runtime.recovering import found_of

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.inspector.bundles import RecoveryBundle
    from runtime_persist.plan import Plan

PAGE_ROWS = 1_000
"""Operations, checkpoints and events that are looked at, the newest, unless asked otherwise."""
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
    """One physical try of an operation. ``shown`` is ``unknown`` also while nobody has stated it yet.

    ``provider_request_id``: what the outside called the request. ``first_output_us``: when its first output came.
    """

    try_no: int
    status: str
    shown: str
    epoch: int
    run_id: str
    error_type: str | None
    error_code: str | None = None
    provider_request_id: str | None = None
    first_output_us: int | None = None
    first_output_kind: str | None = None
    started_us: int
    ended_us: int | None


class OperationView(_Frozen):
    """One call of the outside world.

    ``phase``: how far a pending one is. ``next_attempt_us``: when the try behind a failed one is due.
    """

    operation_id: str
    name: str
    ordinal: str
    checkpoint_ns: str
    status: str
    phase: str
    on_unknown: str
    request: str
    idempotency_key: str
    next_attempt_us: int | None = None
    error_type: str | None
    error_code: str | None = None
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


class BundleView(_Frozen):
    """What is needed to explain a run, read in one snapshot.

    Attributes:
        run: the run.
        database: where it was read.
        question: why it waits for a person, if it does.
        attempts: its dispatches.
        checkpoints: what it stored.
        operations: its journal.
        domains: what its attempts could write to besides, and the proofs that they no longer do.
        events: its facts, in order.
        recovery: what recovery would do now.
        more: how many older operations, checkpoints and events there are besides (None: some; they are not counted).

    """

    run: RunRecord
    database: DatabaseView
    question: Any
    attempts: list[AttemptView]
    checkpoints: list[CheckpointView]
    operations: list[OperationView]
    domains: list[Domain]
    events: list[EventView]
    recovery: list[PlanItem]
    more: dict[str, int | None] = Field(default_factory=dict)


def load_bundle(
    engine: Engine, serde: SerializerProtocol, run_id: str, *, rows_max: int = PAGE_ROWS
) -> Flow[BundleView]:
    """Read a run with the newest of what it did, ``rows_max`` of each kind (raises RunNotFound)."""
    read: tuple[run_pages.RunRows, RecoveryPlan] | None = yield engine.coordinator.read(
        "read_bundle",
        lambda: _page(engine.space, run_id, rows_max),
        snapshot=True,
    )
    if read is None:
        msg = f"there is no run {run_id!r} in space {engine.space!r}"
        raise RunNotFound(msg, run_id=run_id)
    rows, plan = read
    database = yield from load_database(engine)
    question = yield from _question(engine, serde, rows.run["question"], run_id)
    return _view(rows, plan, database, question, serde)


def _page(space: str, run_id: str, rows_max: int) -> Plan[tuple[run_pages.RunRows, RecoveryPlan] | None]:
    rows = yield from run_pages.page(space, run_id, rows_max)
    found = yield from found_of(space, run_id)
    return None if rows is None or found is None else (rows, plan_of(found))


def view_of(bundle: RecoveryBundle) -> BundleView:
    """Return the view of a bundle that came out of a file; no class of the application is needed."""
    serde, rows, source = RawSerializer(), bundle.rows, bundle.manifest.source
    question = question_of(bundle)
    found = run_pages.RunRows(
        bundle.run,
        list(rows["attempts"]),
        sorted(rows["operations"], key=lambda row: row["operation_id"]),
        sorted(rows["operation_tries"], key=lambda row: (row["operation_id"], row["try_no"])),
        [row for row in rows["checkpoints"] if row["run_id"] == bundle.manifest.run_id],
        sorted(rows["domains"], key=lambda row: (row["opened_us"], row["domain_id"])),
        list(rows["events"]),
    )
    found.attempts.sort(key=lambda row: row["attempt_no"])
    database = DatabaseView(dialect=source.dialect, version=source.version, url="a bundle", warning=source.warning)
    return _view(found, plan_of_bundle(bundle), database, question, serde)


def question_of(bundle: RecoveryBundle) -> Any:
    """Return what a person is asked, loaded without any class of the application; if it cannot be, why; or None."""
    data = bundle.run["question"]
    if data is None:
        return None
    ref = PayloadRef.decoded(data)
    if ref.size > _QUESTION_BYTES_MAX:
        return f"({ref.size:,} bytes, not loaded)"
    try:
        return plain(bundle.value(RawSerializer(), ref, "the question"))
    except RuntimePersistError as error:
        return f"({error.message})"


def _view(
    rows: run_pages.RunRows, plan: RecoveryPlan, database: DatabaseView, question: Any, serde: SerializerProtocol
) -> BundleView:
    run = RunRecord.of(rows.run)
    live = run.shown in {"running", "starting", "cancelling"}
    tries: dict[str, list[Any]] = {}
    for tried in rows.tries:
        tries.setdefault(tried["operation_id"], []).append(tried)
    operations = [_operation(row, tries.get(row["operation_id"], []), rows.run, live=live) for row in rows.operations]
    return BundleView(
        run=run,
        database=database,
        question=question,
        attempts=[AttemptView.model_validate(dict(row)) for row in rows.attempts],
        checkpoints=[_checkpoint(row, serde) for row in rows.checkpoints],
        operations=operations,
        domains=[Domain.of(row) for row in rows.domains],
        events=[_event(row) for row in rows.events],
        recovery=plan.items,
        more={name: count for name, count in rows.more.items() if count != 0},
    )


def _question(engine: Engine, serde: SerializerProtocol, data: bytes | None, run_id: str) -> Flow[Any]:
    """Load what a person is asked; of a large question only the size is told."""
    if data is None:
        return None
    size = PayloadRef.decoded(data).size
    if size > _QUESTION_BYTES_MAX:
        return f"({size:,} bytes, not loaded; runtime.runs.question gives it)"
    return (yield from payloads.decode(engine, serde, data, f"the question of run {run_id}"))


def _operation(row: Any, tries: list[Any], run: Any, *, live: bool) -> OperationView:
    views = []
    for tried in tries:
        ours = live and (tried["run_id"], tried["epoch"]) == (run["run_id"], run["epoch"])
        shown = "unknown" if tried["status"] == "started" and not ours else tried["status"]
        views.append(TryView.model_validate({**tried, "shown": shown}))
    return OperationView.model_validate({**row, "tries": views})


def _checkpoint(row: Any, serde: SerializerProtocol) -> CheckpointView:
    large = row["metadata"] is None  # too large to be read for the two words of it that are shown
    metadata = {} if large else _metadata(row["metadata"], serde)
    return CheckpointView.model_validate(
        {**row, "step": metadata.get("step"), "source": metadata.get("source")},
    )


def _metadata(data: bytes, serde: SerializerProtocol) -> dict[str, Any]:
    try:
        return dict(decoded_metadata(data, serde))
    except RuntimePersistError:
        if isinstance(serde, RawSerializer):  # encrypted: a file is looked at without the key
            return {}
        raise


def _event(row: Any) -> EventView:
    payload = ormsgpack.unpackb(row["payload"]) if row["payload"] else {}
    return EventView.model_validate({**row, "payload": payload})
