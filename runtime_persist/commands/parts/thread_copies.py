"""A thread's rows under another id, whole or up to a checkpoint: content is shared, the journal comes along.

An effect of the source never fires again in the copy: completed operations come along with their results, open and
unknown ones are ``unknown`` there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Table, and_, case, func, null, or_, select

from runtime_persist.commands.parts import guards
from runtime_persist.dialects.sql import bind, constant, insert, words
from runtime_persist.errors import ThreadDeleted, ThreadNotEmpty
from runtime_persist.model.states import TryStatus
from runtime_persist.plan import Call, Plan, Query, one_or_none
from runtime_persist.schema import checkpoints, heads, operation_tries, operations, writes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime_persist.plan import Row

_C, _W, _O, _T = checkpoints.c, writes.c, operations.c, operation_tries.c
_ALL_TASKS, _ANSWER = "00000000-0000-0000-0000-000000000000", "__resume__"  # as LangGraph names them
_AFTER_ALL = "\U0010ffff"  # greater than every id
_NEW_ID = _O.operation_id + constant("@") + bind(_O.thread_id)


def _copied(name: str, table: Table, *conditions: ColumnElement[bool], **changed: ColumnElement[Any]) -> Query:
    """Return the statement that copies a table's rows of the source thread."""
    values: Mapping[str, ColumnElement[Any]] = {"thread_id": bind(table.c.thread_id)} | changed
    columns = [values.get(column.name, column) for column in table.c]
    source = select(*columns).where(
        table.c.space == bind(table.c.space), table.c.thread_id == words("source_id"), *conditions
    )
    return Query(name, insert(table).from_select(list(table.c), source))


_JOURNAL = (
    _copied("copy_operations", operations, operation_id=_NEW_ID, copied_from=_O.operation_id),
    Query(
        "copy_operation_tries",
        insert(operation_tries).from_select(
            list(_T),
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
    ),
)
# The run that wrote a row belongs to the source: the copy has no runs.
_UNOWNED = {"run_id": null(), "epoch": null()}
WHOLE = (
    _copied("copy_heads", heads),
    _copied("copy_checkpoints", checkpoints, **_UNOWNED),
    _copied("copy_writes", writes, **_UNOWNED),
    *_JOURNAL,
)
# Ids of one thread never go back: what has a smaller id was there before, and the newest of a namespace was its head.
_CUT = or_(
    and_(_C.checkpoint_ns == constant(""), _C.checkpoint_id <= words("up_to")),
    and_(_C.checkpoint_ns != constant(""), _C.checkpoint_id < words("inner_before")),
)
UP_TO = (
    Query(
        "copy_heads_up_to",
        insert(heads).from_select(
            list(heads.c),
            select(_C.space, bind(_C.thread_id), _C.checkpoint_ns, func.max(_C.checkpoint_id))
            .where(_C.space == bind(_C.space), _C.thread_id == words("source_id"), _C.hidden == constant(0), _CUT)
            .group_by(_C.space, _C.checkpoint_ns),
        ),
    ),
    _copied("copy_checkpoints_up_to", checkpoints, _CUT, **_UNOWNED),
    # An answer that was given to all tasks would be given to their next questions, which are others in the copy.
    _copied(
        "copy_writes_up_to",
        writes,
        or_(
            _W.checkpoint_id < words("up_to"),
            and_(_W.checkpoint_ns != constant(""), _W.checkpoint_id < words("inner_before")),
            and_(
                _W.checkpoint_id == words("own_writes_of"),
                or_(_W.task_id != constant(_ALL_TASKS), _W.channel != constant(_ANSWER)),
            ),
        ),
        **_UNOWNED,
    ),
    *_JOURNAL,
)
READ_HEAD = Query(
    "read_source_head",
    select(heads.c.checkpoint_id).where(
        heads.c.space == bind(heads.c.space),
        heads.c.thread_id == bind(heads.c.thread_id),
        heads.c.checkpoint_ns == constant(""),
    ),
)
COUNT = Query(
    "count_target",
    select(
        (
            select(func.count())
            .select_from(checkpoints)
            .where(_C.space == bind(_C.space), _C.thread_id == bind(_C.thread_id))
            .scalar_subquery()
            + select(func.count())
            .select_from(writes)
            .where(_W.space == bind(_W.space), _W.thread_id == bind(_W.thread_id))
            .scalar_subquery()
        ).label("found")
    ),
)
CHECKS = (COUNT, guards.LOCK_THREAD, guards.LOCK_RUN)


def check_target(space: str, thread: Row) -> Plan[None]:
    """Refuse a target thread (its locked row) that something was stored in.

    Raises:
        ThreadNotEmpty: it has checkpoints or writes.
        ThreadDeleted: it was deleted: a writer from before could not be told from one of the copy.

    """
    thread_id = thread["thread_id"]
    target = yield from one_or_none(COUNT, space=space, thread_id=thread_id)
    if target is not None and target["found"]:
        msg = f"thread {thread_id!r} is not empty; copy to a new thread id"
        raise ThreadNotEmpty(msg, thread_id=thread_id)
    if thread["deleted_checkpoint_id"] is not None:
        msg = f"thread {thread_id!r} was deleted, and what is older cannot come back to it; copy to a new thread id"
        raise ThreadDeleted(msg, thread_id=thread_id)


def hold_source(space: str, source_id: str, source_hash: bytes) -> Plan[None]:
    """Lock a source and the run that owns it: it cannot move while it is copied."""
    source = yield from one_or_none(guards.LOCK_THREAD, space=space, thread_hash=source_hash, thread_id=source_id)
    if source is not None and source["owner_run_id"] is not None:
        yield from one_or_none(guards.LOCK_RUN, space=space, run_id=source["owner_run_id"])


def copy_whole(space: str, source_id: str, thread_id: str) -> list[Call]:
    """Return the statements that copy a thread."""
    return [Call(query, {"space": space, "thread_id": thread_id, "source_id": source_id}) for query in WHOLE]


def copy_up_to(space: str, source_id: str, thread_id: str, checkpoint_id: str) -> Plan[list[Call]]:
    """Return the statements that copy a thread up to a checkpoint of its root graph.

    At the head, everything comes along that its tasks have done since, in whatever namespace. At an older checkpoint
    that is part of what came after it.
    """
    head = yield from one_or_none(READ_HEAD, space=space, thread_id=source_id)
    at_head = head is not None and head["checkpoint_id"] == checkpoint_id
    params = {
        "space": space,
        "thread_id": thread_id,
        "source_id": source_id,
        "up_to": checkpoint_id,
        "inner_before": _AFTER_ALL if at_head else f"{checkpoint_id} ",
        "own_writes_of": checkpoint_id if at_head else "",
    }
    return [Call(query, params) for query in UP_TO]
