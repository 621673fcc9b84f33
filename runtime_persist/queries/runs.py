"""Runs with their attempts, events and operations, and what a worker may claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, bindparam, case, exists, func, literal_column, or_, select
from sqlalchemy.types import BigInteger

from runtime_persist.dialects.sql import among, bind, constant, now_us, words
from runtime_persist.model.states import FINAL_RUN, AttemptStatus, Control, LeasePhase, RunStatus
from runtime_persist.plan import Plan, Query, Row, many, one_or_none
from runtime_persist.schema import attempts, checkpoints, events, operation_tries, operations, runs, writes

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_R = runs.c
_OLDER = runs.alias("older")
_METADATA_BYTES_MAX = 65_536
ANY_VERSION = "*"
_PAGE = bindparam("page_rows", type_=BigInteger())

READ_RUN = Query(
    "read_run",
    select(runs, now_us().label("now_us")).where(_R.space == bind(_R.space), _R.run_id == bind(_R.run_id)),
)
LIST_RUNS = Query(
    "list_runs",
    select(runs, now_us().label("now_us"))
    .where(_R.space == bind(_R.space), or_(words("thread").is_(None), _R.thread_id == words("thread")))
    .order_by(_R.created_us.desc(), _R.run_id.desc())
    .limit(_PAGE),
)
READ_OPEN = Query(
    "read_open_runs",
    select(_R.run_id, _R.status, _R.phase, _R.expires_us, _R.thread_run_no, now_us().label("now_us"))
    .where(
        _R.space == bind(_R.space),
        _R.thread_id == bind(_R.thread_id),
        _R.status.not_in([constant(status.value) for status in sorted(FINAL_RUN)]),
    )
    .order_by(_R.thread_run_no),
)
_STOPPING = _R.control == constant(Control.STOPPING.value)
# What a worker may claim: queued, due again, lost, or left with a lease that ran out; only the oldest open run of its
# thread. A run that is to be stopped is anybody's: ending it needs no graph.
CLAIMABLE = Query(
    "read_claimable",
    select(_R.run_id, _R.thread_id, _R.graph)
    .where(
        _R.space == bind(_R.space),
        or_(
            _R.status == constant(RunStatus.QUEUED.value),
            and_(_R.status == constant(RunStatus.RETRY_WAIT.value), _R.next_attempt_us <= now_us()),
            and_(_R.status == constant(RunStatus.LOST.value), _R.phase == constant(LeasePhase.RELEASED.value)),
            and_(
                _R.status.in_(
                    [constant(s.value) for s in (RunStatus.DISPATCHING, RunStatus.RUNNING, RunStatus.LOST)],
                ),
                _R.phase != constant(LeasePhase.RELEASED.value),
                _R.expires_us <= now_us(),
            ),
        ),
        or_(
            _STOPPING,
            among(_R.graph.concat(constant(":")).concat(func.coalesce(_R.graph_version, constant(""))), "graphs"),
            among(_R.graph.concat(constant(f":{ANY_VERSION}")), "graphs"),
        ),
        ~exists().where(
            _OLDER.c.space == _R.space,
            _OLDER.c.thread_id == _R.thread_id,
            _OLDER.c.thread_run_no < _R.thread_run_no,
            _OLDER.c.status.not_in([constant(status.value) for status in sorted(FINAL_RUN)]),
        ),
    )
    .order_by(_R.queued_us, _R.run_id)
    .limit(_PAGE),
    each="graphs",
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
        _R.status.in_([constant(RunStatus.DISPATCHING.value), constant(RunStatus.RUNNING.value)]),
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
READ_EVENTS = Query(
    "read_events",
    select(events)
    .where(
        events.c.space == bind(events.c.space),
        events.c.run_id == bind(events.c.run_id),
        events.c.seq > bindparam("after_seq", type_=BigInteger()),
    )
    .order_by(events.c.seq)
    .limit(_PAGE),
)
_TOUCHED = select(operation_tries.c.operation_id).where(
    operation_tries.c.space == bind(_R.space),
    operation_tries.c.run_id == bind(_R.run_id),
)
READ_OPERATIONS = Query(
    "read_run_operations",
    select(operations)
    .where(operations.c.space == bind(operations.c.space), operations.c.operation_id.in_(_TOUCHED))
    .order_by(operations.c.created_us, operations.c.operation_id),
)
READ_TRIES = Query(
    "read_run_tries",
    select(operation_tries)
    .where(
        operation_tries.c.space == bind(operation_tries.c.space),
        operation_tries.c.run_id == bind(operation_tries.c.run_id),
    )
    .order_by(operation_tries.c.operation_id, operation_tries.c.try_no),
)
READ_RUN_CHECKPOINTS = Query(
    "read_run_checkpoints",
    select(
        checkpoints.c.checkpoint_ns,
        checkpoints.c.checkpoint_id,
        checkpoints.c.parent_id,
        checkpoints.c.epoch,
        checkpoints.c.created_us,
        # Large metadata is not read for a look at the run.
        case((func.length(checkpoints.c.metadata) <= constant(_METADATA_BYTES_MAX), checkpoints.c.metadata)).label(
            "metadata"
        ),
    )
    .where(
        checkpoints.c.space == bind(checkpoints.c.space),
        checkpoints.c.thread_id == bind(checkpoints.c.thread_id),
        checkpoints.c.run_id == bind(checkpoints.c.run_id),
    )
    .order_by(checkpoints.c.checkpoint_id),
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


def listing(space: str, thread_id: str | None, rows: int) -> Plan[list[Row]]:
    """Read the newest runs, of one thread or of all."""
    return list((yield from many(LIST_RUNS, space=space, thread=thread_id, page_rows=rows)))


def began(space: str, thread_id: str, run_id: str) -> Plan[bool]:
    """Read whether a run stored any checkpoint: its input is in the thread then."""
    return (yield from one_or_none(READ_BEGAN, space=space, thread_id=thread_id, run_id=run_id)) is not None


def resumes(space: str, thread_id: str, run_id: str, channel: str) -> Plan[list[Row]]:
    """Read which tasks took up answers in this run (``since``: since it last waited for a person)."""
    return list((yield from many(READ_RESUMES, space=space, thread_id=thread_id, run_id=run_id, channel=channel)))


def open_of_thread(space: str, thread_id: str) -> Plan[list[Row]]:
    """Read a thread's open runs, oldest first."""
    return list((yield from many(READ_OPEN, space=space, thread_id=thread_id)))


def claimable(space: str, graphs: Mapping[str, Collection[str]], rows: int) -> Plan[list[Row]]:
    """Read what may be claimed now, oldest first (a hint: the claim itself decides under its locks).

    ``graphs``: name -> versions that may be executed; a run without a version is anybody's who has its graph.
    """
    keys = [f"{graph}:{version}" for graph, versions in graphs.items() for version in ("", *versions)]
    return list((yield from many(CLAIMABLE, space=space, graphs=keys, page_rows=rows)))


def overdue(space: str, rows: int) -> Plan[list[str]]:
    """Read which open runs are past their deadline."""
    return [row["run_id"] for row in (yield from many(OVERDUE, space=space, page_rows=rows))]


def left(space: str, rows: int) -> Plan[list[str]]:
    """Read which started runs have a lease that ran out, and are not lost yet."""
    return [row["run_id"] for row in (yield from many(LEFT, space=space, page_rows=rows))]


def events_after(space: str, run_id: str, after_seq: int, rows: int) -> Plan[list[Row]]:
    """Read a run's events behind a sequence number."""
    return list(
        (yield from many(READ_EVENTS, space=space, run_id=run_id, after_seq=after_seq, page_rows=rows)),
    )


@dataclass(frozen=True, slots=True)
class RunRows:
    """Everything about one run, read in one snapshot."""

    run: Row
    attempts: list[Row]
    operations: list[Row]
    tries: list[Row]
    checkpoints: list[Row]
    events: list[Row]


def bundle(space: str, run_id: str, event_rows: int) -> Plan[RunRows | None]:
    """Read everything about one run."""
    found = yield from run(space, run_id)
    if found is None:
        return None
    key = {"space": space, "run_id": run_id}
    return RunRows(
        found,
        list((yield from many(READ_ATTEMPTS, **key))),
        list((yield from many(READ_OPERATIONS, **key))),
        list((yield from many(READ_TRIES, **key))),
        list((yield from many(READ_RUN_CHECKPOINTS, **key, thread_id=found["thread_id"]))),
        list((yield from events_after(space, run_id, 0, event_rows))),
    )
