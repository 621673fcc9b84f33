import pytest

from runtime_persist.errors import BudgetExhausted, IllegalTransition, TicketsTaken
from runtime_persist.model.budgets import Budget, Ticket
from tests.fixtures.contracts import Leased, changed


class TestGuard(Leased):
    open_only = True

    def send(self, world, held):
        return world.begin_in_invocation(held)


def limited(world, **run):
    return world.owned(budget=Budget(per_invocation=Budget(loops=1, tokens=50), **run))


def test_ticket_counters_operation_and_try_are_one_commit(world):
    held = limited(world, loops=9)
    command = world.begin_in_invocation(held)
    assert world.commit(command).result == {}
    assert world.spent(held.run_id) == (9, 1, 0)
    ticket = world.raw.one("SELECT * FROM rp_tickets")
    assert (ticket["operation_id"], ticket["state"], ticket["invocation"]) == (
        command.operation_id,
        "reserved",
        "agent:1",
    )
    assert world.tries(command.operation_id) == ["started"]
    assert world.events(held.run_id)[-1] == "operation.started"
    row = world.raw.one("SELECT status, phase, try_no, epoch FROM rp_operations")
    assert row == {"status": "pending", "phase": "executing", "try_no": 1, "epoch": held.epoch}


def test_each_invocation_has_the_limit_and_one_that_is_spent_leaves_the_others_theirs(world):
    held = limited(world)
    first = world.begin_in_invocation(held, "#1")
    world.commit(first)
    world.refused(world.begin_in_invocation(held, "#2"), TicketsTaken)
    world.commit(world.begin_in_invocation(held, "#3", invocation="agent:2"))
    world.commit(world.settle(held, first.operation_id, Ticket("loop").takes()))
    error = world.refused(world.begin_in_invocation(held, "#2"), BudgetExhausted)
    assert error.details | {"invocation": "agent:1", "budget": "loops", "limit": 1, "consumed": 1} == error.details
    assert world.commit(world.begin_in_invocation(held, "#4", invocation="agent:3")).result == {}


def test_the_runs_limit_counts_all_invocations(world):
    held = limited(world, loops=1)
    first = world.begin_in_invocation(held, "#1")
    world.commit(first)
    world.refused(world.begin_in_invocation(held, "#2", invocation="agent:2"), TicketsTaken)
    world.commit(world.settle(held, first.operation_id, Ticket("loop").takes()))
    error = world.refused(world.begin_in_invocation(held, "#2", invocation="agent:2"), BudgetExhausted)
    assert "invocation" not in error.details


def test_what_a_provider_reported_counts_and_a_released_ticket_does_not(world):
    held = limited(world)
    first = world.begin_in_invocation(held, "#1", Ticket("loop", tokens=10))
    world.commit(first)
    world.commit(world.settle(held, first.operation_id))
    world.commit(world.reserve(held, first.operation_id, Ticket("loop", tokens=10), invocation="agent:1"))
    world.commit(world.settle(held, first.operation_id, Ticket("loop", tokens=60).takes()))
    world.commit(world.raise_budget(held.run_id, Budget(per_invocation=Budget(loops=5))))
    error = world.refused(world.begin_in_invocation(held, "#2"), BudgetExhausted)
    assert (error.details["budget"], error.details["consumed"], error.details["limit"]) == ("tokens", 60, 50)


def test_a_further_try_is_refused_by_the_invocations_limit_too(world):
    held = limited(world)
    operation = world.begun(held)
    world.commit(world.begin_in_invocation(held, "#2"))
    world.refused(world.reserve(held, operation, invocation="agent:1"), TicketsTaken)
    assert world.commit(world.reserve(held, operation, invocation="agent:2")).result == {"state": "reserved"}


def test_raising_the_limit_of_invocations_makes_room_and_none_is_lowered_or_made(world):
    held = limited(world)
    world.commit(world.begin_in_invocation(held, "#1"))
    for budget in (
        Budget(loops=7),
        Budget(per_invocation=Budget(loops=0)),
        Budget(per_invocation=Budget(tool_calls=1)),
    ):
        world.refused(world.raise_budget(held.run_id, budget), IllegalTransition)
    world.commit(world.raise_budget(held.run_id, Budget(per_invocation=Budget(loops=2))))
    assert world.commit(world.begin_in_invocation(held, "#2")).result == {}


@pytest.mark.parametrize("same", [True, False])
def test_what_was_begun_before_is_refused_and_the_same_command_sent_again_is_replayed(world, same):
    held = limited(world, loops=5)
    command = world.begin_in_invocation(held)
    world.commit(command)
    again = command if same else changed(command, command_id="another", operation_id="another")
    if same:
        with world.nothing_written():
            assert world.commit(again).replayed
    else:
        world.refused(again, IllegalTransition)
    assert world.spent(held.run_id) == (5, 1, 0)
