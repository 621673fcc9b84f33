from decimal import Decimal

import pytest

from runtime_persist.errors import BudgetExhausted, CommandMismatch, TicketsTaken
from runtime_persist.model.budgets import Budget, Ticket
from tests.fixtures.contracts import Leased, changed


class TestGuard(Leased):
    open_only = True

    def send(self, world, held):
        return world.begin_with_ticket(held)


def test_ticket_counters_operation_and_try_are_one_commit(world):
    held = world.owned(budget=Budget(loops=2))
    command = world.begin_with_ticket(held)
    assert world.commit(command).result == {}
    assert world.spent(held.run_id) == (2, 1, 0)
    ticket = world.raw.one("SELECT * FROM rp_tickets")
    assert (ticket["operation_id"], ticket["state"], ticket["epoch"]) == (command.operation_id, "reserved", held.epoch)
    assert world.tries(command.operation_id) == ["started"]
    assert world.events(held.run_id)[-1] == "operation.started"


def test_while_the_rest_is_reserved_it_waits_and_once_it_is_consumed_it_is_exhausted(world):
    held = world.owned(budget=Budget(loops=1))
    first = world.begin_with_ticket(held)
    world.commit(first)
    world.refused(world.begin_with_ticket(held, "#2"), TicketsTaken)
    world.commit(world.settle(held, first.operation_id, Ticket("loop").takes()))
    error = world.refused(world.begin_with_ticket(held, "#2"), BudgetExhausted)
    assert (error.details["budget"], error.details["limit"], error.details["consumed"]) == ("loops", 1, 1)


def test_a_released_ticket_makes_room(world):
    held = world.owned(budget=Budget(loops=1))
    first = world.begin_with_ticket(held)
    world.commit(first)
    world.commit(world.settle(held, first.operation_id))
    world.commit(world.begin_with_ticket(held, "#2"))
    assert world.spent(held.run_id) == (1, 1, 0)


def test_what_was_begun_before_is_answered_whatever_is_left_and_reserves_nothing(world):
    held = world.owned(budget=Budget(loops=1))
    first = world.begin_with_ticket(held)
    world.commit(first)
    world.commit(world.settle(held, first.operation_id, Ticket("loop").takes()))
    with world.nothing_written():
        found = world.commit(changed(first, operation_id="another", command_id="another"))
    assert found.replayed
    assert found.result["operation_id"] == first.operation_id
    world.refused(changed(first, command_id="third", request_fingerprint=b"other"), CommandMismatch)


@pytest.mark.parametrize(
    ("budget", "ticket"),
    [
        (Budget(tool_calls=0), Ticket("tool_call")),
        (Budget(tokens=99), Ticket("loop", tokens=100)),
        (Budget(tokens=0), Ticket("loop")),
        (Budget(cost=Decimal("0.000001")), Ticket("loop", cost=Decimal("0.000002"))),
    ],
)
def test_every_kind_is_limited_exactly(world, budget, ticket):
    held = world.owned(budget=budget)
    world.refused(world.begin_with_ticket(held, ticket=ticket), BudgetExhausted)


def test_a_kind_without_a_limit_and_a_kind_that_is_not_asked_let_it_pass_and_are_counted(world):
    held = world.owned(budget=Budget(tool_calls=0))
    world.commit(world.begin_with_ticket(held, ticket=Ticket("loop", tokens=7, cost=Decimal("0.5"))))
    assert world.spent(held.run_id, "tokens") == (None, 7, 0)
    assert world.spent(held.run_id, "cost_micros") == (None, 500_000, 0)
    assert world.spent(held.run_id, "tool_calls") == (0, 0, 0)
