"""Chains and inventories of a thread's checkpoints: what pruning, deleting by run and DeltaChannels need."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, literal_column, select
from sqlalchemy.types import BigInteger

from runtime_persist.dialects.sql import among, bind
from runtime_persist.plan import Plan, Query, Row, many
from runtime_persist.queries.runs import open_of_thread
from runtime_persist.schema import checkpoints, heads, writes

_C, _H, _W = checkpoints.c, heads.c, writes.c

# One recursive statement walks the parent chain; hidden rows are part of it.
_start = (
    select(_C.checkpoint_id, _C.parent_id, _C.body, literal_column("0").label("depth"))
    .where(
        _C.space == bind(_C.space),
        _C.thread_id == bind(_C.thread_id),
        _C.checkpoint_ns == bind(_C.checkpoint_ns),
        _C.checkpoint_id == bind(_C.checkpoint_id),
    )
    .cte("chain", recursive=True)
)
_chain = _start.union_all(
    select(_C.checkpoint_id, _C.parent_id, _C.body, _start.c.depth + literal_column("1"))
    .select_from(checkpoints)
    .join(_start, _C.checkpoint_id == _start.c.parent_id)
    .where(
        _C.space == bind(_C.space),
        _C.thread_id == bind(_C.thread_id),
        _C.checkpoint_ns == bind(_C.checkpoint_ns),
        _start.c.depth < bindparam("depth_max", type_=BigInteger()),
    )
)
READ_CHAIN = Query(
    "read_chain",
    select(_chain.c.checkpoint_id, _chain.c.parent_id, _chain.c.body).order_by(_chain.c.depth),
)
READ_CHANNEL_WRITES = Query(
    "read_channel_writes",
    select(_W.checkpoint_id, _W.task_id, _W.idx, _W.task_path, _W.channel, _W.value, _W.fingerprint).where(
        _W.space == bind(_W.space),
        _W.thread_id == bind(_W.thread_id),
        _W.checkpoint_ns == bind(_W.checkpoint_ns),
        among(_W.checkpoint_id, "checkpoint_ids"),
    ),
    each="checkpoint_ids",
)
READ_INVENTORY = Query(
    "read_inventory",
    select(
        _C.checkpoint_ns,
        _C.checkpoint_id,
        _C.parent_id,
        _C.body,
        _C.metadata,
        _C.fingerprint,
        _C.run_id,
        _C.hidden,
    )
    .where(_C.space == bind(_C.space), _C.thread_id == bind(_C.thread_id))
    .order_by(_C.checkpoint_ns, _C.checkpoint_id),
)
READ_HEADS = Query(
    "read_thread_heads",
    select(_H.checkpoint_ns, _H.checkpoint_id).where(_H.space == bind(_H.space), _H.thread_id == bind(_H.thread_id)),
)
READ_THREADS_OF_RUNS = Query(
    "read_threads_of_runs",
    select(_C.thread_id).distinct().where(_C.space == bind(_C.space), among(_C.run_ref, "run_refs")),
    each="run_refs",
)


def chain(space: str, thread_id: str, ns: str, checkpoint_id: str, depth: int) -> Plan[list[Row]]:
    """Return a checkpoint and up to ``depth`` of its ancestors, nearest first."""
    rows = yield from many(
        READ_CHAIN,
        space=space,
        thread_id=thread_id,
        checkpoint_ns=ns,
        checkpoint_id=checkpoint_id,
        depth_max=depth,
    )
    return list(rows)


def channel_writes(space: str, thread_id: str, ns: str, ids: list[str]) -> Plan[list[Row]]:
    """Return the writes of some checkpoints."""
    found = yield from many(READ_CHANNEL_WRITES, space=space, thread_id=thread_id, checkpoint_ns=ns, checkpoint_ids=ids)
    return list(found)


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a thread has.

    Attributes:
        heads: namespace -> id of its head.
        rows: all its checkpoints, hidden ones too, without writes and content.
        open_runs: its runs that are not at their end.

    """

    heads: dict[str, str]
    rows: list[Row]
    open_runs: frozenset[str]


def inventory(space: str, thread_id: str) -> Plan[Inventory]:
    """Return what a thread has."""
    heads = yield from many(READ_HEADS, space=space, thread_id=thread_id)
    rows = yield from many(READ_INVENTORY, space=space, thread_id=thread_id)
    runs = yield from open_of_thread(space, thread_id)
    return Inventory(
        {row["checkpoint_ns"]: row["checkpoint_id"] for row in heads},
        list(rows),
        frozenset(row["run_id"] for row in runs),
    )


def threads_of_runs(space: str, run_refs: list[str]) -> Plan[list[str]]:
    """Return the threads that have checkpoints of some runs."""
    rows = yield from many(READ_THREADS_OF_RUNS, space=space, run_refs=run_refs)
    return sorted({row["thread_id"] for row in rows})
