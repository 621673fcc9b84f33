"""import_thread: checkpoints and writes that another saver stored, a page at a time; heads move with the last page.

A page that is there already is skipped row by row, so an import that died is simply run again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import null, select, update

from runtime_persist.commands.parts import checkpoint_rows, content, write_rows
from runtime_persist.commands.parts.spec import ColdCommand, Decision, Locked, ThreadCommand
from runtime_persist.dialects.sql import bind, constant, excluded, insert, now_us
from runtime_persist.errors import CheckpointConflict, InvariantBroken, StaleWriter, ThreadDeleted
from runtime_persist.model.guards import THREAD
from runtime_persist.plan import Call, Plan, Query, many
from runtime_persist.schema import checkpoints, heads, threads, writes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime_persist.commands.parts.checkpoint_rows import CheckpointRow
    from runtime_persist.commands.parts.write_rows import TaskWrites

    _New = list[CheckpointRow | TaskWrites]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportThread(ThreadCommand):
    """Store rows as another saver had them.

    Attributes:
        rows: checkpoints.
        writes: writes by task; their checkpoints may come in another page.
        heads: namespace -> the head it must have (None: none yet) and the one it gets.

    Refused: a live run owns the thread (ThreadOwned); it was deleted, and a row is not newer than that
    (ThreadDeleted); a row is stored with other content (CheckpointConflict); a head is another one (StaleWriter).

    """

    rows: tuple[CheckpointRow, ...] = ()
    writes: tuple[TaskWrites, ...] = ()
    heads: Mapping[str, tuple[str | None, str]] = field(default_factory=dict)

    @property
    def named_id(self) -> str:
        """Return the smallest checkpoint id this names."""
        return min(
            (
                *(row.named_id for row in self.rows),
                *(given.checkpoint_id for given in self.writes),
                *(new for _, new in self.heads.values()),
            ),
            default="",
        )


_C, _H, _W, _T = checkpoints.c, heads.c, writes.c, threads.c
_ROW = ("thread_id", "checkpoint_ns", "checkpoint_id", "parent_id", "body", "metadata", "fingerprint", "run_ref")
_WRITE = (
    "thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "task_path", "idx", "channel", "value", "fingerprint",
)  # fmt: skip

STORE_CHECKPOINT = Query(
    "import_checkpoint",
    insert(checkpoints).values(
        space=bind(_C.space),
        **{name: bind(_C[name]) for name in _ROW},
        run_id=null(),
        epoch=null(),
        hidden=constant(0),
        orphan=constant(0),
        created_us=now_us(),
    ),
)
STORE_WRITE = Query(
    "import_write",
    insert(writes).values(
        space=bind(_W.space), **{name: bind(_W[name]) for name in _WRITE}, run_id=null(), epoch=null()
    ),
)
READ_HEADS = Query(
    "read_heads",
    select(_H.checkpoint_ns, _H.checkpoint_id).where(_H.space == bind(_H.space), _H.thread_id == bind(_H.thread_id)),
)
MOVE_HEAD = Query(
    "import_head",
    insert(heads)
    .values(**{column.name: bind(column) for column in _H})
    .on_conflict_do_update(
        index_elements=[_H.space, _H.thread_id, _H.checkpoint_ns],
        set_={"checkpoint_id": excluded("checkpoint_id")},
    ),
)
# The id of a deleted thread returns with what is written to it.
NAME_THREAD = Query(
    "name_imported_thread",
    update(threads)
    .values(thread_id=bind(_T.thread_id))
    .where(_T.space == bind(_T.space), _T.thread_hash == bind(_T.thread_hash)),
)


def decide(command: ImportThread, locked: Locked) -> Plan[Decision]:
    """Return the rows that are not there yet, and the moves of the heads."""
    if locked.thread is None:
        raise InvariantBroken
    mark = locked.thread["deleted_checkpoint_id"]
    if mark is not None and command.named_id <= mark:
        msg = f"thread {command.thread_id!r} was deleted here, and what is imported is not newer than that"
        raise ThreadDeleted(msg, thread_id=command.thread_id, deleted_checkpoint_id=mark)
    new: _New = []
    effects = yield from _checkpoints(command, new)
    effects += yield from _writes(command, new)
    effects = [*_content(command, new), *effects]
    effects += yield from _heads(command)
    if effects:
        named = {"space": command.space, "thread_hash": command.thread_hash, "thread_id": command.thread_id}
        effects.append(Call(NAME_THREAD, named))
    return Decision({"stored": len(effects)}, effects=effects)


def _content(command: ImportThread, new: _New) -> list[Call]:
    """Return what stores the content of new rows: what many of them share once, in the order all writers lock it."""
    blobs = {(given.owner, blob.address): blob for given in new for blob in given.blobs}
    return [call for key in sorted(blobs) for call in content.store(command.space, key[0], [blobs[key]])]


def _checkpoints(command: ImportThread, new: _New) -> Plan[list[Call]]:
    effects: list[Call] = []
    for row in command.rows:
        stored = yield from checkpoint_rows.lookup(command.space, command.thread_id, row)
        if stored is None:
            new.append(row)
            values = {name: getattr(row, name) for name in _ROW if name != "thread_id"}
            effects.append(Call(STORE_CHECKPOINT, {"space": command.space, "thread_id": command.thread_id, **values}))
        elif stored.fingerprint != row.fingerprint:
            raise _conflict(command, row.checkpoint_id)
    return effects


def _writes(command: ImportThread, new: _New) -> Plan[list[Call]]:
    effects: list[Call] = []
    for given in command.writes:
        place = {
            "space": command.space,
            "thread_id": command.thread_id,
            "checkpoint_ns": given.checkpoint_ns,
            "checkpoint_id": given.checkpoint_id,
            "task_id": given.task_id,
        }
        rows = yield from many(write_rows.READ_FINGERPRINTS, **place)
        stored = {row["idx"]: row["fingerprint"] for row in rows}
        missing = [write for write in given.writes if write.idx not in stored]
        if any(stored.get(write.idx, write.fingerprint()) != write.fingerprint() for write in given.writes):
            raise _conflict(command, given.checkpoint_id)
        if missing:
            new.append(given)
        for write in missing:
            values = {"idx": write.idx, "channel": write.channel, "value": write.value}
            values |= {"task_path": given.task_path, "fingerprint": write.fingerprint()}
            effects.append(Call(STORE_WRITE, place | values))
    return effects


def _heads(command: ImportThread) -> Plan[list[Call]]:
    if not command.heads:
        return []
    thread = {"space": command.space, "thread_id": command.thread_id}
    found = {row["checkpoint_ns"]: row["checkpoint_id"] for row in (yield from many(READ_HEADS, **thread))}
    effects: list[Call] = []
    for ns, (expected, new) in sorted(command.heads.items()):
        head = found.get(ns)
        if head == new:
            continue
        if head != expected:
            msg = f"thread {command.thread_id!r} was moved on here while it was imported; its head is {head}"
            raise StaleWriter(msg, thread_id=command.thread_id, loaded=expected, head=head)
        effects.append(Call(MOVE_HEAD, thread | {"checkpoint_ns": ns, "checkpoint_id": new}))
    return effects


def _conflict(command: ImportThread, checkpoint_id: str) -> CheckpointConflict:
    msg = f"checkpoint {checkpoint_id} of thread {command.thread_id!r} is stored here with other content"
    return CheckpointConflict(msg, thread_id=command.thread_id, checkpoint_id=checkpoint_id)


SPEC = ColdCommand(
    name="import_thread",
    dto=ImportThread,
    guard=THREAD,
    decide=decide,
    statements=(
        checkpoint_rows.READ_FINGERPRINT,
        write_rows.READ_FINGERPRINTS,
        READ_HEADS,
        content.STORE_BLOB,
        STORE_CHECKPOINT,
        STORE_WRITE,
        MOVE_HEAD,
        NAME_THREAD,
    ),
    locks_thread=True,
    locks_run=False,
)
