"""Runs with their attempts, events and operations."""

from __future__ import annotations

from sqlalchemy import bindparam, case, exists, func, literal_column, select
from sqlalchemy.types import BigInteger

from runtime_persist.dialects.sql import bind, constant, now_us, words
from runtime_persist.model.states import FINAL_RUN, AttemptStatus, Control, LeasePhase, RunStatus
from runtime_persist.plan import Plan, Query, Row, many, one_or_none
from runtime_persist.queries.checkpoints import LAST
from runtime_persist.schema import attempts, checkpoints, runs, writes
from runtime_persist.schema.runs import is_active

_R = runs.c
_PAGE = bindparam("page_rows", type_=BigInteger())

READ_RUN = Query(
    "read_run",
    select(runs, now_us().label("now_us")).where(_R.space == bind(_R.space), _R.run_id == bind(_R.run_id)),
)
# Ids are in the order in which they were given, so a page begins behind an id, and costs the same wherever that is.
LIST_RUNS = Query(
    "list_runs",
    select(runs, now_us().label("now_us"))
    .where(_R.space == bind(_R.space), _R.run_id < words("before"))
    .order_by(_R.run_id.desc())
    .limit(_PAGE),
)
LIST_THREAD_RUNS = Query(
    "list_thread_runs",
    select(runs, now_us().label("now_us"))
    .where(_R.space == bind(_R.space), _R.thread_id == bind(_R.thread_id), _R.run_id < words("before"))
    .order_by(_R.run_id.desc())
    .limit(_PAGE),
)
READ_OPEN = Query(
    "read_open_runs",
    select(_R.run_id, _R.status, _R.phase, _R.expires_us, _R.thread_run_no, now_us().label("now_us"))
    .where(
        _R.space == bind(_R.space),
        _R.thread_id == bind(_R.thread_id),
        _R.finished_us.is_(None),
        _R.status.not_in([constant(status.value) for status in sorted(FINAL_RUN)]),
    )
    .order_by(_R.thread_run_no),
)
# Past its deadline, and nobody has stopped it.
OVERDUE = Query(
    "read_overdue",
    select(_R.run_id)
    .where(
        _R.space == bind(_R.space),
        _R.deadline_us.is_not(None),
        _R.finished_us.is_(None),
        _R.deadline_us <= now_us(),
        _R.control == constant(Control.OPEN.value),
    )
    .order_by(_R.deadline_us)
    .limit(_PAGE),
)
# Started, and its lease ran out: nobody proves any more what becomes of it.
LEFT = Query(
    "read_left",
    select(_R.run_id)
    .where(
        _R.space == bind(_R.space),
        is_active(runs),
        _R.status != constant(RunStatus.LOST.value),
        _R.phase != constant(LeasePhase.RELEASED.value),
        _R.expires_us <= now_us(),
        exists().where(
            attempts.c.space == _R.space,
            attempts.c.attempt_id == _R.attempt_id,
            attempts.c.start_requested_us.is_not(None),
            attempts.c.ended_us.is_(None),
        ),
    )
    .order_by(_R.expires_us)
    .limit(_PAGE),
)
READ_ATTEMPTS = Query(
    "read_attempts",
    select(attempts)
    .where(attempts.c.space == bind(attempts.c.space), attempts.c.run_id == bind(attempts.c.run_id))
    .order_by(attempts.c.attempt_no),
)

# Answers that tasks of the run took up, in whatever namespace, and whether since it last waited for a person.
_WAITED = (
    select(func.coalesce(func.max(attempts.c.epoch), constant(0)))
    .where(
        attempts.c.space == bind(_R.space),
        attempts.c.run_id == bind(_R.run_id),
        attempts.c.status == constant(AttemptStatus.YIELDED.value),
        attempts.c.termination_reason != constant("drain"),
    )
    .scalar_subquery()
)
READ_RESUMES = Query(
    "read_resumes",
    select(writes.c.task_id, case((writes.c.epoch > _WAITED, constant(1)), else_=constant(0)).label("since")).where(
        writes.c.space == bind(_R.space),
        writes.c.thread_id == bind(_R.thread_id),
        writes.c.run_id == bind(_R.run_id),
        writes.c.channel == words("channel"),
    ),
)

READ_BEGAN = Query(
    "read_began",
    select(constant(1).label("one"))
    .where(
        checkpoints.c.space == bind(_R.space),
        checkpoints.c.thread_id == bind(_R.thread_id),
        checkpoints.c.run_id == bind(_R.run_id),
    )
    .limit(literal_column("1")),
)


def run(space: str, run_id: str) -> Plan[Row | None]:
    """Read a run with the database clock (``now_us``)."""
    return (yield from one_or_none(READ_RUN, space=space, run_id=run_id))


def listing(space: str, thread_id: str | None, rows: int, before: str | None = None) -> Plan[list[Row]]:
    """Read the newest runs, of one thread or of all; ``before``: only those with a smaller id."""
    page = {"space": space, "page_rows": rows, "before": before or LAST}
    if thread_id is None:
        return list((yield from many(LIST_RUNS, **page)))
    return list((yield from many(LIST_THREAD_RUNS, **page, thread_id=thread_id)))


def began(space: str, thread_id: str, run_id: str) -> Plan[bool]:
    """Read whether a run stored any checkpoint: its input is in the thread then."""
    return (yield from one_or_none(READ_BEGAN, space=space, thread_id=thread_id, run_id=run_id)) is not None


def resumes(space: str, thread_id: str, run_id: str, channel: str) -> Plan[list[Row]]:
    """Read which tasks took up answers in this run (``since``: since it last waited for a person)."""
    return list((yield from many(READ_RESUMES, space=space, thread_id=thread_id, run_id=run_id, channel=channel)))


def open_of_thread(space: str, thread_id: str) -> Plan[list[Row]]:
    """Read a thread's open runs, oldest first."""
    return list((yield from many(READ_OPEN, space=space, thread_id=thread_id)))


def overdue(space: str, rows: int) -> Plan[list[str]]:
    """Read which open runs are past their deadline."""
    return [row["run_id"] for row in (yield from many(OVERDUE, space=space, page_rows=rows))]


def left(space: str, rows: int) -> Plan[list[str]]:
    """Read which started runs have a lease that ran out, and are not lost yet."""
    return [row["run_id"] for row in (yield from many(LEFT, space=space, page_rows=rows))]


def attempts_of(space: str, run_id: str) -> Plan[list[Row]]:
    """Read the attempts of a run, oldest first."""
    return list((yield from many(READ_ATTEMPTS, space=space, run_id=run_id)))
