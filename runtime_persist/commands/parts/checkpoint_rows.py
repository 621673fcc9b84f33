"""The checkpoint row, its content and the head, as fragments behind a fence (leased and unleased puts share them)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Executable, select

from runtime_persist.commands.parts import content
from runtime_persist.commands.parts.spec import Receipt
from runtime_persist.dialects.sql import bind, constant, excluded, insert, now_us
from runtime_persist.plan import Fragment, Inputs, Plan, Query, one_or_none
from runtime_persist.schema import checkpoints, heads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime_persist.model.payload import Blob

_COLUMNS = [
    "space",
    "thread_id",
    "checkpoint_ns",
    "checkpoint_id",
    "parent_id",
    "run_id",
    "epoch",
    "body",
    "metadata",
    "fingerprint",
    "run_ref",
]
_FLAGS = ["hidden", "orphan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRow:
    """A checkpoint as it is stored.

    Attributes:
        checkpoint_ns: namespace ("" is the root graph).
        checkpoint_id: its id.
        parent_id: the checkpoint it came from.
        body: the checkpoint without its values, and the manifest.
        metadata: serialized metadata.
        fingerprint: of all that.
        owner: owner of the content.
        blobs: content the manifest refers to that may not be stored yet.
        run_ref: the metadata's run_id.

    """

    checkpoint_ns: str
    checkpoint_id: str
    parent_id: str | None
    body: bytes
    metadata: bytes
    fingerprint: bytes
    owner: str
    blobs: Sequence[Blob] = ()
    run_ref: str | None = None

    @property
    def named_id(self) -> str:
        """Return the smaller one of the checkpoint's id and its parent's."""
        return min(self.checkpoint_id, self.parent_id or self.checkpoint_id)


def receipt(source: str) -> Fragment:
    """Return the fragment ``checkpoint``: the row, which is the command's receipt."""

    def build(inputs: Inputs) -> Executable:
        values = inputs.select(*(bind(checkpoints.c[name]) for name in _COLUMNS), constant(0), constant(0), now_us())
        return insert(checkpoints).from_select([*_COLUMNS, *_FLAGS, "created_us"], values).on_conflict_do_nothing()

    return Fragment("checkpoint", build, source=source)


def _head(inputs: Inputs) -> Executable:
    values = inputs.select(
        bind(heads.c.space),
        bind(heads.c.thread_id),
        bind(heads.c.checkpoint_ns),
        bind(heads.c.checkpoint_id),
    ).where(inputs.count("blobs") >= constant(0))
    return (
        insert(heads)
        .from_select(["space", "thread_id", "checkpoint_ns", "checkpoint_id"], values)
        .on_conflict_do_update(
            index_elements=[heads.c.space, heads.c.thread_id, heads.c.checkpoint_ns],
            set_={"checkpoint_id": excluded("checkpoint_id")},
        )
    )


BLOBS = content.fragment("checkpoint")
MOVE_HEAD = Fragment("head_moved", _head, source="checkpoint")

READ_FINGERPRINT = Query(
    "read_checkpoint_fingerprint",
    select(checkpoints.c.fingerprint).where(
        *(
            checkpoints.c[name] == bind(checkpoints.c[name])
            for name in ("space", "thread_id", "checkpoint_ns", "checkpoint_id")
        ),
    ),
)


def lookup(space: str, thread_id: str, row: CheckpointRow) -> Plan[Receipt | None]:
    """Look the row up as a receipt, in a statement of its own."""
    found = yield from one_or_none(
        READ_FINGERPRINT,
        space=space,
        thread_id=thread_id,
        checkpoint_ns=row.checkpoint_ns,
        checkpoint_id=row.checkpoint_id,
    )
    return None if found is None else Receipt(found["fingerprint"])


def params(
    command: Any,
    row: CheckpointRow,
    run_id: str | None,
    epoch: int | None,
) -> tuple[dict[str, Any], Mapping[str, Sequence[Mapping[str, Any]]]]:
    """Return the parameters of the fragments above."""
    return {
        "space": command.space,
        "thread_id": command.thread_id,
        "checkpoint_ns": row.checkpoint_ns,
        "checkpoint_id": row.checkpoint_id,
        "parent_id": row.parent_id,
        "run_id": run_id,
        "epoch": epoch,
        "body": row.body,
        "metadata": row.metadata,
        "fingerprint": row.fingerprint,
        "owner": row.owner,
        "run_ref": row.run_ref,
    }, {"blobs": content.rows(row.blobs)}
