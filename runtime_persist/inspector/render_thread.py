"""A thread by size in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from runtime_persist.inspector.render import moment, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from runtime_persist.inspector.thread import NamespaceView, Shared, ThreadView
    from runtime_persist.inspector.thread_records import ThreadRow


def thread(found: ThreadView) -> RenderableType:
    """Return a thread by size."""
    parts: list[RenderableType] = []
    for namespace in found.namespaces:
        parts += [_sizes(namespace), _shared(namespace.shared), Text("")]
        if len(namespace.checkpoints) > 1:
            parts += [_steps(namespace), Text("")]
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


def _shared(found: Shared) -> Text:
    stored = "" if found.stored_bytes is None else f", {found.stored_bytes:,} as they are stored"
    different = f"{found.value_bytes:,} bytes of values are {found.unique_bytes:,} different ones{stored}"
    return Text(f"{different}: {found.ratio:g} times as much is said as is there", style="dim")


def _steps(found: NamespaceView) -> Table:
    made = table("growth, newest first", "checkpoint", "stored", "bytes", "grew by", "new content", "run")
    for one in found.checkpoints:
        grew = "–" if one.grew is None else f"{one.grew:+,}"
        made.add_row(
            one.checkpoint_id, moment(one.created_us), f"{one.bytes:,}", grew, f"{one.new_bytes:,}", one.run_id or "–"
        )
    return made


def threads_table(found: Sequence[ThreadRow]) -> RenderableType:
    """Return a list of threads."""
    made = table(f"threads ({len(found)})", "thread", "runs", "owner", "head", "since")
    for one in found:
        made.add_row(
            one.thread_id, str(one.runs), one.owner_run_id or "–", one.checkpoint_id or "–", moment(one.created_us)
        )
    return made


def _writes(found: NamespaceView) -> Table:
    made = table(f"pending writes ({len(found.writes)})", "task", "channel", "bytes", "type")
    for write in found.writes:
        made.add_row(write.task_id, write.channel, f"{write.bytes:,}", write.type)
    return made
