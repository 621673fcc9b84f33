import pytest

from runtime_persist.commands.finalize_run import FinalizeRun
from runtime_persist.errors import IllegalTransition, LeaseReleased
from tests.fixtures.contracts import LeasedThread, Receipt, changed


def base(world, held):
    return world.of_thread(held.thread_id) | world.of_lease(held)


def succeed(world, held):
    result, blobs = world.payload("a rather long result")
    return FinalizeRun.succeeded(result=result, owner="space", blobs=blobs, **base(world, held))


def fail(world, held):
    return FinalizeRun.failed(error_code="ValueError", error_summary="no", **base(world, held))


def cancel(world, held):
    return FinalizeRun.cancelled(reason="caller_left", **base(world, held))


class TestGuard(LeasedThread):
    recovering = True  # a crash loop, and a stopping run after a takeover, are ended while recovering

    def send(self, world, held):
        return succeed(world, held)

    def on_thread(self, world, command, thread_id):
        return changed(command, thread_id=thread_id, thread_hash=world.keys.thread_hash(thread_id))


class TestReceipt(Receipt):
    def make(self, world):
        return succeed(world, world.owned())

    def other(self, world, command):
        return changed(command, result=world.payload("another result")[0])


@pytest.mark.parametrize(("make", "status"), [(succeed, "succeeded"), (fail, "failed"), (cancel, "cancelled")])
def test_run_and_attempt_end_and_lease_and_thread_are_given_back(world, make, status):
    held = world.owned()
    assert world.commit(make(world, held)).result == {"status": status}
    run, attempt = world.run(held.run_id), world.attempt(held.attempt_id)
    assert (run["status"], run["phase"], run["expires_us"]) == (status, "released", 0)
    assert run["finished_us"] == attempt["ended_us"] > 0
    assert attempt["status"] == run["observed_state"] == status
    assert world.thread_row()["owner_run_id"] is None
    assert world.events(held.run_id)[-2:] == [f"attempt.{status}", f"run.{status}"]


def test_what_came_out_is_kept(world):
    held = world.owned()
    command = succeed(world, held)
    world.commit(command)
    assert world.run(held.run_id)["result"] == command.result
    other = world.owned("other")
    world.commit(fail(world, other))
    run, attempt = world.run(other.run_id), world.attempt(other.attempt_id)
    assert (run["error_code"], run["error_summary"]) == ("ValueError", "no")
    assert (attempt["error_code"], attempt["error_summary"], attempt["termination_reason"]) == (
        "ValueError", "no", "error",
    )  # fmt: skip


@pytest.mark.parametrize(("reason", "status"), [("cancel", "cancelled"), ("deadline", "timed_out")])
def test_the_first_stop_reason_decides_and_the_result_is_kept(world, reason, status):
    held = world.owned()
    world.set_run(held.run_id, control="stopping", stop_reason=reason)
    command = succeed(world, held)
    assert world.commit(command).result == {"status": status}
    run = world.run(held.run_id)
    assert (run["status"], run["result"], run["observed_state"]) == (status, command.result, "succeeded")


def test_a_run_that_ends_after_its_deadline_timed_out_and_keeps_its_result(world):
    held = world.owned()
    world.set_run(held.run_id, deadline_us=1)
    assert world.commit(succeed(world, held)).result == {"status": "timed_out"}
    run = world.run(held.run_id)
    assert (run["stop_reason"], run["observed_state"]) == ("deadline", "succeeded")
    assert run["result"]
    assert world.events(held.run_id)[-3:] == ["run.stop_requested", "attempt.timed_out", "run.timed_out"]


def test_a_final_run_never_changes(world):
    held = world.owned()
    world.commit(succeed(world, held))
    world.refused(fail(world, held), LeaseReleased)
    world.set_run(held.run_id, phase="active", expires_us=2**62)
    world.refused(fail(world, held), IllegalTransition)


def test_a_claimed_run_that_never_started_can_be_cancelled(world):
    held = world.claimed()
    world.commit(cancel(world, held))
    assert world.run(held.run_id)["status"] == world.attempt(held.attempt_id)["status"] == "cancelled"


def test_a_lost_run_is_ended_by_whoever_took_it_over(world):
    old = world.owned()
    world.expire(old)
    epoch = world.commit(world.claim_run(old.run_id)).result["epoch"]
    world.commit(changed(fail(world, old), epoch=epoch))
    assert world.run(old.run_id)["status"] == "failed"
    assert world.attempt(old.attempt_id)["status"] == "lost"


def test_a_thread_that_another_run_owns_by_now_stays_with_it(world):
    held = world.owned()
    world.raw.rows("UPDATE rp_threads SET owner_run_id = 'another'")
    world.commit(succeed(world, held))
    assert world.thread_row()["owner_run_id"] == "another"
