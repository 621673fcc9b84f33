"""What is handed out about a run: immutable, typed, JSON-able."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import ormsgpack
from pydantic import BaseModel, ConfigDict

from runtime_persist.model import budgets
from runtime_persist.model.budgets import Spent
from runtime_persist.model.shown import shown_status

if TYPE_CHECKING:
    from collections.abc import Mapping


class RunRecord(BaseModel):
    """A run as it was read. Times are microseconds since 1970 by the database clock.

    Attributes:
        status: stored status.
        shown: status for people: ``unknown`` when nothing proves what became of it.
        control: ``open`` or ``stopping``.
        epoch: fencing token of the current or last lease.
        attempt_no: attempts made so far.
        failures: attempts that failed, as the retry policy counts them.
        next_attempt_us: when a run that waits for a retry is due.
        deadline_us: when it is stopped, whatever it does.
        graph_version: version of the graph's definition that it belongs to.
        priority: the higher goes first.
        scope: of which at most one run is active at a time (None: its thread).
        retry_of_run_id: the run that a person retries with this one.
        budget: what its calls may take, by kind: limit, reserved and consumed (empty: it has no budget).

    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    run_id: str
    graph: str
    thread_id: str
    status: str
    shown: str
    control: str
    stop_reason: str | None
    epoch: int
    phase: str
    worker_id: str | None
    expires_us: int
    attempt_no: int
    takeovers: int
    failures: int
    next_attempt_us: int | None
    deadline_us: int | None
    graph_version: str | None
    priority: int
    scope: str | None
    retry_of_run_id: str | None
    idempotency_key: str | None
    error_code: str | None
    error_summary: str | None
    created_us: int
    finished_us: int | None
    budget: dict[str, Spent] = {}

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Return the record of a run's row that was read with the database clock (``now_us``)."""
        budget = budgets.spent(row)
        return cls.model_validate({**row, "shown": shown_status(row, row["now_us"]), "budget": budget})


class EventRecord(BaseModel):
    """A committed fact of a run.

    Attributes:
        run_id: of which run.
        seq: its number in the run: 1, 2, 3 … without gaps.
        type: ``aggregate.past_tense``, see docs/events.md.
        actor_type: who did it: ``runtime``, ``worker``, ``user`` …
        actor_id: which one (None: its kind says enough).
        attempt_id: the attempt it is about.
        epoch: fencing token of the run at that moment.
        payload: a few fields that its type allows.
        created_us: microseconds since 1970 by the database clock.
        position: of the transaction that wrote it, in the order of the space's outbox.

    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    run_id: str
    seq: int
    type: str
    actor_type: str
    actor_id: str | None
    attempt_id: str | None
    epoch: int | None
    payload: dict[str, Any]
    created_us: int
    position: int

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Return the record of an event's row."""
        kind, found, actor = row["actor"].partition(":")
        payload = ormsgpack.unpackb(row["payload"]) if row["payload"] else {}
        said = {"actor_type": kind, "actor_id": actor if found else None, "payload": payload}
        return cls.model_validate({**row, **said})
