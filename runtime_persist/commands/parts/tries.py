"""One try of an operation: the fields of commands about it, the rows they name, and the parameters of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime_persist.commands.parts import events
from runtime_persist.commands.parts.spec import LeaseCommand
from runtime_persist.dialects.sql import bind
from runtime_persist.schema import operation_tries, operations

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

_O, _T = operations.c, operation_tries.c


@dataclass(frozen=True, slots=True, kw_only=True)
class OfTry(LeaseCommand):
    """The fields of a command about one try.

    Attributes:
        operation_id: the operation.
        name: its name, for the event.
        try_no: number of the try, from 1.

    """

    operation_id: str
    name: str
    try_no: int


def is_operation() -> tuple[ColumnElement[bool], ...]:
    """Return what an operation's row is found by."""
    return _O.space == bind(_O.space), _O.operation_id == bind(_O.operation_id)


def is_try() -> tuple[ColumnElement[bool], ...]:
    """Return what a try's row is found by."""
    return _T.space == bind(_T.space), _T.operation_id == bind(_T.operation_id), _T.try_no == bind(_T.try_no)


def params(command: OfTry, event: str, **facts: Any) -> dict[str, Any]:
    """Return the parameters of these rows, of the guard, and of an event with ``facts``."""
    said = {"operation_id": command.operation_id, "name": command.name, "try_no": command.try_no}
    return {
        "space": command.space,
        "run_id": command.run_id,
        "epoch": command.epoch,
        "operation_id": command.operation_id,
        "try_no": command.try_no,
        "actor": command.actor,
        "event_payload": events.packed(event, said | facts),
    }
