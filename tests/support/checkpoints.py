"""Checkpoints as LangGraph makes them, without a graph."""

from typing import Any

from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6

from tests.support.way import Way

TASK = "8f3c0d3e-0000-0000-0000-000000000001"


def new_checkpoint(values: dict[str, Any], versions: dict[str, Any] | None = None, **fields: Any) -> Checkpoint:
    """A checkpoint with these channel values; a channel without a version gets version 1."""
    made = empty_checkpoint()
    made.update(
        {
            "id": str(uuid6()),
            "channel_values": values,
            "channel_versions": dict.fromkeys(values, "1") | (versions or {}),
            **fields,
        },  # type: ignore[typeddict-item]
    )
    return made


def at(thread_id: Any = "t", checkpoint_id: str | None = None, ns: str = "", **more: Any) -> dict[str, Any]:
    """The config of a place; ``more`` are further keys of ``configurable``."""
    configurable = {"thread_id": thread_id, "checkpoint_ns": ns, **more}
    if checkpoint_id is not None:
        configurable["checkpoint_id"] = checkpoint_id
    return {"configurable": configurable}


class Steps:
    """Puts checkpoints one behind the other, each with the one before as parent."""

    def __init__(self, way: Way, saver: Any, thread_id: Any = "t", ns: str = "") -> None:
        self.way = way
        self.saver = saver
        self.config = at(thread_id, ns=ns)
        self.versions: dict[str, str] = {}
        self.values: dict[str, Any] = {}
        self.ids: list[str] = []

    async def put(self, *gone: str, **changed: Any) -> dict[str, Any]:
        """Put the next step: some channels got a value, some lost theirs; return its config."""
        for channel in (*gone, *changed):
            self.versions[channel] = str(int(self.versions.get(channel, "0")) + 1)
        self.values = {k: v for k, v in (self.values | changed).items() if k not in gone}
        made = new_checkpoint(dict(self.values), dict(self.versions))
        new = {channel: self.versions[channel] for channel in (*gone, *changed)}
        metadata = {"source": "loop", "step": len(self.ids)}
        self.config = await self.way(self.saver, "put", self.config, made, metadata, new)
        self.ids.append(made["id"])
        return self.config
