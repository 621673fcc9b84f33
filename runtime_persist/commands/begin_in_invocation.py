"""begin_in_invocation: begin_with_ticket inside an invocation that has limits of its own.

What an invocation took is what its tickets come to. They are read behind the run's lock, in a statement of their own:
those of one statement with the lock would be as they were before it was waited for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import beginning, run_rows, taking, ticket_rows
from runtime_persist.commands.parts.beginning import Begins
from runtime_persist.commands.parts.spec import ColdCommand, Decision, Locked, RunChange
from runtime_persist.errors import IllegalTransition, InvariantBroken
from runtime_persist.model.guards import LEASE_ACTIVE_OPEN
from runtime_persist.queries import operations as operation_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginInInvocation(Begins):
    """Reserve a ticket of the run and of the invocation, and write the operation and its first try, before the call.

    Attributes:
        takes: what is reserved, by kind.
        needs: what must be left, by kind (0: it is not asked).
        invocation: the call of a graph inside the run that the call is made in.

    Answer: ``{}``. Refused: BudgetExhausted, TicketsTaken (see begin_with_ticket) by the run's limits or the
    invocation's; the operation was begun before (IllegalTransition): look first.
    """

    takes: Mapping[str, int]
    needs: Mapping[str, int]
    invocation: str


def decide(command: BeginInInvocation, locked: Locked) -> Plan[Decision]:
    """Return the operation begun, and its ticket counted."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    if (yield from operation_rows.by_key(command.space, command.key)) is not None:
        msg = f"operation {command.key.name} ({command.key.ordinal}) was begun before"
        raise IllegalTransition(msg, name=command.key.name)
    spent = yield from ticket_rows.refusal_within(before, command.invocation, command.needs)
    if spent is not None:
        raise spent
    run = taking.taken(before, None, locked.now_us)
    save = ticket_rows.reserved(run.run, command.operation_id, command.takes, locked.now_us, command.invocation)
    run.tell("operation.started", operation_id=command.operation_id, name=command.key.name, try_no=1)
    return Decision(
        {},
        runs=[RunChange(before, run.run, run.events)],
        effects=[*beginning.rows(command, before["attempt_id"]), save],
    )


SPEC = ColdCommand(
    name="begin_in_invocation",
    dto=BeginInInvocation,
    guard=LEASE_ACTIVE_OPEN,
    decide=decide,
    statements=(
        operation_rows.READ_BY_KEY,
        ticket_rows.READ_INVOCATION,
        run_rows.SAVE_RUN,
        beginning.INSERT_OPERATION,
        beginning.INSERT_TRY,
        ticket_rows.SAVE_TICKET,
    ),
)
