"""A thread by size in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from runtime_persist.inspector.render import moment, table

if TYPE_CHECKING:
    from rich.table import Table

    from runtime_persist.inspector.thread import NamespaceView, ThreadView


def thread(found: ThreadView) -> RenderableType:
    """Return a thread by size."""
    parts: list[RenderableType] = []
    for namespace in found.namespaces:
        parts += [_sizes(namespace), Text("")]
        if namespace.writes:
            parts += [_writes(namespace), Text("")]
    return Group(Text(f"thread {found.thread_id}", style="bold"), Text(""), *parts)


def _sizes(found: NamespaceView) -> Table:
    newest, oldest = found.checkpoints[0], found.checkpoints[-1]
    name = f"namespace {found.checkpoint_ns}, " if found.checkpoint_ns else ""
    steps = len(found.checkpoints) - 1
    title = f"{name}checkpoint {newest.checkpoint_id} ({moment(newest.created_us)})"
    made = table(title, "channel", "bytes", f"{steps} checkpoints before", "grew by", "type")
    for one in found.channels:
        before = "–" if one.before is None else f"{one.before:,}"
        made.add_row(one.channel, f"{one.bytes:,}", before, f"{one.bytes - (one.before or 0):+,}", one.type)
    made.add_row("(all)", f"{newest.bytes:,}", f"{oldest.bytes:,}", f"{newest.bytes - oldest.bytes:+,}", "")
    made.add_row("(metadata)", f"{newest.metadata_bytes:,}", f"{oldest.metadata_bytes:,}", "", "")
    return made


def _writes(found: NamespaceView) -> Table:
    made = table(f"pending writes ({len(found.writes)})", "task", "channel", "bytes", "type")
    for write in found.writes:
        made.add_row(write.task_id, write.channel, f"{write.bytes:,}", write.type)
    return made
