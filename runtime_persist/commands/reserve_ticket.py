"""reserve_ticket: a further try of an operation takes from the budget of its run, unless that has a ticket for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import run_rows, taking, ticket_rows
from runtime_persist.commands.parts.spec import ColdCommand, Decision, LeaseCommand, Locked, RunChange
from runtime_persist.errors import InvariantBroken
from runtime_persist.model.budgets import TicketState
from runtime_persist.model.guards import LEASE_ACTIVE_OPEN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveTicket(LeaseCommand):
    """Reserve a ticket for an operation that exists; one that is reserved or consumed stays as it is.

    Answer: ``state``. Refused: BudgetExhausted, TicketsTaken (see begin_with_ticket).
    """

    operation_id: str
    takes: Mapping[str, int]
    needs: Mapping[str, int]
    invocation: str | None = None


def decide(command: ReserveTicket, locked: Locked) -> Plan[Decision]:
    """Return the ticket counted."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    found = yield from ticket_rows.ticket_of(command.space, command.run_id, command.operation_id)
    if found is not None and found["state"] != TicketState.RELEASED:
        return Decision({"state": found["state"]})
    spent = yield from ticket_rows.refusal_within(before, command.invocation, command.needs)
    if spent is not None:
        raise spent
    run = taking.taken(before, None, locked.now_us)
    save = ticket_rows.reserved(run.run, command.operation_id, command.takes, locked.now_us, command.invocation)
    run.tell("ticket.reserved", operation_id=command.operation_id, **command.takes)
    return Decision(
        {"state": TicketState.RESERVED.value}, runs=[RunChange(before, run.run, run.events)], effects=[save]
    )


SPEC = ColdCommand(
    name="reserve_ticket",
    dto=ReserveTicket,
    guard=LEASE_ACTIVE_OPEN,
    decide=decide,
    statements=(ticket_rows.READ_TICKET, ticket_rows.READ_INVOCATION, run_rows.SAVE_RUN, ticket_rows.SAVE_TICKET),
)
