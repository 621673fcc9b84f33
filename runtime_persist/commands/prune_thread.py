"""prune_thread: old checkpoints of a thread go; history that a DeltaChannel needs stays, hidden.

A caller that has the graph gives heads that were rewritten to hold all their values: then no history is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import delete, select, update

from runtime_persist.commands.parts import checkpoint_rows, content
from runtime_persist.commands.parts.spec import ColdCommand, Decision, Locked, ThreadCommand
from runtime_persist.dialects.sql import among, bind, constant
from runtime_persist.errors import StaleWriter
from runtime_persist.model.guards import THREAD
from runtime_persist.plan import Call, Plan, Query, many
from runtime_persist.schema import checkpoints, heads, writes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import ColumnElement

    from runtime_persist.commands.parts.checkpoint_rows import CheckpointRow
    from runtime_persist.model.payload import Blob


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A stored checkpoint as it is to be: the same state, with the values of its DeltaChannels in it.

    Attributes:
        row: under the id, namespace and parent that it has.
        read: fingerprint of the row it was made from (an expectation).

    """

    row: CheckpointRow
    read: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneThread(ThreadCommand):
    """Delete, hide and orphan checkpoints of a thread, by id and namespace.

    What goes was chosen from what was read before; rows that were written meanwhile are not named, so they stay.

    Attributes:
        heads: head of each namespace as it was read (an expectation).
        delete: namespace -> ids that go, with their writes.
        hide: namespace -> ids that stay only as history.
        roots: namespace -> ids that stay and are shown without their parent.
        empty: namespaces of which nothing stays.
        snapshots: heads that stay, rewritten in place.

    Refused: a live run owns the thread (ThreadOwned); a head moved, or one that is rewritten was changed, since it
    was read (StaleWriter).

    """

    heads: Mapping[str, str]
    delete: Mapping[str, tuple[str, ...]]
    hide: Mapping[str, tuple[str, ...]]
    roots: Mapping[str, tuple[str, ...]]
    empty: tuple[str, ...]
    snapshots: tuple[Snapshot, ...] = ()


_C, _H, _W = checkpoints.c, heads.c, writes.c
READ_HEADS = Query(
    "read_heads",
    select(_H.checkpoint_ns, _H.checkpoint_id).where(_H.space == bind(_H.space), _H.thread_id == bind(_H.thread_id)),
)
_NAMED: tuple[ColumnElement[bool], ...] = (
    _C.space == bind(_C.space),
    _C.thread_id == bind(_C.thread_id),
    _C.checkpoint_ns == bind(_C.checkpoint_ns, "in_ns"),
    among(_C.checkpoint_id, "ids"),
)
DELETE_WRITES = Query(
    "delete_pruned_writes",
    delete(writes).where(
        _W.space == bind(_W.space),
        _W.thread_id == bind(_W.thread_id),
        _W.checkpoint_ns == bind(_W.checkpoint_ns, "in_ns"),
        among(_W.checkpoint_id, "ids"),
    ),
    each="ids",
)
DELETE_CHECKPOINTS = Query("delete_pruned_checkpoints", delete(checkpoints).where(*_NAMED), each="ids")
HIDE = Query("hide_checkpoints", update(checkpoints).values(hidden=constant(1)).where(*_NAMED), each="ids")
# The parent stays in the row: it is part of the fingerprint, and hidden history is reached through it.
ORPHAN = Query("orphan_checkpoints", update(checkpoints).values(orphan=constant(1)).where(*_NAMED), each="ids")
# Whose checkpoint it is (run_id, epoch) stays as it was: only the form of its state changes.
REWRITE = Query(
    "rewrite_head",
    update(checkpoints)
    .values(body=bind(_C.body), metadata=bind(_C.metadata), fingerprint=bind(_C.fingerprint))
    .where(*(_C[name] == bind(_C[name]) for name in ("space", "thread_id", "checkpoint_ns", "checkpoint_id"))),
)
DROP_HEAD = Query(
    "drop_pruned_heads",
    delete(heads).where(
        _H.space == bind(_H.space), _H.thread_id == bind(_H.thread_id), among(_H.checkpoint_ns, "namespaces")
    ),
    each="namespaces",
)


def decide(command: PruneThread, locked: Locked) -> Plan[Decision]:
    """Return the deletes and updates, unless a head moved or changed."""
    del locked
    thread = {"space": command.space, "thread_id": command.thread_id}
    found = {row["checkpoint_ns"]: row["checkpoint_id"] for row in (yield from many(READ_HEADS, **thread))}
    if found != dict(command.heads):
        raise _moved(command)
    for one in command.snapshots:
        stored = yield from checkpoint_rows.lookup(command.space, command.thread_id, one.row)
        if stored is None or stored.fingerprint != one.read:
            raise _moved(command)

    def each(query: Query, chosen: Mapping[str, tuple[str, ...]]) -> list[Call]:
        return [Call(query, thread | {"in_ns": ns, "ids": list(ids)}) for ns, ids in sorted(chosen.items()) if ids]

    return Decision(
        {},
        effects=[
            *_content(command),
            *(_rewrite(thread, one.row) for one in command.snapshots),
            *each(DELETE_WRITES, command.delete),
            *each(DELETE_CHECKPOINTS, command.delete),
            *each(HIDE, command.hide),
            *each(ORPHAN, command.roots),
            Call(DROP_HEAD, thread | {"namespaces": list(command.empty)}),
        ],
    )


def _content(command: PruneThread) -> list[Call]:
    """Return what stores the content of all heads, each piece once."""
    owned: dict[str, dict[bytes, Blob]] = {}
    for one in command.snapshots:
        owned.setdefault(one.row.owner, {}).update((blob.address, blob) for blob in one.row.blobs)
    return [
        call for owner, blobs in sorted(owned.items()) for call in content.store(command.space, owner, blobs.values())
    ]


def _rewrite(thread: dict[str, str], row: CheckpointRow) -> Call:
    new = {name: getattr(row, name) for name in ("checkpoint_ns", "checkpoint_id", "body", "metadata", "fingerprint")}
    return Call(REWRITE, thread | new)


def _moved(command: PruneThread) -> StaleWriter:
    msg = f"thread {command.thread_id!r} moved on while it was read for pruning; call prune again"
    return StaleWriter(msg, thread_id=command.thread_id)


SPEC = ColdCommand(
    name="prune_thread",
    dto=PruneThread,
    guard=THREAD,
    decide=decide,
    statements=(
        READ_HEADS,
        checkpoint_rows.READ_FINGERPRINT,
        content.STORE_BLOB,
        REWRITE,
        DELETE_WRITES,
        DELETE_CHECKPOINTS,
        HIDE,
        ORPHAN,
        DROP_HEAD,
    ),
    locks_thread=True,
    locks_run=False,
)
