"""Any sequence of reservations, settlements, crashes and takeovers: the ledger is the counters, and both the model."""

import random
from dataclasses import dataclass, field

import pytest

from runtime_persist.errors import BudgetExhausted, LeaseLost, TicketsTaken
from runtime_persist.model.budgets import Budget, Ticket
from tests.fixtures.world import Held

NEVER_US = 2**62


@dataclass
class Model:
    """What is taken, counted by nobody but this."""

    loops: int
    tokens: int
    each: int
    """Loops of each invocation."""
    tickets: dict = field(default_factory=dict)  # operation -> (state, loops, tokens, invocation)

    def total(self, state, part, *within):
        return sum(
            ticket[part]
            for ticket in self.tickets.values()
            if ticket[0] == state and ticket[3] in (within or {ticket[3]})
        )

    def answer(self, tokens, invocation):
        """What a call that needs one loop and so many tokens is told."""
        outcome = None
        limits = [(1, self.loops, 1, ()), (2, self.tokens, max(tokens, 1), ())]
        limits += [(1, self.each, 1, (invocation,))] if invocation else []
        for part, limit, needs, within in limits:
            consumed, reserved = self.total("consumed", part, *within), self.total("reserved", part, *within)
            if consumed + needs > limit:
                return BudgetExhausted
            if consumed + reserved + needs > limit:
                outcome = TicketsTaken
        return outcome


class Walk:
    """One run that any number of processes have had."""

    def __init__(self, world, seed) -> None:
        self.world, self.random, self.model = world, random.Random(seed), Model(3, 100, 2)
        self.held = world.owned(budget=Budget(loops=3, tokens=100, per_invocation=Budget(loops=2)))
        world.set_run(self.held.run_id, expires_us=NEVER_US)
        self.lost, self.count = [], 0

    def send(self, command, error):
        if error is None:
            return self.world.commit(command)
        with pytest.raises(error):
            self.world.commit(command)
        return None

    def begin(self):
        tokens = self.random.choice([0, 5, 40])
        self.count += 1
        ticket, invocation = Ticket("loop", tokens=tokens), self.random.choice([None, "a", "b"])
        if invocation is None:
            command = self.world.begin_with_ticket(self.held, f"#{self.count}", ticket)
        else:
            command = self.world.begin_in_invocation(self.held, f"#{self.count}", ticket, invocation)
        expected = self.model.answer(tokens, invocation)
        self.send(command, expected)
        if expected is None:
            self.model.tickets[command.operation_id] = ("reserved", 1, tokens, invocation)

    def again(self):
        """A further try takes a ticket only where there is none, or it was given back."""
        if not self.model.tickets:
            return
        operation = self.random.choice(list(self.model.tickets))
        tokens = self.random.choice([0, 5])
        invocation = self.model.tickets[operation][3]
        given_back = self.model.tickets[operation][0] == "released"
        expected = self.model.answer(tokens, invocation) if given_back else None
        again = self.world.reserve(self.held, operation, Ticket("loop", tokens=tokens), invocation=invocation)
        self.send(again, expected)
        if given_back and expected is None:
            self.model.tickets[operation] = ("reserved", 1, tokens, invocation)

    def settle(self):
        if not self.model.tickets:
            return
        operation = self.random.choice(list(self.model.tickets))
        took = self.random.choice([None, 0, 7, 60])
        amounts = None if took is None else Ticket("loop", tokens=took).takes()
        self.send(self.world.settle(self.held, operation, amounts), None)
        if self.model.tickets[operation][0] == "reserved":
            _, loops, tokens, invocation = self.model.tickets[operation]
            settled = ("released", loops, tokens) if took is None else ("consumed", 1, took)
            self.model.tickets[operation] = (*settled, invocation)

    def take_over(self):
        """Its process died; what it had reserved stays, and what it sends is refused."""
        self.lost.append(self.held)
        self.held = Held(self.held.run_id, self.held.epoch + 1, self.held.attempt_id)
        self.world.set_run(self.held.run_id, epoch=self.held.epoch)

    def zombie(self):
        if self.lost and self.model.tickets:
            operation = self.random.choice(list(self.model.tickets))
            held = self.random.choice(self.lost)
            self.count += 1
            for command in (
                self.world.settle(held, operation, Ticket("loop").takes()),
                self.world.reserve(held, operation),
                self.world.begin_with_ticket(held, f"#{self.count}"),
            ):
                self.send(command, LeaseLost)

    def raise_budget(self):
        self.model.loops += self.random.choice([0, 1, 2])
        self.model.tokens += self.random.choice([0, 30])
        self.model.each += self.random.choice([0, 1])
        raised = Budget(loops=self.model.loops, tokens=self.model.tokens, per_invocation=Budget(loops=self.model.each))
        self.send(self.world.raise_budget(self.held.run_id, raised), None)

    def step(self):
        steps = [self.begin] * 5 + [self.settle] * 5 + [self.again] * 2 + [self.take_over, self.zombie]
        self.random.choice([*steps, self.raise_budget])()

    def check(self):
        for part, kind, limit in ((1, "loops", self.model.loops), (2, "tokens", self.model.tokens)):
            expected = (limit, self.model.total("reserved", part), self.model.total("consumed", part))
            assert self.world.spent(self.held.run_id, kind) == expected
        for invocation in ("a", "b"):
            taken = "SELECT coalesce(sum(loops), 0) FROM rp_tickets WHERE invocation = ? AND state = ?"
            for state in ("reserved", "consumed"):
                assert self.world.raw.value(taken, invocation, state) == self.model.total(state, 1, invocation)


@pytest.mark.parametrize(
    ("steps", "seed"),
    [(250, 1), pytest.param(10_000, 2, marks=[pytest.mark.exhaustive, pytest.mark.timeout(1_800)])],
    ids=["250", "10000"],
)
def test_the_ledger_the_counters_and_a_pure_model_are_the_same_after_any_steps(world, steps, seed):
    walk = Walk(world, seed)
    for number in range(1, steps + 1):
        walk.step()
        if number % 10 == 0:
            walk.check()
    walk.check()
