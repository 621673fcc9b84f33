"""put_thread_checkpoint: somebody without a lease stores a checkpoint (level L0). Hot: one bundle.

The head is compared and set. It is locked and tested before the receipt, and moved after it; a head that does not
exist yet is inserted before the receipt, because one statement cannot change a row twice (it could not lock it by
``INSERT … DO UPDATE`` and then move it).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Executable, and_, or_, select, update

from runtime_persist.commands.parts import checkpoint_rows
from runtime_persist.commands.parts.guards import FENCE, Raced
from runtime_persist.commands.parts.spec import HotCommand, ThreadCommand
from runtime_persist.dialects.sql import bind, constant, insert, number, words
from runtime_persist.errors import CheckpointConflict, RuntimePersistError, StaleWriter
from runtime_persist.model.guards import THREAD
from runtime_persist.plan import Fragment, Inputs, Outcome
from runtime_persist.schema import heads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime_persist.commands.parts.checkpoint_rows import CheckpointRow


@dataclass(frozen=True, slots=True, kw_only=True)
class PutThreadCheckpoint(ThreadCommand):
    """Store ``row`` and make it the head of its namespace.

    Attributes:
        row: the checkpoint.
        expects_head: whether the head must still be ``expected_head`` (not for forks and direct writes).
        expected_head: the head that was loaded; None: there was none.

    Refused: a live run owns the thread (ThreadOwned); the head moved (StaleWriter); another checkpoint has this id
    (CheckpointConflict: the saver then replaces it, as the stock savers do).

    """

    row: CheckpointRow
    expects_head: bool = False
    expected_head: str | None = None

    @property
    def named_id(self) -> str:
        """Return the smallest checkpoint id this names."""
        return self.row.named_id


def _lock_head(inputs: Inputs) -> Executable:
    return (
        select(heads.c.checkpoint_id)
        .where(
            heads.c.space == bind(heads.c.space),
            heads.c.thread_id == bind(heads.c.thread_id),
            heads.c.checkpoint_ns == bind(heads.c.checkpoint_ns),
            inputs.gate(),
        )
        .with_for_update()
    )


def _new_head(inputs: Inputs) -> Executable:
    wanted = or_(number("expects_head") == constant(0), words("expected_head").is_(None))
    values = inputs.select(
        bind(heads.c.space),
        bind(heads.c.thread_id),
        bind(heads.c.checkpoint_ns),
        bind(heads.c.checkpoint_id),
    ).where(inputs.count("head") == constant(0), wanted)
    return (
        insert(heads)
        .from_select(["space", "thread_id", "checkpoint_ns", "checkpoint_id"], values)
        .on_conflict_do_nothing()
    )


def _accept(inputs: Inputs) -> Executable:
    as_expected = and_(
        inputs.count("head") == constant(1),
        or_(
            number("expects_head") == constant(0),
            inputs.value("head", "checkpoint_id") == words("expected_head"),
        ),
    )
    made = inputs.count("new_head") == constant(1)
    return inputs.select(constant(1).label("one")).where(or_(as_expected, made))


def _move_head(inputs: Inputs) -> Executable:
    return (
        update(heads)
        .values(checkpoint_id=bind(heads.c.checkpoint_id))
        .where(
            heads.c.space == bind(heads.c.space),
            heads.c.thread_id == bind(heads.c.thread_id),
            heads.c.checkpoint_ns == bind(heads.c.checkpoint_ns),
            inputs.gate(),
            inputs.count("blobs") >= constant(0),
            inputs.count("head") == constant(1),
        )
    )


def _params(
    command: PutThreadCheckpoint,
) -> tuple[Mapping[str, Any], Mapping[str, Sequence[Mapping[str, Any]]]]:
    params, rows = checkpoint_rows.params(command, command.row, None, None)
    params |= {
        "thread_hash": command.thread_hash,
        "expects_head": int(command.expects_head),
        "expected_head": command.expected_head,
        "named_id": command.named_id,
    }
    return params, rows


def _conflict(command: PutThreadCheckpoint) -> CheckpointConflict:
    return CheckpointConflict(
        f"checkpoint {command.row.checkpoint_id} of thread {command.thread_id!r} is stored with other content",
        checkpoint_id=command.row.checkpoint_id,
    )


def _refuse(command: PutThreadCheckpoint, outcome: Outcome) -> RuntimePersistError:
    if outcome.counts["accept"]:
        return _conflict(command)
    head = outcome.values.get("head")
    may_be_new = not command.expects_head or command.expected_head is None
    if head is None and may_be_new:
        raise Raced  # a head younger than the statement's snapshot
    current = head["checkpoint_id"] if head else None
    return StaleWriter(
        f"thread {command.thread_id!r} was moved on by another writer: this one loaded "
        f"{command.expected_head}, the head is {current}; load the thread again and repeat the call",
        thread_id=command.thread_id,
        loaded=command.expected_head,
        head=current,
    )


SPEC = HotCommand(
    name="put_thread_checkpoint",
    dto=PutThreadCheckpoint,
    guard=THREAD,
    expectations=(
        Fragment("head", _lock_head, source=FENCE, returns=("checkpoint_id",)),
        Fragment("new_head", _new_head, source=FENCE, unless="head"),
        Fragment("accept", _accept, source=FENCE),
    ),
    receipt=checkpoint_rows.receipt("accept"),
    effects=(checkpoint_rows.BLOBS, Fragment("head_moved", _move_head, source="checkpoint")),
    params=_params,
    lookup=lambda command: checkpoint_rows.lookup(command.space, command.thread_id, command.row),
    fingerprint=lambda command: command.row.fingerprint,
    refuse=_refuse,
    conflict=_conflict,
)
