from runtime_persist.errors import BudgetExhausted, TicketsTaken
from runtime_persist.model.budgets import Budget, Ticket
from tests.fixtures.contracts import Leased


class TestGuard(Leased):
    open_only = True

    def send(self, world, held):
        return world.reserve(held, world.begun(held))


def test_a_further_try_of_an_operation_without_a_ticket_takes_one(world):
    held = world.owned(budget=Budget(loops=1))
    operation = world.begun(held)
    assert world.commit(world.reserve(held, operation)).result == {"state": "reserved"}
    assert world.spent(held.run_id) == (1, 1, 0)
    assert world.events(held.run_id)[-1] == "ticket.reserved"


def test_a_ticket_that_is_reserved_or_consumed_is_not_taken_twice(world):
    held = world.owned(budget=Budget(loops=1))
    command = world.begin_with_ticket(held)
    world.commit(command)
    assert world.commit(world.reserve(held, command.operation_id)).result == {"state": "reserved"}
    assert world.spent(held.run_id) == (1, 1, 0)
    world.commit(world.settle(held, command.operation_id, Ticket("loop").takes()))
    assert world.commit(world.reserve(held, command.operation_id)).result == {"state": "consumed"}
    assert world.spent(held.run_id) == (1, 0, 1)


def test_a_released_ticket_is_reserved_again_when_there_is_room(world):
    held = world.owned(budget=Budget(loops=1))
    first, second = world.begin_with_ticket(held), world.begin_with_ticket(held, "#2")
    world.commit(first)
    world.commit(world.settle(held, first.operation_id))
    world.commit(second)
    world.refused(world.reserve(held, first.operation_id), TicketsTaken)
    world.commit(world.settle(held, second.operation_id))
    assert world.commit(world.reserve(held, first.operation_id)).result == {"state": "reserved"}
    assert world.spent(held.run_id) == (1, 1, 0)


def test_nothing_is_reserved_beyond_what_was_consumed(world):
    held = world.owned(budget=Budget(loops=0))
    world.refused(world.reserve(held, world.begun(held)), BudgetExhausted)
