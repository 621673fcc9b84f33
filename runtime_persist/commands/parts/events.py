"""Events: appended in the transaction that made them true, numbered by the run's row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ormsgpack
from sqlalchemy import Executable, update

from runtime_persist.dialects.sql import bind, constant, insert, now_us
from runtime_persist.model import limits
from runtime_persist.plan import Call, Fragment, Inputs, Query, Row
from runtime_persist.schema import events, runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime_persist.commands.parts.spec import Command, Event


def packed(payload: Mapping[str, Any]) -> bytes | None:
    """Return an event's payload as msgpack, left out when it is over the limit (events carry facts)."""
    if not payload:
        return None
    data = ormsgpack.packb(dict(payload))
    if len(data) <= limits.EVENT_PAYLOAD_BYTES_MAX:
        return data
    return ormsgpack.packb({"left_out_bytes": len(data)})


APPEND_EVENT = Query(
    "append_event",
    insert(events).values(
        space=bind(events.c.space),
        run_id=bind(events.c.run_id),
        seq=bind(events.c.seq),
        type=bind(events.c.type),
        actor=bind(events.c.actor),
        attempt_id=bind(events.c.attempt_id),
        epoch=bind(events.c.epoch),
        payload=bind(events.c.payload),
        created_us=bind(events.c.created_us),
    ),
)


def append(command: Command, run: Row, found: Sequence[Event], now: int) -> list[Call]:
    """Return the statements that append events; the saved run row has already counted them."""
    first = run["event_seq"] - len(found) + 1
    return [
        Call(
            APPEND_EVENT,
            {
                "space": command.space,
                "run_id": run["run_id"],
                "seq": first + position,
                "type": event.type,
                "actor": command.actor,
                "attempt_id": event.attempt_id,
                "epoch": run["epoch"],
                "payload": packed(event.payload),
                "created_us": now,
            },
        )
        for position, event in enumerate(found)
    ]


def hot(after: str, kind: str) -> tuple[Fragment, Fragment]:
    """Return the two fragments that append one event of type ``kind`` behind fragment ``after``.

    Parameters used: ``space, run_id, epoch, actor, event_payload`` and the run's ``attempt_id`` from the guard.
    """

    def number(inputs: Inputs) -> Executable:
        # The row is locked by the guard, and an UPDATE reads its newest version, not the statement's snapshot.
        return (
            update(runs)
            .values(event_seq=runs.c.event_seq + constant(1), updated_us=now_us())
            .where(runs.c.space == bind(runs.c.space), runs.c.run_id == bind(runs.c.run_id), inputs.gate())
        )

    def fact(inputs: Inputs) -> Executable:
        values = inputs.select(
            bind(events.c.space),
            bind(events.c.run_id),
            inputs.value("number", "event_seq"),
            constant(kind),
            bind(events.c.actor),
            inputs.value("run", "attempt_id"),
            bind(events.c.epoch),
            bind(events.c.payload, "event_payload"),
            now_us(),
        )
        names = ["space", "run_id", "seq", "type", "actor", "attempt_id", "epoch", "payload", "created_us"]
        return insert(events).from_select(names, values)

    return (
        Fragment("number", number, source=after, returns=("event_seq",)),
        Fragment("event", fact, source="number"),
    )


__all__ = ["APPEND_EVENT", "append", "hot", "packed"]
