import pytest

from runtime_persist.errors import NothingToClaim
from runtime_persist.model import limits
from runtime_persist.model.retry import RetryPolicy
from tests.fixtures.contracts import Receipt, changed
from tests.fixtures.world import TTL_US, Held


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
        "started": False,
        "crash_loop": False,
        "domains_open": 0,
        "control": "open",
        "stop_reason": None,
        "deadline_in_us": None,
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


@pytest.mark.parametrize("status", ["created", "waiting_approval", "succeeded", "failed", "cancelled", "timed_out"])
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


def test_a_run_whose_retry_is_due_gets_a_new_attempt_and_one_that_is_not_is_refused(world):
    held = world.owned(retry_policy=RetryPolicy(max_attempts=2, backoff=60, jitter=0).encoded())
    world.commit(world.fail_attempt(held))
    assert world.refused(world.claim_run(held.run_id), NothingToClaim).details["status"] == "retry_wait"
    world.set_run(held.run_id, next_attempt_us=1)
    command = world.claim_run(held.run_id)
    result = world.commit(command).result
    assert (result["takeover"], result["attempt_id"]) == (False, command.attempt_id)
    run, attempt = world.run(held.run_id), world.attempt(command.attempt_id)
    assert (run["status"], run["next_attempt_us"], run["takeovers"], run["failures"]) == ("dispatching", None, 0, 1)
    assert (attempt["cause"], attempt["attempt_no"], attempt["previous_attempt_id"]) == ("retry", 2, held.attempt_id)
    assert world.events(held.run_id)[-4:] == ["lease.claimed", "run.queued", "attempt.claimed", "run.dispatching"]


def test_a_run_past_its_deadline_is_claimed_only_to_be_ended(world):
    run_id = world.queued(deadline_in_us=TTL_US)
    left = world.commit(world.claim_run(run_id)).result["deadline_in_us"]
    assert 0 < left <= TTL_US
    world.set_run(run_id, deadline_us=1, expires_us=0)
    result = world.commit(world.claim_run(run_id)).result
    assert (result["control"], result["stop_reason"]) == ("stopping", "deadline")
    assert "run.stop_requested" in world.events(run_id)


def test_the_first_stop_reason_stays_when_the_deadline_passes_too(world):
    run_id = world.claimed().run_id
    world.set_run(run_id, control="stopping", stop_reason="cancel", deadline_us=1, expires_us=0)
    assert world.commit(world.claim_run(run_id)).result["stop_reason"] == "cancel"


def test_a_run_of_another_version_is_refused_unless_it_is_only_to_be_ended(world):
    run_id = world.queued(graph_version="v2")
    old = changed(world.claim_run(run_id), versions=("v1",))
    assert world.refused(old, NothingToClaim).details["graph_version"] == "v2"
    world.set_run(run_id, control="stopping", stop_reason="cancel")
    assert world.commit(old).result["control"] == "stopping"


@pytest.mark.parametrize(("version", "versions"), [("v2", ("v1", "v2")), ("v2", None), (None, ("v1",)), (None, ())])
def test_a_run_of_a_version_that_the_worker_has_or_of_none_is_claimed(world, version, versions):
    run_id = world.queued(graph_version=version)
    world.commit(changed(world.claim_run(run_id), versions=versions))
    assert world.run(run_id)["status"] == "dispatching"


def test_takeovers_have_the_limit_of_the_runs_policy(world):
    held = world.owned(retry_policy=RetryPolicy(max_takeovers=0).encoded())
    world.expire(held)
    assert world.commit(world.claim_run(held.run_id)).result["crash_loop"]
