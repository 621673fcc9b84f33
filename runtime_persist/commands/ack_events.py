"""ack_events: a consumer of the outbox has handled all up to a place. Hot: one bundle. Cursors only go forward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Executable, and_

from runtime_persist.commands.parts.guards import FENCE
from runtime_persist.commands.parts.spec import Command, HotCommand, Receipt
from runtime_persist.dialects.sql import bind, excluded, insert, now_us, number, words
from runtime_persist.errors import ConsumerMoved, InvalidInput
from runtime_persist.model.guards import CONTROL
from runtime_persist.model.keys import fingerprint
from runtime_persist.plan import Fragment, Inputs, Outcome, Plan, one_or_none
from runtime_persist.queries import events as event_queries
from runtime_persist.schema import cursors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime_persist.queries.events import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class AckEvents(Command):
    """Move a consumer's cursor from one place to a later one.

    Attributes:
        consumer: its name.
        expected: where the cursor stands, as far as the sender knows (the beginning: it has none yet).
        reached: the last event that was handled.

    Refused: ``reached`` is not behind ``expected`` (InvalidInput); the cursor stands elsewhere, because another
    process consumes under the same name (ConsumerMoved). Sent again it answers its receipt, which is the row itself.

    """

    consumer: str
    expected: Place
    reached: Place

    def __post_init__(self) -> None:
        """Refuse what would go back."""
        if self.reached <= self.expected:
            msg = f"consumer {self.consumer!r} cannot go from {self.expected} back to {self.reached}"
            raise InvalidInput(msg, consumer=self.consumer)


_NAMES = ["space", "consumer", "position", "run_id", "seq", "acked_us", "command_id"]


def _cursor(inputs: Inputs) -> Executable:
    values = inputs.select(*(now_us() if name == "acked_us" else bind(cursors.c[name]) for name in _NAMES))
    return (
        insert(cursors)
        .from_select(_NAMES, values)
        .on_conflict_do_update(
            index_elements=[cursors.c.space, cursors.c.consumer],
            set_={name: excluded(name) for name in ("position", "run_id", "seq", "acked_us", "command_id")},
            where=and_(
                cursors.c.position == number("expected_position"),
                cursors.c.run_id == words("expected_run_id"),
                cursors.c.seq == number("expected_seq"),
            ),
        )
    )


def _params(command: AckEvents) -> tuple[Mapping[str, Any], Mapping[str, Sequence[Mapping[str, Any]]]]:
    return {
        "space": command.space,
        "consumer": command.consumer,
        "position": command.reached.position,
        "run_id": command.reached.run_id,
        "seq": command.reached.seq,
        "command_id": command.command_id,
        "expected_position": command.expected.position,
        "expected_run_id": command.expected.run_id,
        "expected_seq": command.expected.seq,
    }, {}


def _said(command_id: str, place: Place) -> bytes:
    return fingerprint(command_id.encode(), repr(place).encode())


def _lookup(command: AckEvents) -> Plan[Receipt | None]:
    row = yield from one_or_none(event_queries.READ_CURSOR, space=command.space, consumer=command.consumer)
    return None if row is None else Receipt(_said(row["command_id"], event_queries.Place.of(row)))


def _moved(command: AckEvents, _: Outcome | None = None) -> ConsumerMoved:
    msg = (
        f"another process consumes events as {command.consumer!r}: it has moved the cursor on from {command.expected}; "
        "consume under a name of your own, or from one process at a time"
    )
    return ConsumerMoved(msg, consumer=command.consumer)


SPEC = HotCommand(
    name="ack_events",
    dto=AckEvents,
    guard=CONTROL,
    receipt=Fragment("cursor", _cursor, source=FENCE),
    params=_params,
    lookup=_lookup,
    fingerprint=lambda command: _said(command.command_id, command.reached),
    refuse=_moved,
    conflict=_moved,
)
