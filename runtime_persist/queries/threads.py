"""A thread's outline: its checkpoints and writes by size. Content and metadata are not read, however large they are."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, func, literal_column, select
from sqlalchemy.types import BigInteger

from runtime_persist.dialects.sql import bind, words
from runtime_persist.plan import Plan, Query, Row, many
from runtime_persist.queries.checkpoints import LAST, READ_WRITES
from runtime_persist.queries.history import READ_HEADS
from runtime_persist.schema import checkpoints

_C = checkpoints.c

READ_OUTLINE = Query(
    "read_thread_outline",
    select(
        _C.checkpoint_id,
        _C.parent_id,
        _C.run_id,
        _C.epoch,
        _C.body,
        func.length(_C.metadata).label("metadata_bytes"),
        _C.created_us,
    )
    .where(
        _C.space == bind(_C.space),
        _C.thread_id == bind(_C.thread_id),
        _C.checkpoint_ns == bind(_C.checkpoint_ns),
        _C.hidden == literal_column("0"),
        _C.checkpoint_id <= words("up_to"),
    )
    .order_by(_C.checkpoint_id.desc())
    .limit(bindparam("page_rows", type_=BigInteger())),
)


@dataclass(frozen=True, slots=True)
class Outline:
    """One namespace: its newest checkpoints, newest first, and the writes of the first of them."""

    checkpoint_ns: str
    checkpoints: list[Row]
    writes: list[Row]


def outline(space: str, thread_id: str, ns: str | None, checkpoint_id: str | None, rows: int) -> Plan[list[Outline]]:
    """Read the outline of a thread's namespaces (or of one), up to a checkpoint (None: the head)."""
    heads = yield from many(READ_HEADS, space=space, thread_id=thread_id)
    found: list[Outline] = []
    for name in sorted(head["checkpoint_ns"] for head in heads):
        if ns is not None and name != ns:
            continue
        key = {"space": space, "thread_id": thread_id, "checkpoint_ns": name}
        listed = list((yield from many(READ_OUTLINE, **key, up_to=checkpoint_id or LAST, page_rows=rows)))
        if checkpoint_id is not None and (not listed or listed[0]["checkpoint_id"] != checkpoint_id):
            continue
        ids = [row["checkpoint_id"] for row in listed[:1]]
        found.append(Outline(name, listed, list((yield from many(READ_WRITES, **key, checkpoint_ids=ids)))))
    return found
