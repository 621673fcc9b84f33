"""Threads as a list, and what a bundle's file has of its run's thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from runtime_persist.errors import InvalidInput, ThreadNotFound
from runtime_persist.inspector import thread as threads
from runtime_persist.inspector.bundles import content
from runtime_persist.inspector.content_sizes import sizes_of
from runtime_persist.queries import thread_list as queries
from runtime_persist.queries.checkpoints import LAST
from runtime_persist.queries.threads import Outline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime_persist.engine import Engine, Flow
    from runtime_persist.inspector.bundles import RecoveryBundle
    from runtime_persist.plan import Row


class ThreadRow(BaseModel):
    """One thread, as a list shows it. Times are microseconds since 1970 by the database's clock.

    Attributes:
        owner_run_id: the run that holds, or last held, it.
        runs: how many were started on it.
        checkpoint_id: its head (None: nothing is stored in its root namespace).

    """

    model_config = ConfigDict(frozen=True)

    thread_id: str
    owner_run_id: str | None
    runs: int
    checkpoint_id: str | None
    created_us: int


def load_threads(engine: Engine, limit: int, after: str = "") -> Flow[list[ThreadRow]]:
    """Read the threads behind a thread id, in the order of their ids (raises InvalidInput)."""
    if limit < 0:
        msg = f"limit must not be negative, got {limit}"
        raise InvalidInput(msg, limit=limit)
    rows: Sequence[Row] = yield engine.coordinator.read(
        "list_threads", lambda: queries.listing(engine.space, after, limit)
    )
    return [_row(row, row["checkpoint_id"]) for row in rows]


def threads_of(bundle: RecoveryBundle) -> list[ThreadRow]:
    """Return the thread of a bundle's run."""
    head = next((row["checkpoint_id"] for row in bundle.rows["heads"] if row["checkpoint_ns"] == ""), None)
    return [_row(row, head) for row in bundle.rows["threads"] if row["thread_id"] is not None]


def _row(row: Row, head: str | None) -> ThreadRow:
    said = {name: row[name] for name in ("thread_id", "owner_run_id", "created_us")}
    return ThreadRow(**said, runs=row["run_no"], checkpoint_id=head)


def thread_of(
    bundle: RecoveryBundle, thread_id: str, *, ns: str | None, checkpoint_id: str | None, history: int
) -> threads.ThreadView:
    """Return a bundle's thread by size, of the checkpoints that are in it (raises ThreadNotFound, InvalidInput)."""
    found = _outline(bundle, thread_id, ns, checkpoint_id, threads.history_of(history))
    return threads.view(thread_id, found, lambda named: sizes_of(bundle.contents, named))


def value_of(
    bundle: RecoveryBundle, serde: Any, thread_id: str, channel: str, *, ns: str = "", checkpoint_id: str | None = None
) -> Any:
    """Load one channel's value, or its pending writes (raises as ``inspector.thread.load_value``)."""
    refs = threads.refs_of_channel(_outline(bundle, thread_id, ns, checkpoint_id, 1), thread_id, channel, ns)
    found = [bundle.value(serde, ref, f"channel {channel!r} of thread {thread_id!r}") for ref in refs]
    return found[0] if len(found) == 1 else found


def bytes_of(
    bundle: RecoveryBundle, thread_id: str, channel: str, *, ns: str = "", checkpoint_id: str | None = None
) -> list[tuple[str, bytes]]:
    """Return type tags and serialized bytes of a channel (raises ThreadNotFound, CheckpointCorrupt)."""
    refs = threads.refs_of_channel(_outline(bundle, thread_id, ns, checkpoint_id, 1), thread_id, channel, ns)
    where = f"channel {channel!r} of thread {thread_id!r}"
    return [(ref.type, content.joined(ref, bundle.contents.__getitem__, where)) for ref in refs]


def _outline(
    bundle: RecoveryBundle, thread_id: str, ns: str | None, checkpoint_id: str | None, history: int
) -> list[Outline]:
    """Return what a database would, of the rows that are in the bundle."""
    if thread_id != bundle.manifest.thread_id:
        msg = f"the bundle is of thread {bundle.manifest.thread_id!r}, not of {thread_id!r}"
        raise ThreadNotFound(msg, thread_id=thread_id)
    rows, last = bundle.rows, checkpoint_id or LAST
    found: list[Outline] = []
    for name in sorted(head["checkpoint_ns"] for head in rows["heads"]):
        listed = [
            {**row, "metadata_bytes": len(row["metadata"])}
            for row in sorted(rows["checkpoints"], key=lambda row: row["checkpoint_id"], reverse=True)
            if row["checkpoint_ns"] == name and not row["hidden"] and row["checkpoint_id"] <= last
        ][:history]
        right = bool(listed) and checkpoint_id in {None, listed[0]["checkpoint_id"]}
        if right and ns in {None, name}:
            newest = listed[0]["checkpoint_id"]
            writes = [row for row in rows["writes"] if (row["checkpoint_ns"], row["checkpoint_id"]) == (name, newest)]
            found.append(Outline(name, list(listed), writes))
    if not found:
        raise threads.nothing_of(thread_id, ns, checkpoint_id, "the bundle")
    return found
