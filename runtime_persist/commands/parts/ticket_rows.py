"""Tickets as commands read and write them, always under the lock of their run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from runtime_persist.dialects.sql import bind, constant, excluded, insert, now_us, words
from runtime_persist.errors import BudgetExhausted, RuntimePersistError, TicketsTaken
from runtime_persist.model import budgets
from runtime_persist.model.budgets import INVOCATION_LIMITS, KINDS, LIMITS, Room, Spent, TicketState
from runtime_persist.plan import Call, Plan, Query, Row, one_or_none
from runtime_persist.queries.tickets import SUMS
from runtime_persist.schema import tickets

if TYPE_CHECKING:
    from collections.abc import Mapping

_C = tickets.c

READ_TICKET = Query(
    "read_ticket",
    select(tickets).where(
        _C.space == bind(_C.space), _C.run_id == bind(_C.run_id), _C.operation_id == bind(_C.operation_id)
    ),
)
SAVE_TICKET = Query(
    "save_ticket",
    insert(tickets)
    .values(**{column.name: bind(column) for column in _C})
    .on_conflict_do_update(
        index_elements=[_C.space, _C.run_id, _C.operation_id],
        set_={name: excluded(name) for name in ("state", "epoch", *KINDS, "reserved_us", "settled_us", "invocation")},
    ),
)


READ_INVOCATION = Query(
    "read_invocation",
    select(*SUMS).where(_C.space == bind(_C.space), _C.run_id == bind(_C.run_id), _C.invocation == bind(_C.invocation)),
)
# One ticket for each invocation, and one for what was called in none: what is carried counts as it did.
CARRY_TICKETS = Query(
    "carry_tickets",
    insert(tickets).from_select(
        ["space", "run_id", "operation_id", "state", "epoch", *KINDS, "reserved_us", "settled_us", "invocation"],
        select(
            _C.space,
            words("to_run_id"),
            constant("carried:") + func.min(_C.operation_id),
            constant(TicketState.CONSUMED.value),
            constant(0),
            *(func.sum(_C[kind]) for kind in KINDS),
            now_us(),
            now_us(),
            _C.invocation,
        )
        .where(
            _C.space == bind(_C.space),
            _C.run_id == bind(_C.run_id),
            _C.state == constant(TicketState.CONSUMED.value),
        )
        .group_by(_C.space, _C.invocation),
    ),
)


def ticket_of(space: str, run_id: str, operation_id: str) -> Plan[Row | None]:
    """Read the ticket that a run has for an operation."""
    return (yield from one_or_none(READ_TICKET, space=space, run_id=run_id, operation_id=operation_id))


def refusal(run: Mapping[str, Any], run_id: str, needs: Mapping[str, int]) -> RuntimePersistError | None:
    """Return why a call does not fit into its run's budget (None: it does)."""
    return _refusal(budgets.spent(run), f"run {run_id}", needs, {"run_id": run_id})


def refusal_within(run: Row, invocation: str | None, needs: Mapping[str, int]) -> Plan[RuntimePersistError | None]:
    """Return why a call does not fit into its run's budget, or its invocation's (None: it does).

    What the invocation took is read from its tickets: the run's lock keeps them as they are.
    """
    run_id = run["run_id"]
    spent = refusal(run, run_id, needs)
    if isinstance(spent, BudgetExhausted) or invocation is None or not budgets.limits_invocations(run):
        return spent
    known = {"run_id": run_id, "invocation": invocation}
    row = yield from one_or_none(READ_INVOCATION, space=run["space"], **known)
    within = _refusal(budgets.spent_by(run, row or {}), f"invocation {invocation} of run {run_id}", needs, known)
    return within if isinstance(within, BudgetExhausted) else spent or within


def _refusal(
    of: Mapping[str, Spent], who: str, needs: Mapping[str, int], known: Mapping[str, str]
) -> RuntimePersistError | None:
    found, kind = budgets.room(of, needs)
    if found is Room.FITS or kind is None:
        return None
    spent = of[kind]
    details = {**known, "budget": kind, **spent._asdict()}
    if found is Room.WAIT:
        msg = f"{spent.reserved} {kind} of {who} are reserved, {spent.consumed} consumed of {spent.limit}"
        return TicketsTaken(msg, **details)
    return BudgetExhausted(
        f"{who} has consumed {spent.consumed} of {spent.limit} {kind} and this call needs {needs[kind]}; raise its "
        f"budget (runs.raise_budget) or cancel it",
        **details,
    )


def reserved(
    run: dict[str, Any], operation_id: str, takes: Mapping[str, int], now: int, invocation: str | None
) -> Call:
    """Count a ticket in a run's row, which is changed, and return the statement that stores it."""
    for kind in KINDS:
        run[f"{kind}_reserved"] += takes[kind]
    row = {"space": run["space"], "run_id": run["run_id"], "operation_id": operation_id, "epoch": run["epoch"]}
    row |= {"state": TicketState.RESERVED.value, "reserved_us": now, "settled_us": None, "invocation": invocation}
    return Call(SAVE_TICKET, row | {kind: takes[kind] for kind in KINDS})


def settled(run: dict[str, Any], ticket: Row, takes: Mapping[str, int] | None, now: int) -> Call:
    """Settle a reserved ticket in a run's row, which is changed: consumed with what it took, or (None) released."""
    for kind in KINDS:
        run[f"{kind}_reserved"] -= ticket[kind]
        run[f"{kind}_consumed"] += takes[kind] if takes is not None else 0
    state = TicketState.RELEASED if takes is None else TicketState.CONSUMED
    return Call(SAVE_TICKET, {**ticket, **(takes or {}), "state": state.value, "settled_us": now})


def same_limits(run: dict[str, Any], before: Row) -> None:
    """Give a new run (its row) the limits of the run that it is made of, where it has no higher ones."""
    for column in (*LIMITS, *INVOCATION_LIMITS):
        if before[column] is not None:
            run[column] = max(before[column], run[column] or 0)


def carried(run: dict[str, Any], before: Row) -> Call:
    """Let a new run (its row) go on with the budget of the ended run that it retries; return the statement.

    Its limits, and what was consumed: trying again resets no limit. What that run left reserved is carried by nobody:
    its calls are made again, or not.
    """
    same_limits(run, before)
    for kind in KINDS:
        run[f"{kind}_consumed"] = before[f"{kind}_consumed"]
    return Call(CARRY_TICKETS, {"space": run["space"], "run_id": before["run_id"], "to_run_id": run["run_id"]})
