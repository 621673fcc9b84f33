"""Heads that hold all their values: with the graph, and so its reducers, at hand, DeltaChannels need no history.

The checkpoint keeps its id, its parent and its versions: what refers to it (pending writes, answers, tasks and with
them the journal) goes on to mean the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.pregel._checkpoint import channels_from_checkpoint

from runtime_persist.adapters.workflow import delta, encoding, reading
from runtime_persist.adapters.workflow.encoding import Place
from runtime_persist.commands.prune_thread import Snapshot
from runtime_persist.engine import run
from runtime_persist.errors import StaleWriter

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointMetadata
    from langgraph.pregel import Pregel
    from langgraph.pregel.protocol import PregelProtocol

    from runtime_persist.adapters.workflow.core import SaverContext
    from runtime_persist.plan import Row

COUNTERS = "counters_since_delta_snapshot"
"""Metadata: the delta channels whose value is not in the checkpoint, with what happened since it last was."""


def without_value(row: Row, saver: SaverContext) -> set[str]:
    """Return the delta channels of a stored checkpoint whose value is rebuilt from its ancestors' writes."""
    metadata: Mapping[str, Any] = {**encoding.decoded_metadata(row["metadata"], saver.serde)}
    counted = metadata.get(COUNTERS) or {}
    manifest = encoding.manifest_of(row["body"], saver.serde)
    return {channel for channel in counted if channel in manifest.versions and channel not in manifest.refs}


def of_head(
    saver: SaverContext,
    graph: Pregel[Any, Any, Any, Any],
    thread_id: str,
    row: Row,
    channels: Collection[str],
) -> Snapshot | None:
    """Return a head with the values of ``channels`` in it; None when the graph does not know them.

    Reads, and runs the graph's reducers: not for an event loop's thread.

    Raises:
        StaleWriter: the checkpoint is gone.

    """
    known = _graph_of(graph, row["checkpoint_ns"])
    specs = {name: spec for name, spec in getattr(known, "channels", {}).items() if name in channels}
    if len(specs) < len(channels):
        return None  # a subgraph that a tool calls, or a channel of an older graph: its history has to stay
    here = Place(thread_id, row["checkpoint_ns"], row["checkpoint_id"]).config(row["checkpoint_id"])
    found = run(reading.get_tuple(saver, here))
    if found is None:
        msg = f"checkpoint {row['checkpoint_id']} of thread {thread_id!r} is gone"
        raise StaleWriter(msg, thread_id=thread_id)
    history = cast("BaseCheckpointSaver[str]", _History(saver))  # all that LangGraph asks of it here
    folded, _ = channels_from_checkpoint(specs, found.checkpoint, saver=history, config=here)
    core, serde = saver.core, saver.serde
    values = {name: _DeltaSnapshot(channel.get()) for name, channel in folded.items()}
    checkpoint = found.checkpoint
    checkpoint["channel_values"] = values
    limit = core.engine.max_value_bytes
    metadata = encoding.encoded_metadata(serde, {}, _counted(found.metadata, channels), core.metadata_keys, limit)
    new, _ = encoding.checkpoint_row(
        core.engine.content.writer(),
        serde,
        Place(thread_id, row["checkpoint_ns"], row["parent_id"]),
        checkpoint,
        metadata,
        encoding.serialized(serde, checkpoint, values, limit),
        encoding.manifest_of(row["body"], serde),  # every other value stays where it is
    )
    return Snapshot(row=new, read=row["fingerprint"])


@dataclass(frozen=True, slots=True)
class _History:
    saver: SaverContext

    def get_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, Any]:
        return run(delta.channel_history(self.saver, config, channels))


def _graph_of(graph: Pregel[Any, Any, Any, Any], ns: str) -> PregelProtocol[Any, Any, Any, Any] | None:
    """Return the (sub)graph that writes to a namespace: ``node:task|inner:task``, or ``node|1`` for a stateful one."""
    if not ns:
        return graph
    path = "|".join(part.split(":")[0] for part in ns.split("|") if not part.isdigit())
    return next((found for _, found in graph.get_subgraphs(namespace=path, recurse=True)), None)


def _counted(metadata: CheckpointMetadata, stored: Collection[str]) -> CheckpointMetadata:
    """Return metadata that no longer counts what happened since the last value of some channels."""
    kept: dict[str, Any] = {**metadata}
    counters: Mapping[str, Any] = {k: v for k, v in kept.pop(COUNTERS, {}).items() if k not in stored}
    return cast("CheckpointMetadata", kept | ({COUNTERS: counters} if counters else {}))
