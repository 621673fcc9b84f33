import pytest

from runtime_persist.errors import NothingToClaim
from runtime_persist.model import limits
from tests.fixtures.contracts import Receipt, changed
from tests.fixtures.world import Held


class TestReceipt(Receipt):
    def make(self, world):
        return world.claim_run(world.queued())

    def other(self, world, command):
        return changed(command, worker_id="somebody else")


def test_a_queued_run_is_dispatched_under_the_first_epoch(world):
    run_id = world.queued()
    command = world.claim_run(run_id)
    result = world.commit(command).result
    assert result == {
        "epoch": 1,
        "takeover": False,
        "attempt_id": command.attempt_id,
        "crash_loop": False,
        "control": "open",
        "stop_reason": None,
    }
    run, attempt = world.run(run_id), world.attempt(command.attempt_id)
    assert (run["status"], run["phase"], run["epoch"], run["worker_id"]) == ("dispatching", "recovering", 1, "w")
    assert run["expires_us"] > run["updated_us"]
    assert (attempt["status"], attempt["cause"], attempt["epoch"]) == ("claimed", "initial", 1)
    assert attempt["start_requested_us"] is None
    assert world.thread_row()["owner_run_id"] == run_id
    assert world.events(run_id) == [
        "run.created", "run.queued", "lease.claimed", "attempt.claimed", "run.dispatching",
    ]  # fmt: skip


def test_a_run_left_before_its_start_fence_keeps_its_attempt(world):
    held = world.claimed()
    world.expire(held)
    result = world.commit(world.claim_run(held.run_id)).result
    assert (result["epoch"], result["takeover"], result["attempt_id"]) == (2, False, held.attempt_id)
    attempt = world.attempt(held.attempt_id)
    assert (attempt["status"], attempt["epoch"], attempt["attempt_no"]) == ("claimed", 2, 1)
    assert world.count("rp_attempts") == 1
    assert world.events(held.run_id)[5:] == [
        "lease.claimed", "run.queued", "attempt.released", "attempt.claimed", "run.dispatching",
    ]  # fmt: skip


def test_a_run_left_past_its_start_fence_is_lost_with_its_attempt_and_its_tries(world):
    held = world.owned()
    operation = world.begun(held)
    world.expire(held)
    result = world.commit(world.claim_run(held.run_id)).result
    assert (result["epoch"], result["takeover"], result["crash_loop"]) == (2, True, False)
    run, attempt = world.run(held.run_id), world.attempt(held.attempt_id)
    assert (run["status"], run["phase"], run["takeovers"]) == ("lost", "recovering", 1)
    assert (attempt["status"], attempt["termination_reason"]) == ("lost", "lease_expired")
    assert world.tries(operation) == ["unknown"]
    assert world.count("rp_attempts") == 1  # the takeover's attempt is made when the lease is activated
    assert world.events(held.run_id)[-3:] == ["lease.claimed", "attempt.lost", "run.lost"]


@pytest.mark.parametrize("phase", ["active", "recovering"])
def test_a_live_lease_is_refused(world, phase):
    held = world.owned()
    world.set_run(held.run_id, phase=phase)
    assert world.refused(world.claim_run(held.run_id), NothingToClaim).details["status"] == "running"


@pytest.mark.parametrize(
    "status", ["created", "waiting_approval", "retry_wait", "succeeded", "failed", "cancelled", "timed_out"]
)
def test_a_run_that_is_not_to_be_executed_is_refused(world, status):
    run_id = world.queued()
    world.set_run(run_id, status=status)
    world.refused(world.claim_run(run_id), NothingToClaim)


def test_the_threads_older_open_run_comes_first(world):
    first, second = world.queued(), world.queued()
    assert world.refused(world.claim_run(second), NothingToClaim).details["waits_for"] == first
    world.commit(world.claim_run(first))
    world.refused(world.claim_run(second), NothingToClaim)


def test_takeovers_without_progress_become_a_crash_loop_and_progress_begins_the_count_anew(world):
    held = world.owned()
    for number in range(1, limits.MAX_TAKEOVERS + 1):
        world.expire(held)
        result = world.commit(world.claim_run(held.run_id)).result
        assert (world.run(held.run_id)["takeovers"], result["crash_loop"]) == (number, False)
        held = Held(held.run_id, result["epoch"], held.attempt_id)
    world.set_run(held.run_id, phase="active")
    world.commit(world.commit_checkpoint(held))
    world.expire(held)
    result = world.commit(world.claim_run(held.run_id)).result
    assert (world.run(held.run_id)["takeovers"], result["crash_loop"]) == (1, False)
    world.set_run(held.run_id, takeovers=limits.MAX_TAKEOVERS, expires_us=0)
    assert world.commit(world.claim_run(held.run_id)).result["crash_loop"]


def test_a_stopping_run_can_be_claimed_to_be_ended(world):
    held = world.owned()
    world.set_run(held.run_id, control="stopping", stop_reason="cancel", expires_us=0)
    result = world.commit(world.claim_run(held.run_id)).result
    assert (result["control"], result["stop_reason"]) == ("stopping", "cancel")
