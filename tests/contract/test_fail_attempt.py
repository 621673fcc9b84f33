import pytest

from runtime_persist.errors import IllegalTransition
from runtime_persist.model.retry import RetryPolicy
from tests.fixtures.contracts import Leased, Receipt, changed

TWICE = RetryPolicy(max_attempts=2, backoff=60, jitter=0)


def retried(world, policy=TWICE, **request):
    return world.owned(retry_policy=policy.encoded(), **request)


class TestGuard(Leased):
    def send(self, world, held):
        return world.fail_attempt(held)


class TestReceipt(Receipt):
    def make(self, world):
        return world.fail_attempt(retried(world))

    def other(self, world, command):
        return changed(command, error_code="another")


def test_a_failed_attempt_waits_for_the_next_one_by_the_databases_clock(world):
    held = retried(world)
    result = world.commit(world.fail_attempt(held)).result
    run, attempt = world.run(held.run_id), world.attempt(held.attempt_id)
    assert result == {"status": "retry_wait", "next_attempt_us": run["next_attempt_us"]}
    assert run["next_attempt_us"] == run["updated_us"] + 60_000_000
    assert (run["status"], run["phase"], run["expires_us"], run["failures"]) == ("retry_wait", "released", 0, 1)
    assert (run["error_code"], run["error_summary"], run["finished_us"]) == ("ValueError", "no luck", None)
    assert (attempt["status"], attempt["error_code"], attempt["termination_reason"]) == (
        "failed",
        "ValueError",
        "error",
    )
    assert attempt["ended_us"] > 0
    assert world.events(held.run_id)[-2:] == ["attempt.failed", "run.retry_wait"]


def test_without_a_policy_the_first_failure_is_final_and_frees_the_thread(world):
    held = world.owned()
    assert world.commit(world.fail_attempt(held)).result == {"status": "failed", "next_attempt_us": None}
    run = world.run(held.run_id)
    assert (run["status"], run["error_code"], run["observed_state"], run["failures"]) == (
        "failed",
        "ValueError",
        "failed",
        1,
    )
    assert world.thread_row()["owner_run_id"] is None
    assert world.events(held.run_id)[-2:] == ["attempt.failed", "run.failed"]


def test_the_last_attempt_of_the_policy_is_final(world):
    held = retried(world)
    world.set_run(held.run_id, failures=1)
    assert world.commit(world.fail_attempt(held)).result["status"] == "failed"


def test_what_would_only_fail_again_is_not_repeated(world):
    assert world.commit(world.fail_attempt(retried(world), repeatable=False)).result["status"] == "failed"


@pytest.mark.parametrize(("reason", "final"), [("cancel", "cancelled"), ("deadline", "timed_out")])
def test_a_stopping_run_ends_for_its_reason(world, reason, final):
    held = retried(world)
    world.set_run(held.run_id, control="stopping", stop_reason=reason)
    assert world.commit(world.fail_attempt(held)).result["status"] == final
    assert world.run(held.run_id)["observed_state"] == "failed"


def test_past_its_deadline_it_is_timed_out_and_not_tried_again(world):
    held = retried(world)
    world.set_run(held.run_id, deadline_us=1)
    assert world.commit(world.fail_attempt(held)).result["status"] == "timed_out"
    assert world.run(held.run_id)["stop_reason"] == "deadline"


def test_the_jitter_is_what_was_drawn(world):
    policy = RetryPolicy(max_attempts=2, backoff=60, jitter=0.5)
    waits = []
    for chance in (0.0, 1.0):
        held = retried(world, policy, thread_id=f"t{chance}")
        world.commit(world.fail_attempt(held, chance=chance))
        run = world.run(held.run_id)
        waits.append(run["next_attempt_us"] - run["updated_us"])
    assert waits == [30_000_000, 90_000_000]


def test_an_attempt_that_was_never_started_cannot_have_failed(world):
    held = world.claimed()
    world.set_run(held.run_id, phase="active")
    world.refused(world.fail_attempt(held), IllegalTransition)
