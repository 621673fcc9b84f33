"""A run's budget in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from runtime_persist.inspector.layout import ByWidth, stacked
from runtime_persist.inspector.render import moment, status, table
from runtime_persist.model.budgets import KINDS, money

if TYPE_CHECKING:
    from runtime_persist.inspector.tickets import Ledger, Level, TicketRow

_WIDE_COLUMNS = 140


def ledger(found: Ledger) -> RenderableType:
    """Return how much of each limit is taken, and the tickets."""
    levels = Group(*(_level(one) for one in found.levels)) if found.levels else Text("no limits", style="dim")
    made = table("tickets", "operation", "call", "state", "takes", "reserved", "settled", "invocation")
    for one in found.tickets:
        times = moment(one.reserved_us), moment(one.settled_us)
        made.add_row(one.operation_id, one.name or "", status(one.state), _takes(one), *times, one.invocation or "")
    narrow = stacked("tickets", [_stacked(one) for one in found.tickets])
    return Group(levels, Text(""), ByWidth(made, narrow, _WIDE_COLUMNS))


def _level(one: Level) -> Text:
    whose = "the run" if one.invocation is None else one.invocation
    limit, reserved, consumed = (_amount(one.kind, amount) for amount in (one.limit, one.reserved, one.consumed))
    left = _amount(one.kind, max(0, one.limit - one.reserved - one.consumed))
    return Text(f"{whose}: {consumed} of {limit} {one.kind} consumed, {reserved} reserved, {left} left")


def _stacked(one: TicketRow) -> tuple[Text, str]:
    head = Text(f"{one.operation_id}  ").append_text(status(one.state)).append(f"  {one.name or ''}  {_takes(one)}")
    return head, f"{moment(one.reserved_us)} – {moment(one.settled_us)}  {one.invocation or ''}".rstrip()


def _takes(one: TicketRow) -> str:
    taken = ((kind, getattr(one, kind)) for kind in KINDS)
    return ", ".join(f"{_amount(kind, amount)} {kind.removesuffix('_micros')}" for kind, amount in taken if amount)


def _amount(kind: str, amount: int) -> str:
    return str(money(amount)) if kind == "cost_micros" else str(amount)
