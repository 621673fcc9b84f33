"""How a run passes into new hands: the pieces that claim, owned start and owned continuation share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import literal_column, select, union_all

from runtime_persist.commands.parts import run_rows
from runtime_persist.commands.parts.guards import is_live
from runtime_persist.commands.parts.spec import Event
from runtime_persist.dialects.sql import bind, constant, number
from runtime_persist.model.evidence import IN_PROCESS, SyncState, agreement
from runtime_persist.model.states import (
    FINAL_RUN,
    AttemptCause,
    AttemptStatus,
    Control,
    LeasePhase,
    RunStatus,
)
from runtime_persist.plan import Call, Plan, Query, Row, many, one_or_none
from runtime_persist.recovery import runs as recovery
from runtime_persist.schema import checkpoints, operation_tries, runs

if TYPE_CHECKING:
    from collections.abc import Mapping

_FINAL = [status.value for status in sorted(FINAL_RUN)]
_IDLE = {RunStatus.CREATED, RunStatus.QUEUED, RunStatus.WAITING_APPROVAL, RunStatus.RETRY_WAIT}

OPEN_RUNS = Query(
    "lock_open_runs",
    select(runs)
    .where(
        runs.c.space == bind(runs.c.space),
        runs.c.thread_id == bind(runs.c.thread_id),
        runs.c.finished_us.is_(None),
        runs.c.status.not_in([constant(status) for status in _FINAL]),
    )
    .order_by(runs.c.run_id)
    .with_for_update(),
)
LAST_RUN = Query(
    "read_last_run",
    select(runs.c.run_id)
    .where(runs.c.space == bind(runs.c.space), runs.c.thread_id == bind(runs.c.thread_id))
    .order_by(runs.c.thread_run_no.desc())
    .limit(literal_column("1")),
)
READ_PROGRESS = Query(
    "read_progress",
    union_all(
        select(constant(1).label("one")).where(
            checkpoints.c.space == bind(checkpoints.c.space),
            checkpoints.c.thread_id == bind(checkpoints.c.thread_id),
            checkpoints.c.run_id == bind(checkpoints.c.run_id),
            checkpoints.c.epoch == number("of_epoch"),
        ),
        select(constant(1).label("one")).where(
            operation_tries.c.space == bind(operation_tries.c.space),
            operation_tries.c.run_id == bind(operation_tries.c.run_id),
            operation_tries.c.epoch == number("of_epoch"),
            operation_tries.c.status == constant("succeeded"),
        ),
    ).limit(literal_column("1")),
)


def open_runs(space: str, thread_id: str) -> Plan[list[Row]]:
    """Lock a thread's open runs (its row is locked, so no other can appear); oldest first."""
    rows = yield from many(OPEN_RUNS, space=space, thread_id=thread_id)
    return sorted(rows, key=lambda row: row["thread_run_no"])


def progressed(run: Row) -> Plan[bool]:
    """Return whether the run's last epoch committed a checkpoint or an operation."""
    row = yield from one_or_none(
        READ_PROGRESS,
        space=run["space"],
        thread_id=run["thread_id"],
        run_id=run["run_id"],
        of_epoch=run["epoch"],
    )
    return row is not None


@dataclass(slots=True)
class Taken:
    """A run on its way into new hands: its row, its attempt, and what has to be written and told."""

    run: dict[str, Any]
    attempt: dict[str, Any] | None
    now: int
    events: list[Event] = field(default_factory=list)
    effects: list[Call] = field(default_factory=list)

    def tell(self, kind: str, **payload: Any) -> None:
        """Append a fact about the run's current attempt."""
        self.events.append(Event(kind, payload, self.run["attempt_id"]))

    def move(self, status: RunStatus, **changes: Any) -> None:
        """Move the run to another status, with its event."""
        self.run = run_rows.move_run(self.run, status, self.now, **changes)
        self.tell(f"run.{status.value}")

    def lease(self, worker_id: str, ttl_us: int, instance_id: str | None = None) -> None:
        """Give the lease to ``worker_id`` under the next epoch: every older epoch is refused from here on.

        ``instance_id``: whose slot the run holds while it is active (None: nobody's, its caller executes it).
        """
        is_first = self.run["epoch"] == 0
        self.run |= {
            "epoch": self.run["epoch"] + 1,
            "phase": LeasePhase.RECOVERING.value,
            "worker_id": worker_id,
            "expires_us": self.now + ttl_us,
            "revocation": None,
            "instance_id": instance_id,
        }
        self.tell("lease.claimed", epoch=self.run["epoch"], worker_id=worker_id)
        if not is_first:  # else there are no tries that could be unknown
            self.effects.append(run_rows.mark_tries_unknown(self.run, self.run["epoch"]))

    def lose(self) -> None:
        """State that the attempt may have run and that nothing proves what became of it; the run is lost with it.

        An attempt before its start fence did not run: it is not lost, whoever takes the run decides about it.
        """
        if self.attempt is not None and past_start_fence(self.attempt):
            self.attempt = run_rows.move_attempt(
                self.attempt,
                AttemptStatus.LOST,
                self.now,
                termination_reason="lease_expired",
                sync_state=SyncState.STALE.value,
            )
            self.effects.append(run_rows.save_attempt(self.attempt))
            self.tell("attempt.lost")
        if self.run["status"] != RunStatus.LOST:
            self.move(RunStatus.LOST)

    def activate(self, revocation: str) -> None:
        """Make the lease active: the older epochs' domains are proved unable to write."""
        self.run |= {"phase": LeasePhase.ACTIVE.value, "revocation": revocation}
        self.tell("lease.activated", epoch=self.run["epoch"], revocation=revocation)

    def add_attempt(self, attempt_id: str, cause: AttemptCause) -> None:
        """Make the run's next attempt, claimed under the current epoch."""
        row = run_rows.new_attempt(self.run, attempt_id, cause, self.now)
        self.attempt = run_rows.move_attempt(
            row,
            AttemptStatus.CLAIMED,
            self.now,
            epoch=self.run["epoch"],
            worker_id=self.run["worker_id"],
            instance_id=self.run["instance_id"],
            claimed_us=self.now,
        )
        self.run |= {"attempt_id": attempt_id, "attempt_no": row["attempt_no"], "observed_state": None}
        self.effects.append(run_rows.insert_attempt(self.attempt))
        self.tell("attempt.claimed", cause=cause.value, epoch=self.run["epoch"])

    def start(self) -> None:
        """Write the start fence and the proof that it runs, for an attempt whose caller runs it right away.

        Whatever claimed the attempt has saved it as its last effect.
        """
        if self.attempt is None:
            return
        attempt = run_rows.move_attempt(
            self.attempt,
            AttemptStatus.STARTING,
            self.now,
            start_requested_us=self.now,
            runtime=IN_PROCESS,
        )
        self.tell("attempt.start_requested")
        self.attempt = run_rows.move_attempt(
            attempt,
            AttemptStatus.RUNNING,
            self.now,
            observed_state="running",
            observed_us=self.now,
            heartbeat_us=self.now,
            sync_state=SyncState.IN_SYNC.value,
            last_event_seq=1,
        )
        self.tell("attempt.running")
        is_new = self.effects[-1].query is run_rows.INSERT_ATTEMPT
        self.effects[-1] = (run_rows.insert_attempt if is_new else run_rows.save_attempt)(self.attempt)
        self.move(RunStatus.RUNNING)

    def end(self, status: RunStatus, attempt_status: AttemptStatus, reason: str, **changes: Any) -> None:
        """End the run and, unless it has ended before, its attempt."""
        self.end_attempt(attempt_status, reason, changes)
        self.move(status, **changes)

    def end_attempt(self, status: AttemptStatus, reason: str, said: Mapping[str, Any]) -> None:
        """End the attempt, unless it has ended before."""
        if self.attempt is None or self.attempt["ended_us"] is not None:
            return
        self.attempt = run_rows.move_attempt(
            self.attempt,
            status,
            self.now,
            termination_reason=reason,
            error_code=said.get("error_code"),
            error_summary=said.get("error_summary"),
            **self._seen_ending(status, said.get("observed_state")),
        )
        self.effects.append(run_rows.save_attempt(self.attempt))
        self.tell(f"attempt.{status.value}", reason=reason)

    def _seen_ending(self, status: AttemptStatus, observed: str | None) -> dict[str, Any]:
        """Return what was seen of a started attempt at its end (None: nothing proves how it ended)."""
        if observed is None or self.attempt is None or self.attempt["start_requested_us"] is None:
            return {}
        sync = agreement(status.value, observed)
        return {"observed_state": observed, "observed_us": self.now, "sync_state": sync.value}

    def ask_to_stop(self, reason: str) -> None:
        """Stop the run (the first reason counts): it ends at once when nothing of it runs.

        Else its end waits for proof: of its holder, of who takes it over, or that its execution domains are revoked.
        """
        if self.run["control"] == Control.OPEN:
            self.stop(reason)
        status = RunStatus(self.run["status"])
        # A claim is no start: its worker finds the lease released.
        idle = status in _IDLE or (status is RunStatus.DISPATCHING and not past_start_fence(self.attempt))
        if idle and not self.run["domains_open"]:
            self.stop_unstarted()

    def stop_unstarted(self) -> None:
        """End a stopping run of which nothing runs; the reason it is stopped for says how."""
        reason = self.run["stop_reason"] or "stop"
        late = reason == "deadline" and self.run["status"] != RunStatus.CREATED  # created: never asked to run
        self.end(RunStatus.TIMED_OUT if late else RunStatus.CANCELLED, AttemptStatus.CANCELLED, reason)

    def stop_if_overdue(self) -> None:
        """Stop the run if its deadline has passed by the database's clock, and nothing stopped it before."""
        overdue = self.run["deadline_us"] is not None and self.run["deadline_us"] <= self.now
        if overdue and self.run["control"] == Control.OPEN:
            self.stop("deadline")

    def stop(self, reason: str) -> None:
        """Close the run for new work."""
        self.run |= {"control": Control.STOPPING.value, "stop_reason": reason}
        self.tell("run.stop_requested", reason=reason)

    def conclude(self, thread: Row, wanted: RunStatus, reason: str, **changes: Any) -> None:
        """End the run as wanted, unless a stop reason or the deadline came first, and free its thread."""
        self.stop_if_overdue()
        status = wanted
        if self.run["control"] == Control.STOPPING:
            status = RunStatus.TIMED_OUT if self.run["stop_reason"] == "deadline" else RunStatus.CANCELLED
        never_started = self.attempt is not None and self.attempt["status"] in {
            AttemptStatus.CLAIMED,
            AttemptStatus.QUEUED,
        }
        attempt_status = AttemptStatus.CANCELLED if never_started else AttemptStatus(status.value)
        self.end(status, attempt_status, reason, observed_state=wanted.value, **changes)
        owner = None if thread["owner_run_id"] == self.run["run_id"] else thread["owner_run_id"]
        self.effects.append(run_rows.save_thread(thread, owner_run_id=owner))

    def count_takeover(self, *, progress: bool) -> bool:
        """Count a takeover; return whether the run crashed too often in a row without progress."""
        self.run["takeovers"] = recovery.counted(self.run["takeovers"], progressed=progress)
        return recovery.is_crash_loop(self.run["takeovers"], self.run["retry_policy"])


def past_start_fence(attempt: Row | None) -> bool:
    """Return whether an attempt may have been sent to a runtime: then time alone never re-queues it."""
    return attempt is not None and attempt["start_requested_us"] is not None and attempt["ended_us"] is None


def taken(run: Row, attempt: Row | None, now: int) -> Taken:
    """Return a run's rows ready to be changed."""
    return Taken(dict(run), None if attempt is None else dict(attempt), now)


__all__ = [
    "LAST_RUN",
    "OPEN_RUNS",
    "READ_PROGRESS",
    "Taken",
    "is_live",
    "open_runs",
    "past_start_fence",
    "progressed",
    "taken",
]
