import pytest

from runtime_persist.commands.yield_attempt import YieldAttempt
from runtime_persist.errors import IllegalTransition, RunNotFound
from runtime_persist.model.budgets import Budget
from tests.fixtures.contracts import changed


def test_a_limit_is_raised_while_the_run_runs_and_told(world):
    held = world.owned(budget=Budget(loops=1, tokens=5))
    assert world.commit(world.raise_budget(held.run_id, Budget(loops=3))).result == {"status": "running"}
    assert (world.spent(held.run_id), world.spent(held.run_id, "tokens")) == ((3, 0, 0), (5, 0, 0))
    assert world.events(held.run_id)[-1] == "run.budget_raised"


@pytest.mark.parametrize("budget", [Budget(loops=0), Budget(tokens=5)])
def test_a_limit_is_neither_lowered_nor_made(world, budget):
    held = world.owned(budget=Budget(loops=1))
    world.refused(world.raise_budget(held.run_id, budget), IllegalTransition)


def test_a_run_that_waits_with_its_question_is_queued_and_one_with_another_question_is_not(world):
    held = world.owned(budget=Budget(loops=1))
    world.commit(YieldAttempt(reason="budget", question=b"?", **world.of_lease(held)))
    other = world.raise_budget(held.run_id, Budget(loops=2), question_id="another attempt")
    assert world.commit(other).result == {"status": "waiting_approval"}
    mine = world.raise_budget(held.run_id, Budget(loops=3), question_id=held.attempt_id)
    assert world.commit(mine).result == {"status": "queued"}
    assert world.run(held.run_id)["question"] is None
    assert world.events(held.run_id)[-2:] == ["run.budget_raised", "run.queued"]


def test_sent_again_it_is_replayed(world):
    held = world.owned(budget=Budget(loops=1))
    command = world.raise_budget(held.run_id, Budget(loops=2))
    world.commit(command)
    with world.nothing_written():
        assert world.commit(command).replayed


def test_a_run_that_has_ended_or_is_unknown_is_refused(world):
    held = world.owned(budget=Budget(loops=1))
    command = world.raise_budget(held.run_id, Budget(loops=2))
    world.refused(changed(command, run_id="none"), RunNotFound)
    world.set_run(held.run_id, status="succeeded")
    world.refused(command, IllegalTransition)
