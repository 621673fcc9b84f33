import pytest

from runtime_persist.errors import IllegalTransition
from runtime_persist.model.budgets import Budget, Ticket
from tests.fixtures.contracts import Leased, changed


class TestGuard(Leased):
    def send(self, world, held):
        command = world.begin_with_ticket(held)
        world.commit(command)
        return world.settle(held, command.operation_id, Ticket("loop").takes())


@pytest.fixture
def reserved(world):
    held = world.owned(budget=Budget(loops=2, tokens=1_000))
    command = world.begin_with_ticket(held, ticket=Ticket("loop", tokens=500))
    world.commit(command)
    return held, command.operation_id


def test_consumed_counts_what_was_reported_not_what_was_reserved(world, reserved):
    held, operation = reserved
    assert world.spent(held.run_id, "tokens") == (1_000, 500, 0)
    took = Ticket("loop", tokens=620).takes()
    assert world.commit(world.settle(held, operation, took)).result == {"state": "consumed"}
    assert world.spent(held.run_id, "tokens") == (1_000, 0, 620)
    assert world.spent(held.run_id) == (2, 0, 1)
    assert world.events(held.run_id)[-1] == "ticket.consumed"


def test_released_counts_nothing(world, reserved):
    held, operation = reserved
    assert world.commit(world.settle(held, operation)).result == {"state": "released"}
    assert (world.spent(held.run_id), world.spent(held.run_id, "tokens")) == ((2, 0, 0), (1_000, 0, 0))


@pytest.mark.parametrize("first", ["consumed", "released"])
@pytest.mark.parametrize("second", ["consumed", "released"])
def test_settling_twice_changes_nothing(world, reserved, first, second):
    held, operation = reserved
    took = {"consumed": Ticket("loop").takes(), "released": None}
    world.commit(world.settle(held, operation, took[first]))
    before = world.spent(held.run_id), world.spent(held.run_id, "tokens"), world.events(held.run_id)
    assert world.commit(world.settle(held, operation, took[second])).result == {"state": first}
    assert (world.spent(held.run_id), world.spent(held.run_id, "tokens"), world.events(held.run_id)) == before


def test_sent_again_it_is_replayed(world, reserved):
    held, operation = reserved
    command = world.settle(held, operation, Ticket("loop").takes())
    world.commit(command)
    with world.nothing_written():
        assert world.commit(command).replayed


def test_it_is_accepted_while_the_run_is_stopping_and_refused_to_an_older_epoch(world, reserved):
    held, operation = reserved
    world.set_run(held.run_id, control="stopping", stop_reason="cancel")
    command = world.settle(held, operation, Ticket("loop").takes())
    world.commit(command)
    assert world.spent(held.run_id) == (2, 0, 1)


def test_a_run_without_the_ticket_is_told_so(world, reserved):
    held, operation = reserved
    world.refused(changed(world.settle(held, operation), operation_id="none"), IllegalTransition)
