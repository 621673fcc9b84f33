"""What a call takes of its run's budget: reserved before it is made, settled with what it came to. Flows."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from runtime_persist.commands.begin_in_invocation import BeginInInvocation
from runtime_persist.commands.begin_operation import BeginOperation
from runtime_persist.commands.begin_with_ticket import BeginWithTicket
from runtime_persist.commands.parts import ticket_rows
from runtime_persist.commands.reserve_ticket import ReserveTicket
from runtime_persist.commands.settle_ticket import SettleTicket
from runtime_persist.coordinator import CommitReceipt
from runtime_persist.engine.notifications import of_run
from runtime_persist.errors import BudgetExhausted, CommandMismatch, RunStopping, RuntimePersistError, TicketsTaken
from runtime_persist.journal.leases import leased
from runtime_persist.model.budgets import Ticket, TicketKind, TicketState
from runtime_persist.model.ids import new_id
from runtime_persist.queries import operations as operation_queries

if TYPE_CHECKING:
    from runtime_persist.commands.parts.spec import Command
    from runtime_persist.engine import Flow, OwnedRun

_LONGEST_LOOK_SECONDS = 0.5
_PARTS = tuple(part.name for part in fields(BeginOperation))


def of(owned: OwnedRun, asked: Ticket | TicketKind | None) -> Ticket | None:
    """Return the ticket that a call needs (None: the run has no budget, or the call takes nothing of it)."""
    if asked is None or not owned.budgeted:
        return None
    return Ticket(asked) if isinstance(asked, str) else asked


def begin(owned: OwnedRun, command: BeginOperation, ticket: Ticket) -> Flow[CommitReceipt]:
    """Begin an operation with its ticket in one commit, once there is room (raises BudgetExhausted)."""
    said: dict[str, Any] = {name: getattr(command, name) for name in _PARTS}
    said |= {"takes": ticket.takes(), "needs": ticket.needs(), "invocation": invocation_of(command.key.checkpoint_ns)}
    if said["invocation"] is None or not owned.limits_invocations:
        return (yield from _once_there_is_room(owned, BeginWithTicket(**said)))
    known = yield owned.coordinator.read(
        "read_operation_by_key", lambda: operation_queries.by_key(command.space, command.key)
    )
    if known is None:
        return (yield from _once_there_is_room(owned, BeginInInvocation(**said)))
    if known["request_fingerprint"] != command.request_fingerprint:
        msg = f"operation {command.key.name} was begun with other arguments"
        raise CommandMismatch(msg, stored=operation_queries.shown(known))
    return CommitReceipt(command.command_id, "begin_operation", operation_queries.shown(known), replayed=True)


def invocation_of(checkpoint_ns: str) -> str | None:
    """Return the call of a graph inside the run that a task's namespace is in (None: the run's own graph)."""
    return checkpoint_ns.rpartition("|")[0] or None


def reserve(owned: OwnedRun, operation_id: str, ticket: Ticket, checkpoint_ns: str) -> Flow[None]:
    """Reserve a ticket for a further try, unless the run has one for its operation (raises BudgetExhausted)."""
    command = ReserveTicket(
        command_id=new_id(),
        operation_id=operation_id,
        takes=ticket.takes(),
        needs=ticket.needs(),
        invocation=invocation_of(checkpoint_ns),
        **leased(owned),
    )
    yield from _once_there_is_room(owned, command)


def consume(owned: OwnedRun, operation_id: str, ticket: Ticket, value: Any) -> Flow[None]:
    """Consume a ticket with what the call took. Of a ticket that is settled, nothing changes."""
    yield from _settle(owned, operation_id, ticket.took(value))


def settle_again(owned: OwnedRun, operation_id: str, took: dict[str, int]) -> Flow[None]:
    """Consume the ticket of a call whose outcome was found, if it is still reserved, as the recovery table says."""
    lease = owned.lease
    found = yield owned.coordinator.read(
        "read_ticket", lambda: ticket_rows.ticket_of(lease.space, lease.run_id, operation_id)
    )
    if found is not None and found["state"] == TicketState.RESERVED:
        yield from _settle(owned, operation_id, took)


def consume_reserved(owned: OwnedRun, operation_id: str, ticket: Ticket) -> Flow[None]:
    """Consume a ticket of a call that failed: what it took is not known, so what was reserved counts."""
    yield from _settle(owned, operation_id, ticket.takes())


def release(owned: OwnedRun, operation_id: str) -> Flow[None]:
    """Give a ticket back: the call is made again from the beginning."""
    yield from _settle(owned, operation_id, None)


def _settle(owned: OwnedRun, operation_id: str, took: dict[str, int] | None) -> Flow[None]:
    command = SettleTicket(command_id=new_id(), operation_id=operation_id, took=took, **leased(owned))
    try:
        yield owned.coordinator.commit(command)
    except RuntimePersistError as error:
        raise owned.fail(error) from error


def _once_there_is_room(owned: OwnedRun, command: Command) -> Flow[CommitReceipt]:
    """Commit a command; while all that is left is reserved, wait until a ticket is settled and try again.

    Raises:
        BudgetExhausted: what is consumed leaves no room; or the call that holds the rest waits for a person.
        RunStopping: the run is being stopped.

    """
    with owned.notifications.watch(of_run(owned.lease.run_id)) as watch:
        while True:
            try:
                receipt: CommitReceipt = yield owned.coordinator.commit(command)
            except TicketsTaken as taken:
                owned.check()
                if owned.stop_reason is not None:
                    msg = f"run {owned.lease.run_id} is being stopped ({owned.stop_reason})"
                    raise RunStopping(msg, run_id=owned.lease.run_id) from taken
                if owned.asks:  # who holds it does not come back in this attempt
                    raise BudgetExhausted(f"{taken.message}; the run asks a person first", **taken.details) from taken
            else:
                return receipt
            yield watch.next(_LONGEST_LOOK_SECONDS)
