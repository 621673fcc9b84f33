"""Checkpoints of a format before 4 keep their pending sends among their parent's writes: attached when read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langgraph.checkpoint.base import writes_sort_key

from runtime_persist.adapters.workflow import encoding
from runtime_persist.model.payload import PayloadRef
from runtime_persist.queries import checkpoints as checkpoint_queries
from runtime_persist.queries import history as queries

if TYPE_CHECKING:
    from langgraph.checkpoint.base import CheckpointTuple

    from runtime_persist.adapters.workflow.core import SaverContext
    from runtime_persist.engine import Flow
    from runtime_persist.plan import Row

TASKS = "__pregel_tasks"


def attach(saver: SaverContext, row: Row, found: CheckpointTuple) -> Flow[None]:
    """Give an old checkpoint the sends its parent wrote, under the newest version it has (as PostgresSaver does)."""
    checkpoint, parent = found.checkpoint, row["parent_id"]
    if checkpoint.get("v", 1) >= encoding.SENDS_IN_PARENT_BELOW or parent is None:
        return
    engine, coordinator = saver.core.engine, saver.core.engine.coordinator
    thread_id, ns = row["thread_id"], row["checkpoint_ns"]
    rows, contents = yield coordinator.read(
        "pending_sends",
        lambda: queries.writes_and_content(engine.space, engine.owner, thread_id, ns, [parent], []),
    )
    sends = [one for one in rows if one["channel"] == TASKS]
    if not sends:
        return
    sends.sort(key=lambda one: writes_sort_key(one["task_path"], one["task_id"], one["idx"]))
    refs = [PayloadRef.decoded(one["value"]) for one in sends]
    wanted = [ref.address for ref in refs if ref.address is not None]
    contents = yield coordinator.read(
        "pending_sends", lambda: checkpoint_queries.read_blobs(engine.space, engine.owner, wanted)
    )
    where = f"the pending sends of checkpoint {row['checkpoint_id']} (thread {thread_id!r})"
    values = [encoding.loaded(saver.serde, coordinator.keys, engine.owner, ref, contents, where) for ref in refs]
    checkpoint["channel_values"][TASKS] = values
    versions = checkpoint["channel_versions"]
    versions[TASKS] = max(versions.values()) if versions else f"{1:032}.0"
