"""begin_with_ticket: begin_operation of a call that takes from its run's budget. Hot: one bundle.

The ticket, the run's counters and the operation with its first try are one commit. The counters stand in the run's row,
which the guard locks: so the room that is left is that of the newest row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Executable, and_, or_

from runtime_persist.commands.parts import beginning, events, ticket_rows
from runtime_persist.commands.parts.beginning import Begins
from runtime_persist.commands.parts.guards import FENCE
from runtime_persist.commands.parts.spec import HotCommand
from runtime_persist.dialects.sql import bind, constant, insert, now_us, number
from runtime_persist.model.budgets import COLUMNS, KINDS, TicketState
from runtime_persist.model.guards import LEASE_ACTIVE_OPEN
from runtime_persist.plan import Fragment, Inputs, Outcome
from runtime_persist.schema import runs, tickets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime_persist.errors import RuntimePersistError


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginWithTicket(Begins):
    """Reserve a ticket, and write the operation and its first try, before the call.

    An operation that was begun before is answered as by begin_operation, whatever is left: nothing is reserved.

    Attributes:
        takes: what is reserved, by kind.
        needs: what must be left, by kind (0: it is not asked).
        invocation: what it is made in (None: a node of the run's own graph), when that has no limits.

    Refused: as begin_operation; what is consumed leaves no room (BudgetExhausted); what is reserved beside it leaves
    none (TicketsTaken): wait for a settlement.
    """

    takes: Mapping[str, int]
    needs: Mapping[str, int]
    invocation: str | None = None


def _fits(inputs: Inputs) -> Executable:
    def of(kind: str, part: str) -> Any:
        return inputs.value("run", f"{kind}_{part}")

    fits = (
        or_(
            of(kind, "limit").is_(None),
            number(f"needs_{kind}") == constant(0),
            of(kind, "reserved") + of(kind, "consumed") + number(f"needs_{kind}") <= of(kind, "limit"),
        )
        for kind in KINDS
    )
    return inputs.select(constant(1).label("one")).where(and_(*fits))


def _ticket(inputs: Inputs) -> Executable:
    names = ["space", "run_id", "operation_id", "state", "epoch", *KINDS, "reserved_us", "invocation"]
    values = inputs.select(
        bind(tickets.c.space),
        bind(tickets.c.run_id),
        bind(tickets.c.operation_id),
        constant(TicketState.RESERVED.value),
        bind(tickets.c.epoch),
        *(number(f"takes_{kind}") for kind in KINDS),
        now_us(),
        bind(tickets.c.invocation),
    )
    return insert(tickets).from_select(names, values)


def _params(command: BeginWithTicket) -> tuple[Mapping[str, Any], Mapping[str, Sequence[Mapping[str, Any]]]]:
    params, rows = beginning.params(command)
    amounts = {f"takes_{kind}": command.takes[kind] for kind in KINDS}
    needs = {f"needs_{kind}": command.needs[kind] for kind in KINDS}
    return {**params, **amounts, **needs, "invocation": command.invocation}, rows


def _refuse(command: BeginWithTicket, outcome: Outcome) -> RuntimePersistError:
    spent = ticket_rows.refusal(outcome.values["run"], command.run_id, command.needs)
    return spent or beginning.refuse(command, outcome)


SPEC = HotCommand(
    name="begin_with_ticket",
    dto=BeginWithTicket,
    guard=LEASE_ACTIVE_OPEN,
    run_columns=COLUMNS,
    expectations=(Fragment("fits", _fits, source=FENCE),),
    receipt=Fragment("operation", beginning.operation, source="fits"),
    effects=(
        Fragment("ticket", _ticket, source="operation"),
        Fragment("try", beginning.first_try, source="ticket"),
        *events.hot(
            "operation",
            "operation.started",
            {f"{kind}_reserved": runs.c[f"{kind}_reserved"] + number(f"takes_{kind}") for kind in KINDS},
        ),
    ),
    params=_params,
    lookup=beginning.lookup,
    fingerprint=lambda command: command.request_fingerprint,
    refuse=_refuse,
)
