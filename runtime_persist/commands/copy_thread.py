"""copy_thread: a thread's checkpoints, writes and journal under another id; content is shared, not copied.

An effect of the source never fires again in the copy: completed operations come along with their results, open and
unknown ones are ``unknown`` there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Table, and_, case, func, null, select

from runtime_persist.commands.parts import guards
from runtime_persist.commands.parts.spec import ColdCommand, Decision, Locked, ThreadCommand
from runtime_persist.dialects.sql import bind, constant, insert, words
from runtime_persist.errors import InvalidInput
from runtime_persist.model.guards import THREAD
from runtime_persist.model.states import TryStatus
from runtime_persist.plan import Call, Plan, Query, one_or_none
from runtime_persist.schema import checkpoints, heads, operation_tries, operations, writes

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyThread(ThreadCommand):
    """Copy ``source_id`` to this (empty) thread, at a checkpoint boundary of the source.

    Refused: a live run owns the target (ThreadOwned); the target is not empty (InvalidInput).
    """

    source_id: str
    source_hash: bytes


def _copied(table: Table, **changed: ColumnElement[Any]) -> Query:
    """Return the statement that copies a table's rows of the source thread."""
    values: Mapping[str, ColumnElement[Any]] = {"thread_id": bind(table.c.thread_id)} | changed
    columns = [values.get(column.name, column) for column in table.c]
    source = select(*columns).where(table.c.space == bind(table.c.space), table.c.thread_id == words("source_id"))
    return Query(f"copy_{table.name.removeprefix('rp_')}", insert(table).from_select(list(table.c), source))


_O, _T = operations.c, operation_tries.c
_NEW_ID = _O.operation_id + constant("@") + bind(_O.thread_id)
COPY_HEADS = _copied(heads)
# The run that wrote a row belongs to the source; the copy has no runs.
COPY_CHECKPOINTS = _copied(checkpoints, run_id=null(), epoch=null())
COPY_WRITES = _copied(writes, run_id=null(), epoch=null())
COPY_OPERATIONS = _copied(operations, operation_id=_NEW_ID, copied_from=_O.operation_id)
COPY_TRIES = Query(
    "copy_operation_tries",
    insert(operation_tries).from_select(
        list(operation_tries.c),
        select(
            *(
                {
                    "operation_id": _NEW_ID,
                    "status": case(
                        (_T.status == constant(TryStatus.STARTED.value), constant(TryStatus.UNKNOWN.value)),
                        else_=_T.status,
                    ),
                    "ended_us": case((_T.ended_us.is_(None), _T.started_us), else_=_T.ended_us),
                }.get(column.name, column)
                for column in _T
            )
        )
        .select_from(operations)
        .join(operation_tries, and_(_T.space == _O.space, _T.operation_id == _O.operation_id))
        .where(_O.space == bind(_O.space), _O.thread_id == words("source_id")),
    ),
)
COUNT = Query(
    "count_target",
    select(
        (
            select(func.count())
            .select_from(checkpoints)
            .where(checkpoints.c.space == bind(checkpoints.c.space), checkpoints.c.thread_id == bind(_O.thread_id))
            .scalar_subquery()
            + select(func.count())
            .select_from(writes)
            .where(writes.c.space == bind(writes.c.space), writes.c.thread_id == bind(_O.thread_id))
            .scalar_subquery()
        ).label("found")
    ),
)
STATEMENTS = (COPY_HEADS, COPY_CHECKPOINTS, COPY_WRITES, COPY_OPERATIONS, COPY_TRIES)


def decide(command: CopyThread, locked: Locked) -> Plan[Decision]:
    """Return the copies, of a source that cannot move meanwhile."""
    del locked
    if command.source_id == command.thread_id:
        msg = f"thread {command.thread_id!r} cannot be copied onto itself"
        raise InvalidInput(msg)
    both = {"space": command.space, "thread_id": command.thread_id}
    target = yield from one_or_none(COUNT, **both)
    if target is not None and target["found"]:
        msg = f"thread {command.thread_id!r} is not empty; copy to a new thread id, or delete it first"
        raise InvalidInput(msg, thread_id=command.thread_id)
    source = yield from one_or_none(
        guards.LOCK_THREAD, space=command.space, thread_hash=command.source_hash, thread_id=command.source_id
    )
    if source is not None and source["owner_run_id"] is not None:
        yield from one_or_none(guards.LOCK_RUN, space=command.space, run_id=source["owner_run_id"])
    return Decision({}, effects=[Call(query, both | {"source_id": command.source_id}) for query in STATEMENTS])


SPEC = ColdCommand(
    name="copy_thread",
    dto=CopyThread,
    guard=THREAD,
    decide=decide,
    statements=(COUNT, guards.LOCK_THREAD, guards.LOCK_RUN, *STATEMENTS),
    locks_thread=True,
    locks_run=False,
)
