"""delete_thread: all rows of a thread go, runs and journal included; its hash and generation stay as a mark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Table, delete, func, literal_column, null, select, update

from runtime_persist.commands.parts import domain_rows, positions
from runtime_persist.commands.parts.spec import ColdCommand, Decision, Locked, ThreadCommand
from runtime_persist.dialects.sql import bind, constant, excluded, insert, now_us
from runtime_persist.dialects.transactions import counts_rows
from runtime_persist.errors import InvariantBroken
from runtime_persist.model.guards import THREAD
from runtime_persist.plan import Call, Plan, Query, one_or_none
from runtime_persist.schema import (
    attempts,
    checkpoints,
    cursors,
    domains,
    events,
    heads,
    operation_tries,
    operations,
    receipts,
    runs,
    threads,
    tickets,
    writes,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteThread(ThreadCommand):
    """Delete a thread. An unknown thread is no error.

    Refused: a live run owns it (ThreadOwned); an execution domain of one of its runs is not revoked (DomainsOpen): how
    to find it would be forgotten.
    """


def _of_thread(table: Table) -> Query:
    return Query(
        f"delete_{table.name.removeprefix('rp_')}",
        delete(table).where(
            table.c.space == bind(table.c.space),
            table.c.thread_id == bind(table.c.thread_id),
        ),
    )


def _of_runs(table: Table) -> Query:
    own = select(runs.c.run_id).where(
        runs.c.space == bind(runs.c.space),
        runs.c.thread_id == bind(runs.c.thread_id),
    )
    return Query(
        f"delete_{table.name.removeprefix('rp_')}",
        delete(table).where(table.c.space == bind(table.c.space), table.c.run_id.in_(own)),
    )


GREATEST = Query(
    "read_greatest_checkpoint",
    select(func.max(checkpoints.c.checkpoint_id).label("checkpoint_id")).where(
        checkpoints.c.space == bind(checkpoints.c.space),
        checkpoints.c.thread_id == bind(checkpoints.c.thread_id),
    ),
)
OPEN = Query(
    "read_open_domains",
    select(runs.c.run_id, runs.c.domains_open)
    .where(
        runs.c.space == bind(runs.c.space),
        runs.c.thread_id == bind(runs.c.thread_id),
        runs.c.domains_open > constant(0),
    )
    .limit(literal_column("1")),
)
# Where positions are counted from rows, the rows that go leave the greatest one behind: none is given a second time.
KEEP_POSITION = Query(
    "keep_position",
    insert(cursors)
    .from_select(
        ["space", "consumer", "position", "run_id", "seq", "acked_us", "command_id"],
        select(
            bind(cursors.c.space),
            constant(positions.NO_CONSUMER),
            func.max(events.c.position),
            constant(""),
            constant(0),
            now_us(),
            constant(""),
        )
        .where(events.c.space == bind(events.c.space), counts_rows())
        .having(func.max(events.c.position).is_not(None)),
    )
    .on_conflict_do_update(
        index_elements=[cursors.c.space, cursors.c.consumer],
        set_={"position": excluded("position"), "acked_us": excluded("acked_us")},
        where=cursors.c.position < excluded("position"),
    ),
)
_BY_THREAD: tuple[Table, ...] = (checkpoints, writes, heads, operations)
_BY_RUN: tuple[Table, ...] = (attempts, domains, events, operation_tries, receipts, tickets)
DELETES = (
    *(_of_runs(table) for table in _BY_RUN),
    *(_of_thread(table) for table in _BY_THREAD),
    _of_thread(runs),
)
MARK = Query(
    "mark_thread_deleted",
    update(threads)
    .values(
        thread_id=null(),
        owner_run_id=null(),
        generation=threads.c.generation + constant(1),
        deleted_us=bind(threads.c.deleted_us),
        deleted_checkpoint_id=bind(threads.c.deleted_checkpoint_id),
    )
    .where(threads.c.space == bind(threads.c.space), threads.c.thread_hash == bind(threads.c.thread_hash)),
)


def decide(command: DeleteThread, locked: Locked) -> Plan[Decision]:
    """Return the deletes and the mark."""
    if locked.thread is None:
        raise InvariantBroken
    held = yield from one_or_none(OPEN, space=command.space, thread_id=command.thread_id)
    if held is not None:
        domain_rows.check_revoked(held, "be deleted with its thread")
    greatest = yield from one_or_none(GREATEST, space=command.space, thread_id=command.thread_id)
    thread: dict[str, Any] = {"space": command.space, "thread_id": command.thread_id}
    mark = {
        "space": command.space,
        "thread_hash": command.thread_hash,
        "deleted_us": locked.now_us,
        "deleted_checkpoint_id": (greatest or {}).get("checkpoint_id") or locked.thread["deleted_checkpoint_id"],
    }
    return Decision({}, effects=[*(Call(query, thread) for query in (KEEP_POSITION, *DELETES)), Call(MARK, mark)])


SPEC = ColdCommand(
    name="delete_thread",
    dto=DeleteThread,
    guard=THREAD,
    decide=decide,
    statements=(OPEN, GREATEST, KEEP_POSITION, *DELETES, MARK),
    locks_thread=True,
    locks_run=False,
)
