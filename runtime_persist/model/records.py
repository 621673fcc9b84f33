"""What is handed out about a run: immutable, typed, JSON-able."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict

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
    retry_of_run_id: str | None
    idempotency_key: str | None
    error_code: str | None
    error_summary: str | None
    created_us: int
    finished_us: int | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Return the record of a run's row that was read with the database clock (``now_us``)."""
        return cls.model_validate({**row, "shown": shown_status(row, row["now_us"])})
