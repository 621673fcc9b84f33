import pytest

from runtime_persist.commands.retry_run import RetryRun
from runtime_persist.commands.yield_attempt import YieldAttempt
from runtime_persist.errors import CheckpointNotFound, IllegalTransition, RunNotFound, ThreadMovedOn
from runtime_persist.model.budgets import Budget, Ticket
from runtime_persist.model.ids import NO_CHECKPOINT
from runtime_persist.model.states import FINAL_RUN, RunStatus
from tests.fixtures.contracts import Receipt, changed


def failed(world, *checkpoints, **request):
    """A run that failed behind some checkpoints."""
    held = world.owned(**request)
    parent = None
    for checkpoint in checkpoints:
        world.commit(world.commit_checkpoint(held, checkpoint_id=checkpoint, parent_id=parent))
        parent = checkpoint
    world.commit(world.fail_attempt(held))
    return held.run_id


def make(world, run_id, **fields):
    made = {"run_id": run_id, "request": world.request("what a run that goes on is given")}
    return RetryRun(**(made | world.of_thread() | fields))


class TestReceipt(Receipt):
    def make(self, world):
        return make(world, failed(world))

    def other(self, world, command):
        return changed(command, request=world.request("another request"))


def retried(world, command):
    return world.run(world.commit(command).result["run_id"])


def test_it_is_a_new_run_and_the_old_one_stays_as_it_is(world):
    run_id = failed(world, priority=3, scope="s")
    before = world.run(run_id)
    run = retried(world, make(world, run_id))
    assert (run["status"], run["retry_of_run_id"], run["thread_run_no"]) == ("queued", run_id, 2)
    assert (run["priority"], run["scope"]) == (3, "s")
    assert world.run(run_id) == before
    assert world.events(run["run_id"]) == ["run.created", "run.queued"]


def test_a_run_that_stored_something_goes_on_at_the_latest_state(world):
    run_id = failed(world, "c1")
    world.set_run(run_id, answer=b"because")
    command = make(world, run_id)
    run = retried(world, command)
    assert (run["input"], run["start_checkpoint_id"], run["answer"]) == (command.request.input, None, b"because")


def test_a_run_that_stored_nothing_is_given_its_input_where_it_was_to_begin(world):
    run_id = failed(world, start_checkpoint_id="c0")
    run = retried(world, make(world, run_id))
    assert (run["input"], run["start_checkpoint_id"]) == (world.run(run_id)["input"], "c0")


def test_from_the_start_it_begins_where_the_run_began_with_its_input(world):
    world.commit(world.put_checkpoint(checkpoint_id="c0"))
    held = world.owned()
    world.commit(world.commit_checkpoint(held, checkpoint_id="c1", parent_id="c0"))
    world.commit(world.fail_attempt(held))
    run = retried(world, make(world, held.run_id, from_start=True))
    assert (run["input"], run["start_checkpoint_id"]) == (world.run(held.run_id)["input"], "c0")
    assert run["answer"] is None


def test_from_the_start_the_first_run_of_a_thread_begins_with_nothing(world):
    run = retried(world, make(world, failed(world, "c1"), from_start=True))
    assert run["start_checkpoint_id"] == NO_CHECKPOINT


def test_from_the_start_a_run_that_was_a_fork_begins_where_that_began(world):
    run_id = failed(world, "c1", start_checkpoint_id="c0")
    assert retried(world, make(world, run_id, from_start=True))["start_checkpoint_id"] == "c0"


def test_where_it_began_may_be_pruned(world):
    run_id = failed(world, "c1")
    world.raw.rows("UPDATE rp_checkpoints SET orphan = 1")
    world.refused(make(world, run_id, from_start=True), CheckpointNotFound)
    assert retried(world, make(world, run_id))["status"] == "queued"


@pytest.mark.parametrize("status", sorted(set(RunStatus) - FINAL_RUN))
def test_a_run_that_has_not_ended_is_refused(world, status):
    held = world.owned()
    world.set_run(held.run_id, status=status)
    world.refused(make(world, held.run_id), IllegalTransition)


@pytest.mark.parametrize("status", sorted(FINAL_RUN))
def test_a_run_that_has_ended_is_retried_and_one_that_succeeded_only_from_the_start(world, status):
    run_id = failed(world, "c1")
    world.set_run(run_id, status=status)
    if status is RunStatus.SUCCEEDED:
        world.refused(make(world, run_id), IllegalTransition)
    assert retried(world, make(world, run_id, from_start=True))["status"] == "queued"


def test_a_run_is_retried_once_at_a_time(world):
    run_id = failed(world, "c1")
    second = retried(world, make(world, run_id))["run_id"]
    assert world.refused(make(world, run_id), ThreadMovedOn).details["later_run_id"] == second


def test_behind_a_later_run_that_began_it_is_refused_and_behind_one_that_never_did_it_is_not(world):
    run_id = failed(world, "c1")
    later = world.queued()
    world.refused(make(world, run_id), ThreadMovedOn)
    world.set_run(later, status="cancelled", finished_us=1)
    assert retried(world, make(world, run_id))["thread_run_no"] == 3
    world.raw.rows("DELETE FROM rp_runs WHERE thread_run_no = 3")
    world.set_run(later, attempt_no=1)
    world.refused(make(world, run_id), ThreadMovedOn)


def test_an_unknown_run_is_refused(world):
    world.refused(make(world, "nobody"), RunNotFound)


def test_what_a_waiting_run_was_asked_is_no_hindrance_once_it_is_cancelled(world):
    held = world.owned()
    world.commit(YieldAttempt(reason="interrupt", question=b"?", **world.of_lease(held)))
    world.set_run(held.run_id, status="cancelled", finished_us=1)
    assert retried(world, make(world, held.run_id))["question"] is None


@pytest.mark.parametrize("from_start", [False, True])
def test_it_has_the_limits_of_the_run_and_goes_on_with_what_that_consumed_unless_it_begins_anew(world, from_start):
    held = world.owned(budget=Budget(loops=4, per_invocation=Budget(loops=3)))
    for ordinal, invocation in (("#1", "a"), ("#2", "a"), ("#3", "b")):
        command = world.begin_in_invocation(held, ordinal, invocation=invocation)
        world.commit(command)
        if ordinal != "#3":  # that one is left reserved
            world.commit(world.settle(held, command.operation_id, Ticket("loop", tokens=7).takes()))
    world.commit(world.fail_attempt(held))
    run = retried(world, make(world, held.run_id, from_start=from_start))
    consumed = 0 if from_start else 2
    assert world.spent(run["run_id"]) == (4, 0, consumed)
    assert world.spent(run["run_id"], "tokens") == (None, 0, 7 * consumed)
    assert run["invocation_loops_limit"] == 3
    rows = world.raw.rows("SELECT invocation, loops, state FROM rp_tickets WHERE run_id = ?", run["run_id"])
    assert rows == ([] if from_start else [{"invocation": "a", "loops": 2, "state": "consumed"}])
