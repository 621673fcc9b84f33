import pytest

from runtime_persist.commands.yield_attempt import YieldAttempt
from runtime_persist.errors import DomainsOpen, ThreadOwned
from runtime_persist.model.budgets import Budget, Ticket
from tests.fixtures.contracts import Receipt, changed


class TestReceipt(Receipt):
    def make(self, world):
        return world.start_owned_run()

    def other(self, world, command):
        return changed(command, request=world.request("another input"))


def test_the_run_is_running_with_an_active_lease(world):
    command = world.start_owned_run()
    result = world.commit(command).result
    run_id = command.request.run_id
    assert result == {"run_id": run_id, "epoch": 1, "attempt_id": command.attempt_id}
    run, attempt = world.run(run_id), world.attempt(command.attempt_id)
    assert (run["status"], run["phase"], run["control"], run["version"]) == ("running", "active", "open", 1)
    assert run["expires_us"] == run["created_us"] + command.ttl_us
    assert (run["attempt_id"], run["attempt_no"], run["worker_id"]) == (command.attempt_id, 1, "me")
    assert (attempt["status"], attempt["cause"], attempt["observed_state"]) == ("running", "initial", "running")
    assert attempt["start_requested_us"] > 0
    assert world.thread_row()["owner_run_id"] == run_id
    assert world.events(run_id) == [
        "run.created", "run.queued", "lease.claimed", "lease.activated", "run.dispatching",
        "attempt.claimed", "attempt.start_requested", "attempt.running", "run.running",
    ]  # fmt: skip


def test_a_live_run_owns_the_thread(world):
    held = world.owned()
    assert world.refused(world.start_owned_run(), ThreadOwned).details["run_id"] == held.run_id


@pytest.mark.parametrize("status", ["created", "queued", "retry_wait"])
def test_a_run_that_somebody_will_execute_has_the_thread(world, status):
    run_id = world.queued()
    world.set_run(run_id, status=status)
    world.refused(world.start_owned_run(), ThreadOwned)


def test_a_dispatched_run_has_the_thread_even_when_its_lease_ran_out(world):
    held = world.claimed()
    world.expire(held)
    world.refused(world.start_owned_run(), ThreadOwned)


def test_a_waiting_run_is_cancelled_as_superseded(world):
    held = world.owned()
    world.commit(YieldAttempt(reason="interrupt", question=b"?", **world.of_lease(held)))
    new = world.owned()
    old = world.run(held.run_id)
    assert (old["status"], old["stop_reason"], old["question"]) == ("cancelled", "superseded", None)
    assert world.attempt(held.attempt_id)["status"] == "yielded"
    assert world.events(held.run_id)[-2:] == ["run.stop_requested", "run.cancelled"]
    assert world.thread_row()["owner_run_id"] == new.run_id
    assert world.run(new.run_id)["thread_run_no"] == 2


def test_a_run_whose_lease_ran_out_is_taken_over_only_to_end_it(world):
    held = world.owned()
    operation = world.begun(held)
    world.expire(held)
    world.owned()
    old = world.run(held.run_id)
    assert (old["status"], old["epoch"], old["phase"]) == ("cancelled", held.epoch + 1, "released")
    assert world.attempt(held.attempt_id)["status"] == "lost"
    assert world.tries(operation) == ["unknown"]
    assert world.events(held.run_id)[-5:] == [
        "lease.claimed", "attempt.lost", "run.lost", "run.stop_requested", "run.cancelled",
    ]  # fmt: skip


@pytest.mark.parametrize(("reason", "final"), [("cancel", "cancelled"), ("deadline", "timed_out")])
def test_the_stop_reason_that_came_first_decides(world, reason, final):
    held = world.owned()
    world.set_run(held.run_id, control="stopping", stop_reason=reason, expires_us=0)
    world.owned()
    old = world.run(held.run_id)
    assert (old["status"], old["stop_reason"]) == (final, reason)
    assert "run.stop_requested" not in world.events(held.run_id)


def test_finished_runs_are_no_hindrance(world):
    run_id = world.queued()
    world.set_run(run_id, status="succeeded")
    assert world.run(world.owned().run_id)["thread_run_no"] == 2


def test_a_run_whose_domains_are_not_revoked_is_not_superseded(world):
    old = world.owned()
    world.with_domain(old)
    world.expire(old)
    world.refused(world.start_owned_run(), DomainsOpen)
    world.commit(world.confirm_revocation(old.run_id))
    world.commit(world.start_owned_run())
    assert world.run(old.run_id)["status"] == "cancelled"


def test_one_that_retries_a_run_goes_on_with_its_budget_and_says_so(world):
    held = world.owned(budget=Budget(loops=1))
    command = world.begin_with_ticket(held)
    world.commit(command)
    world.commit(world.settle(held, command.operation_id, Ticket("loop").takes()))
    world.commit(world.fail_attempt(held))
    lower = world.start_owned_run(budget=Budget(tokens=9), retry_of_run_id=held.run_id)
    result = world.commit(lower).result
    assert (result["budgeted"], result["limits_invocations"]) == (True, False)
    assert (world.spent(result["run_id"]), world.spent(result["run_id"], "tokens")) == ((1, 0, 1), (9, 0, 0))
