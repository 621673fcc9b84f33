"""Events: appended in the transaction that made them true, numbered by the run's row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ormsgpack
from sqlalchemy import Executable, update

from runtime_persist.commands.parts import positions
from runtime_persist.dialects.sql import bind, constant, insert, now_us
from runtime_persist.model import limits
from runtime_persist.model.event_types import check_event
from runtime_persist.plan import Bundle, BundleCall, Fragment, Inputs, Plan, Row
from runtime_persist.schema import events, runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import ColumnElement

    from runtime_persist.commands.parts.spec import Command, Event


def packed(kind: str, payload: Mapping[str, Any]) -> bytes | None:
    """Return the payload of an event of type ``kind`` as msgpack, left out when it is over the limit.

    Raises:
        InvariantBroken: there is no such event, or it may not say that (see ``model/event_types.py``).

    """
    check_event(kind, payload)
    if not payload:
        return None
    data = ormsgpack.packb(dict(payload))
    if len(data) <= limits.EVENT_PAYLOAD_BYTES_MAX:
        return data
    return ormsgpack.packb({"left_out_bytes": len(data)})


_ROW = {name: events.c[name].type for name in ("run_id", "seq", "type", "attempt_id", "epoch", "payload")}


def _append(inputs: Inputs) -> Executable:
    values = inputs.select(
        bind(events.c.space),
        *(inputs.row(name) for name in _ROW),
        bind(events.c.actor),
        bind(events.c.created_us),
        positions.of_run(inputs.row("run_id")),
    )
    return insert(events).from_select(["space", *_ROW, "actor", "created_us", "position"], values)


APPEND_EVENTS = Bundle("append_events", (Fragment("append_events", _append, rows=_ROW),))
"""All events of a cold command, behind the rows of their runs: one exchange, however many they are."""


def append(command: Command, found: Sequence[tuple[Row, Sequence[Event]]], now: int) -> Plan[None]:
    """Append events of runs; each saved run row has already counted its own."""
    rows = [
        {
            "run_id": run["run_id"],
            "seq": run["event_seq"] - len(told) + number,
            "type": event.type,
            "attempt_id": event.attempt_id,
            "epoch": run["epoch"],
            "payload": packed(event.type, event.payload),
        }
        for run, told in found
        for number, event in enumerate(told, 1)
    ]
    if rows:
        params = {"space": command.space, "actor": command.actor, "created_us": now}
        yield BundleCall(APPEND_EVENTS, params, {"append_events": rows})


def hot(after: str, kind: str, also: Mapping[str, ColumnElement[Any]] | None = None) -> tuple[Fragment, Fragment]:
    """Return the two fragments that append one event of type ``kind`` behind fragment ``after``.

    ``also``: columns of the run that change with it (one statement cannot change a row twice).

    Parameters used: ``space, run_id, epoch, actor, event_payload`` and the run's ``attempt_id`` from the guard.
    """

    def number(inputs: Inputs) -> Executable:
        # The row is locked by the guard, and an UPDATE reads its newest version, not the statement's snapshot.
        return (
            update(runs)
            .values(
                event_seq=runs.c.event_seq + constant(1),
                event_position=positions.following(),
                updated_us=now_us(),
                **(also or {}),
            )
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
            inputs.value("number", "event_position"),
        )
        names = [
            "space", "run_id", "seq", "type", "actor", "attempt_id", "epoch", "payload", "created_us", "position",
        ]  # fmt: skip
        return insert(events).from_select(names, values)

    return (
        Fragment("number", number, source=after, returns=("event_seq", "event_position")),
        Fragment("event", fact, source="number", tells=kind),
    )


__all__ = ["APPEND_EVENTS", "append", "hot", "packed"]
