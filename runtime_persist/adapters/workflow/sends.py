"""Checkpoints of a format before 4 keep their pending sends among their parent's writes: attached when read."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from langgraph.checkpoint.base import writes_sort_key

from runtime_persist.adapters.workflow import encoding
from runtime_persist.model.payload import PayloadRef
from runtime_persist.queries import checkpoints as checkpoint_queries
from runtime_persist.queries import history as queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langgraph.checkpoint.base import CheckpointTuple

    from runtime_persist.adapters.workflow.core import SaverContext
    from runtime_persist.engine import Flow
    from runtime_persist.plan import Plan, Row

TASKS = "__pregel_tasks"


def attach(saver: SaverContext, read: Sequence[tuple[Row, CheckpointTuple]]) -> Flow[None]:
    """Give old checkpoints the sends their parents wrote, under the newest version each has (as PostgresSaver does).

    However many were read, their parents are asked in one statement a namespace.
    """
    old = [
        (row, found)
        for row, found in read
        if found.checkpoint.get("v", 1) < encoding.SENDS_IN_PARENT_BELOW and row["parent_id"] is not None
    ]
    if not old:
        return
    engine = saver.core.engine
    places: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row, _ in old:
        places[row["thread_id"], row["checkpoint_ns"]].add(row["parent_id"])
    sent: dict[tuple[str, str, str], list[Row]] = yield engine.coordinator.read(
        "pending_sends", lambda: _sent(engine.space, places)
    )
    refs = {id(one): PayloadRef.decoded(one["value"]) for rows in sent.values() for one in rows}
    content = engine.content.reader()
    content.want(refs.values())
    if content.missing():
        yield engine.coordinator.read("pending_sends", lambda: checkpoint_queries.fill(engine.space, content))
    for row, found in old:
        sends = sent.get((row["thread_id"], row["checkpoint_ns"], row["parent_id"]))
        if sends is None:
            continue
        where = f"the pending sends of checkpoint {row['checkpoint_id']} (thread {row['thread_id']!r})"
        found.checkpoint["channel_values"][TASKS] = [
            encoding.loaded(saver.serde, content, refs[id(one)], where) for one in sends
        ]
        versions = found.checkpoint["channel_versions"]
        versions[TASKS] = max(versions.values()) if versions else f"{1:032}.0"


def _sent(space: str, places: Mapping[tuple[str, str], set[str]]) -> Plan[dict[tuple[str, str, str], list[Row]]]:
    """Read the sends among the writes of some checkpoints, in the order of their tasks."""
    sent: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for (thread_id, ns), ids in places.items():
        rows = yield from queries.channel_writes(space, thread_id, ns, sorted(ids))
        for one in sorted(rows, key=lambda one: writes_sort_key(one["task_path"], one["task_id"], one["idx"])):
            if one["channel"] == TASKS:
                sent[thread_id, ns, one["checkpoint_id"]].append(one)
    return dict(sent)
