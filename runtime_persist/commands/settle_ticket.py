"""settle_ticket: a reserved ticket is consumed with what its call took, or released. Accepted while the run stops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import run_rows, taking, ticket_rows
from runtime_persist.commands.parts.spec import ColdCommand, Decision, LeaseCommand, Locked, RunChange
from runtime_persist.errors import IllegalTransition, InvariantBroken
from runtime_persist.model.budgets import TicketState
from runtime_persist.model.guards import LEASE_ACTIVE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleTicket(LeaseCommand):
    """Consume a ticket (``took``: by kind) or release it (None). One that is settled stays as it is.

    Answer: ``state``. Refused: the run has no ticket for the operation (IllegalTransition).
    """

    operation_id: str
    took: Mapping[str, int] | None


_TELLS = {TicketState.CONSUMED.value: "ticket.consumed", TicketState.RELEASED.value: "ticket.released"}


def decide(command: SettleTicket, locked: Locked) -> Plan[Decision]:
    """Return the ticket settled, and the counters moved with it."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    found = yield from ticket_rows.ticket_of(command.space, command.run_id, command.operation_id)
    if found is None:
        msg = f"run {command.run_id} has no ticket for operation {command.operation_id}"
        raise IllegalTransition(msg, run_id=command.run_id, operation_id=command.operation_id)
    if found["state"] != TicketState.RESERVED:
        return Decision({"state": found["state"]})
    run = taking.taken(before, None, locked.now_us)
    save = ticket_rows.settled(run.run, found, command.took, locked.now_us)
    state = str(save.params["state"])
    run.tell(_TELLS[state], operation_id=command.operation_id, **(command.took or {}))
    return Decision({"state": state}, runs=[RunChange(before, run.run, run.events)], effects=[save])


SPEC = ColdCommand(
    name="settle_ticket",
    dto=SettleTicket,
    guard=LEASE_ACTIVE,
    decide=decide,
    statements=(ticket_rows.READ_TICKET, run_rows.SAVE_RUN, ticket_rows.SAVE_TICKET),
)
