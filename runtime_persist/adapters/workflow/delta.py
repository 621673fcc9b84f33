"""History of DeltaChannels: a channel that stores only writes is rebuilt from its nearest stored value."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import writes_sort_key

from runtime_persist.adapters.workflow import encoding
from runtime_persist.adapters.workflow.reading import place_of
from runtime_persist.model.payload import PayloadRef
from runtime_persist.queries import checkpoints as checkpoint_queries
from runtime_persist.queries import history as queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.runnables import RunnableConfig

    from runtime_persist.adapters.workflow.core import SaverContext
    from runtime_persist.adapters.workflow.encoding import Place
    from runtime_persist.engine import Flow
    from runtime_persist.plan import Row

_DEPTH = 128
"""Ancestors read by one statement: more than the default snapshot frequency."""


@dataclass(slots=True)
class _Walk:
    """Which checkpoints contribute to each channel, nearest first, and where its stored value is."""

    channels: dict[str, list[str]]
    seeds: dict[str, PayloadRef] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def visit(self, row: Row) -> bool:
        """Add an ancestor; return whether any channel still looks for a stored value."""
        self.seen.add(row["checkpoint_id"])
        refs = encoding.refs_of(row["body"])
        for channel, ids in self.channels.items():
            if channel not in self.seeds:
                ids.append(row["checkpoint_id"])
                if channel in refs:
                    self.seeds[channel] = refs[channel]
        return len(self.seeds) < len(self.channels)


def channel_history(saver: SaverContext, config: RunnableConfig, channels: Sequence[str]) -> Flow[Mapping[str, Any]]:
    """Return for each channel the writes of the target's ancestors since the nearest stored value, and that value."""
    if not channels:
        return {}
    place = place_of(config)
    walk = _Walk({channel: [] for channel in channels})
    yield from _walk(saver, place, walk)
    ids = sorted({one for found in walk.channels.values() for one in found})
    rows, values = yield from _values(saver, place, ids, walk)
    result: dict[str, Any] = {}
    for channel, wanted in walk.channels.items():
        own = [row for row in rows if row["channel"] == channel]
        entry: dict[str, Any] = {"writes": []}
        for checkpoint_id in reversed(wanted):
            here = [row for row in own if row["checkpoint_id"] == checkpoint_id]
            here.sort(key=lambda row: writes_sort_key(row["task_path"], row["task_id"], row["idx"]))
            entry["writes"] += [(row["task_id"], channel, values(PayloadRef.decoded(row["value"]))) for row in here]
        if channel in walk.seeds:
            entry["seed"] = values(walk.seeds[channel])
        result[channel] = entry
    return result


def _walk(saver: SaverContext, place: Place, walk: _Walk) -> Flow[None]:
    """Follow the parent chain from the target's parent until every channel has its stored value, or the root."""
    engine = saver.core.engine
    at = place.checkpoint_id
    if at is None:
        at = yield engine.coordinator.read(
            "read_head", lambda: checkpoint_queries.head(engine.space, place.thread_id, place.ns)
        )
    skip = True  # the target itself does not contribute
    while at is not None:
        rows: list[Row] = yield engine.coordinator.read(
            "delta_history", partial(queries.chain, engine.space, place.thread_id, place.ns, at, _DEPTH)
        )
        if not rows:
            return
        for row in rows[1:] if skip else rows:
            if row["checkpoint_id"] in walk.seen or not walk.visit(row):
                return
        skip = False
        at = rows[-1]["parent_id"] if len(rows) > _DEPTH else None


def _values(saver: SaverContext, place: Place, ids: list[str], walk: _Walk) -> Flow[tuple[list[Row], Any]]:
    """Return the writes of some checkpoints, and a function that loads a payload."""
    engine = saver.core.engine
    rows: list[Row] = yield engine.coordinator.read(
        "delta_writes", lambda: queries.channel_writes(engine.space, place.thread_id, place.ns, ids)
    )
    rows = [row for row in rows if row["channel"] in walk.channels]
    content = engine.content.reader()
    content.want(walk.seeds.values())
    content.want(PayloadRef.decoded(row["value"]) for row in rows)
    if content.missing():
        yield engine.coordinator.read("delta_content", lambda: checkpoint_queries.fill(engine.space, content))

    def load(ref: PayloadRef) -> Any:
        where = f"the history of thread {place.thread_id!r}"
        return encoding.loaded(saver.serde, content, ref, where)

    return rows, load
