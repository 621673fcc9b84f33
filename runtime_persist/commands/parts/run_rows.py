"""Run, attempt and thread rows as cold commands change them: read under the lock, changed as values, saved by CAS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select, update

from runtime_persist.commands.parts import positions
from runtime_persist.dialects.sql import bind, constant, insert, now_us, number
from runtime_persist.model import budgets
from runtime_persist.model.states import (
    FINAL_RUN,
    AttemptCause,
    AttemptStatus,
    LeasePhase,
    RunStatus,
    TryStatus,
    check_attempt,
    check_run,
)
from runtime_persist.plan import Call, Plan, Query, Row, RowName, one_or_none
from runtime_persist.schema import attempts, operation_tries, runs, threads

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime_persist.commands.parts.spec import RunChange

_RUN_FIXED = {
    "space", "run_id", "graph", "thread_id", "thread_run_no", "idempotency_key", "request_fingerprint", "input",
    "start_checkpoint_id", "retry_of_run_id", "created_us", "graph_version", "retry_policy", "deadline_us", "scope",
    "traceparent",
}  # fmt: skip
_BY_EXPRESSION = {"event_position"}
_RUN_GIVEN = [column for column in runs.c if column.name not in _BY_EXPRESSION]
_RUN_MUTABLE = [column for column in _RUN_GIVEN if column.name not in _RUN_FIXED]
_ATTEMPT_FIXED = {"space", "attempt_id", "run_id", "attempt_no", "cause", "previous_attempt_id", "created_us"}
_ATTEMPT_MUTABLE = [column for column in attempts.c if column.name not in _ATTEMPT_FIXED]
_RUN, _ATTEMPT = RowName(runs.name, ("run_id",)), RowName(attempts.name, ("attempt_id",))

INSERT_RUN = Query(
    "insert_run",
    insert(runs).values(event_position=positions.new(), **{column.name: bind(column) for column in _RUN_GIVEN}),
    row=_RUN,
)
SAVE_RUN = Query(
    "save_run",
    update(runs)
    .values(event_position=positions.following(), **{column.name: bind(column) for column in _RUN_MUTABLE})
    .where(
        runs.c.space == bind(runs.c.space),
        runs.c.run_id == bind(runs.c.run_id),
        runs.c.version == number("expected_version"),
    )
    .returning(runs.c.run_id),
    row=_RUN,
)
INSERT_ATTEMPT = Query(
    "insert_attempt",
    insert(attempts).values(**{column.name: bind(column) for column in attempts.c}),
    row=_ATTEMPT,
)
SAVE_ATTEMPT = Query(
    "save_attempt",
    update(attempts)
    .values(**{column.name: bind(column) for column in _ATTEMPT_MUTABLE})
    .where(attempts.c.space == bind(attempts.c.space), attempts.c.attempt_id == bind(attempts.c.attempt_id)),
    row=_ATTEMPT,
)
READ_ATTEMPT = Query(
    "read_attempt",
    select(attempts).where(
        attempts.c.space == bind(attempts.c.space),
        attempts.c.attempt_id == bind(attempts.c.attempt_id),
    ),
)
SAVE_THREAD = Query(
    "save_thread",
    update(threads)
    .values(
        thread_id=bind(threads.c.thread_id),  # NULL before, when the thread was deleted
        owner_run_id=bind(threads.c.owner_run_id),
        run_no=bind(threads.c.run_no),
    )
    .where(threads.c.space == bind(threads.c.space), threads.c.thread_hash == bind(threads.c.thread_hash)),
    row=RowName(threads.name, ("thread_hash",)),
)
# A try that was started under an older epoch has no one left to finish it: that is all that can be proved.
MARK_TRIES_UNKNOWN = Query(
    "mark_tries_unknown",
    update(operation_tries)
    .values(status=constant(TryStatus.UNKNOWN.value), ended_us=now_us())
    .where(
        operation_tries.c.space == bind(operation_tries.c.space),
        operation_tries.c.run_id == bind(operation_tries.c.run_id),
        operation_tries.c.status == constant(TryStatus.STARTED.value),
        operation_tries.c.epoch < number("before_epoch"),
    ),
)


def new_run(fields: Mapping[str, Any], now: int) -> dict[str, Any]:
    """Return a run's row with defaults for what ``fields`` does not name."""
    empty: dict[str, Any] = dict.fromkeys(column.name for column in runs.c)
    return empty | {
        "status": RunStatus.CREATED.value,
        "version": 1,
        "event_seq": 0,
        "event_position": 0,
        "control": "open",
        "epoch": 0,
        "phase": LeasePhase.RELEASED.value,
        "expires_us": 0,
        "attempt_no": 0,
        "takeovers": 0,
        "failures": 0,
        "priority": 0,
        "rolls_back": 0,
        "domains_opened": 0,
        "domains_open": 0,
        **budgets.EMPTY,
        "created_us": now,
        "updated_us": now,
        **fields,
    }


def move_run(run: Row, status: RunStatus, now: int, **changes: Any) -> dict[str, Any]:
    """Return a run's row in another status.

    Raises:
        IllegalTransition: the transition table does not allow it.

    """
    check_run(run["status"], status)
    changed = dict(run) | changes | {"status": status.value, "updated_us": now}
    if status in FINAL_RUN:
        changed |= {"finished_us": now, "phase": LeasePhase.RELEASED.value, "expires_us": 0, "question": None}
        changed |= {"next_attempt_us": None}
    return changed


def move_attempt(attempt: Row, status: AttemptStatus, now: int, **changes: Any) -> dict[str, Any]:
    """Return an attempt's row in another status (raises IllegalTransition)."""
    check_attempt(attempt["status"], status)
    ended = (
        {} if status in {AttemptStatus.CLAIMED, AttemptStatus.STARTING, AttemptStatus.RUNNING} else {"ended_us": now}
    )
    if status is AttemptStatus.QUEUED:
        ended = {}
    return dict(attempt) | {"status": status.value} | ended | changes


def new_attempt(run: Row, attempt_id: str, cause: AttemptCause, now: int, **fields: Any) -> dict[str, Any]:
    """Return the row of a run's next attempt."""
    empty: dict[str, Any] = dict.fromkeys(column.name for column in attempts.c)
    return empty | {
        "space": run["space"],
        "attempt_id": attempt_id,
        "run_id": run["run_id"],
        "attempt_no": run["attempt_no"] + 1,
        "status": AttemptStatus.QUEUED.value,
        "cause": cause.value,
        "previous_attempt_id": run["attempt_id"],
        "observed_state": "unconfirmed",
        "sync_state": "pending",
        "last_event_seq": 0,
        "created_us": now,
        **fields,
    }


def save(change: RunChange) -> tuple[dict[str, Any], Call]:
    """Return a run's row with its counters moved on, and the insert or compare-and-set that saves it."""
    moved = dict(change.after)
    if change.before is None:
        moved["event_seq"] = len(change.events)
        return moved, Call(INSERT_RUN, {column.name: moved[column.name] for column in _RUN_GIVEN})
    moved["version"] = change.before["version"] + 1
    moved["event_seq"] = change.before["event_seq"] + len(change.events)
    values = {column.name: moved[column.name] for column in _RUN_MUTABLE}
    key = {"space": moved["space"], "run_id": moved["run_id"], "expected_version": change.before["version"]}
    return moved, Call(SAVE_RUN, values | key)


def insert_attempt(row: Mapping[str, Any]) -> Call:
    """Return the statement that inserts an attempt."""
    return Call(INSERT_ATTEMPT, dict(row))


def save_attempt(row: Mapping[str, Any]) -> Call:
    """Return the statement that saves an attempt."""
    values = {column.name: row[column.name] for column in _ATTEMPT_MUTABLE}
    return Call(SAVE_ATTEMPT, values | {"space": row["space"], "attempt_id": row["attempt_id"]})


def save_thread(thread: Row, *, owner_run_id: str | None, run_no: int | None = None) -> Call:
    """Return the statement that saves who owns a thread."""
    return Call(
        SAVE_THREAD,
        {
            "space": thread["space"],
            "thread_hash": thread["thread_hash"],
            "thread_id": thread["thread_id"],
            "owner_run_id": owner_run_id,
            "run_no": thread["run_no"] if run_no is None else run_no,
        },
    )


def mark_tries_unknown(run: Row, before_epoch: int) -> Call:
    """Return the statement that states which tries of older epochs nobody can prove any more."""
    return Call(
        MARK_TRIES_UNKNOWN,
        {"space": run["space"], "run_id": run["run_id"], "before_epoch": before_epoch},
    )


def current_attempt(run: Row) -> Plan[Row | None]:
    """Read the run's current attempt (it changes only under the run's lock)."""
    if run["attempt_id"] is None:
        return None
    return (yield from one_or_none(READ_ATTEMPT, space=run["space"], attempt_id=run["attempt_id"]))
