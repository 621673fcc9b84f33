"""Task writes as fragments behind a fence (leased and unleased commands share them).

Regular writes: the first one of a (task, index) wins. Special writes (negative index: error, scheduled, interrupt,
resume): the newest wins (contract §1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Executable, select

from runtime_persist.commands.parts import content
from runtime_persist.commands.parts.guards import FENCE
from runtime_persist.commands.parts.spec import Receipt
from runtime_persist.dialects.sql import bind, excluded, insert
from runtime_persist.model.keys import fingerprint
from runtime_persist.plan import Fragment, Inputs, Plan, Query, many
from runtime_persist.schema import writes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime_persist.model.payload import Blob

_COMMON = ["space", "thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "task_path", "run_id", "epoch"]
_EACH = ["idx", "channel", "value", "fingerprint"]
_ROWS = {name: writes.c[name].type for name in _EACH}
_KEY = ["space", "thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskWrite:
    """One write of a task.

    Attributes:
        idx: position in the task's list, or the fixed negative index of a special channel.
        channel: where it goes.
        value: encoded payload reference.

    """

    idx: int
    channel: str
    value: bytes

    def fingerprint(self) -> bytes:
        """Return what changes when channel or value do."""
        return fingerprint(self.channel.encode("utf-8", "surrogatepass"), self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskWrites:
    """The writes of one task to one checkpoint, which may not be stored yet."""

    checkpoint_ns: str
    checkpoint_id: str
    task_id: str
    task_path: str
    writes: tuple[TaskWrite, ...]
    owner: str
    blobs: Sequence[Blob] = ()

    def fingerprint(self) -> bytes:
        """Return the fingerprint of all writes in order."""
        return fingerprint(
            *(write.fingerprint() for write in sorted(self.writes, key=lambda write: write.idx)),
        )


def _values(inputs: Inputs) -> Any:
    return insert(writes).from_select(
        [*_COMMON, *_EACH],
        inputs.select(*(bind(writes.c[name]) for name in _COMMON), *(inputs.row(name) for name in _EACH)),
    )


def _regular(inputs: Inputs) -> Executable:
    statement: Executable = _values(inputs).on_conflict_do_nothing()
    return statement


def _special(inputs: Inputs) -> Executable:
    changed = ["task_path", "run_id", "epoch", "channel", "value", "fingerprint"]
    statement: Executable = _values(inputs).on_conflict_do_update(
        index_elements=[writes.c[name] for name in _KEY],
        set_={name: excluded(name) for name in changed},
    )
    return statement


REGULAR = Fragment("regular", _regular, source=FENCE, rows=_ROWS)
SPECIAL = Fragment("special", _special, source=FENCE, rows=_ROWS)
BLOBS = content.fragment(FENCE)

READ_FINGERPRINTS = Query(
    "read_write_fingerprints",
    select(writes.c.idx, writes.c.fingerprint).where(
        *(
            writes.c[name] == bind(writes.c[name])
            for name in ("space", "thread_id", "checkpoint_ns", "checkpoint_id", "task_id")
        ),
    ),
)


def lookup(space: str, thread_id: str, given: TaskWrites) -> Plan[Receipt | None]:
    """Look the rows up as a receipt: all of them are there with the same content."""
    rows = yield from many(
        READ_FINGERPRINTS,
        space=space,
        thread_id=thread_id,
        checkpoint_ns=given.checkpoint_ns,
        checkpoint_id=given.checkpoint_id,
        task_id=given.task_id,
    )
    stored = {row["idx"]: row["fingerprint"] for row in rows}
    if all(stored.get(write.idx) == write.fingerprint() for write in given.writes):
        return Receipt(given.fingerprint())
    return None


def params(
    command: Any,
    given: TaskWrites,
    run_id: str | None,
    epoch: int | None,
) -> tuple[dict[str, Any], Mapping[str, Sequence[Mapping[str, Any]]]]:
    """Return the parameters of the fragments above."""
    each: list[dict[str, Any]] = [
        {"idx": write.idx, "channel": write.channel, "value": write.value, "fingerprint": write.fingerprint()}
        for write in sorted(given.writes, key=lambda write: write.idx)
    ]
    return {
        "space": command.space,
        "thread_id": command.thread_id,
        "checkpoint_ns": given.checkpoint_ns,
        "checkpoint_id": given.checkpoint_id,
        "task_id": given.task_id,
        "task_path": given.task_path,
        "run_id": run_id,
        "epoch": epoch,
        "owner": given.owner,
    }, {
        "regular": [row for row in each if row["idx"] >= 0],
        "special": [row for row in each if row["idx"] < 0],
        "blobs": content.rows(given.blobs),
    }
