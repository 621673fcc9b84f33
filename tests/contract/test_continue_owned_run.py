import pytest

from runtime_persist.commands.yield_attempt import YieldAttempt
from runtime_persist.errors import DomainsOpen, NothingToClaim, RunFailed, ThreadOwned
from runtime_persist.model import limits
from runtime_persist.model.lease import ALL_REVOKED, MANUAL_GRAPH
from tests.fixtures.contracts import Receipt, changed


def waiting(world, reason="interrupt"):
    held = world.owned()
    world.commit(YieldAttempt(reason=reason, question=b"?", **world.of_lease(held)))
    return held


class TestReceipt(Receipt):
    def make(self, world):
        waiting(world)
        return world.continue_run()

    def other(self, world, command):
        return changed(command, answer=b"another")


def test_a_waiting_run_resumes_with_the_answer(world):
    held = waiting(world)
    answer, blobs = world.payload("a rather long answer")
    command = world.continue_run(answer=answer, blobs=blobs, owner="space")
    assert world.commit(command).result == {
        "run_id": held.run_id, "epoch": 2, "attempt_id": command.attempt_id, "takeover": False,
    }  # fmt: skip
    run, attempt = world.run(held.run_id), world.attempt(command.attempt_id)
    assert (run["status"], run["phase"], run["question"], run["answer"]) == ("running", "active", None, answer)
    assert (attempt["cause"], attempt["status"], attempt["previous_attempt_id"]) == (
        "resume", "running", held.attempt_id,
    )  # fmt: skip
    assert world.count("rp_blobs") == 2
    assert world.events(held.run_id)[-6:] == [
        "lease.claimed", "lease.activated", "attempt.claimed", "attempt.start_requested", "attempt.running",
        "run.running",
    ]  # fmt: skip


def test_a_drained_run_goes_on(world):
    held = waiting(world, "drain")
    command = world.continue_run()
    assert not world.commit(command).result["takeover"]
    assert world.attempt(command.attempt_id)["cause"] == "resume"
    assert world.run(held.run_id)["status"] == "running"


def test_a_queued_run_that_never_ran_is_begun(world):
    run_id = world.queued()
    command = world.continue_run()
    assert world.commit(command).result["run_id"] == run_id
    assert world.attempt(command.attempt_id)["cause"] == "initial"
    assert world.thread_row()["owner_run_id"] == run_id


def test_a_run_whose_lease_ran_out_is_taken_over(world):
    held = world.owned()
    operation = world.begun(held)
    world.set_run(held.run_id, expires_us=0, answer=b"an earlier answer")
    command = world.continue_run()
    result = world.commit(command).result
    assert (result["takeover"], result["epoch"]) == (True, 2)
    run = world.run(held.run_id)
    assert (run["status"], run["takeovers"], run["answer"]) == ("running", 1, b"an earlier answer")
    assert world.attempt(held.attempt_id)["status"] == "lost"
    assert world.attempt(command.attempt_id)["cause"] == "takeover"
    assert world.tries(operation) == ["unknown"]
    events = world.events(held.run_id)
    assert events[events.index("run.lost") - 1] == "attempt.lost"
    assert events[-1] == "run.running"


def test_a_claimed_run_left_before_its_start_fence_gets_a_new_attempt(world):
    held = world.claimed()
    world.expire(held)
    command = world.continue_run()
    assert not world.commit(command).result["takeover"]
    left = world.attempt(held.attempt_id)
    assert (left["status"], left["termination_reason"]) == ("cancelled", "superseded")
    assert world.run(held.run_id)["status"] == "running"


def test_a_live_lease_is_refused(world):
    held = world.owned()
    assert world.refused(world.continue_run(), ThreadOwned).details["run_id"] == held.run_id


@pytest.mark.parametrize("status", ["created", "retry_wait"])
def test_a_run_whose_time_has_not_come_is_refused(world, status):
    world.set_run(world.queued(), status=status)
    world.refused(world.continue_run(), ThreadOwned)


def test_without_an_open_run_the_last_one_is_named(world):
    first, second = world.queued(), world.queued()
    for run_id in (first, second):
        world.set_run(run_id, status="succeeded")
    assert world.refused(world.continue_run(), NothingToClaim).details["last_run_id"] == second


def test_a_crash_loop_is_refused(world):
    held = world.owned()
    world.set_run(held.run_id, expires_us=0, takeovers=limits.MAX_TAKEOVERS)
    assert world.refused(world.continue_run(), RunFailed).details["reason"] == "crash_loop"


def test_a_run_of_another_graph_is_refused(world):
    world.expire(world.owned())
    assert "is of graph 'g'" in world.refused(world.continue_run(graph="other"), ThreadOwned).message


def test_a_lease_without_a_graph_that_was_left_is_nothing_to_continue(world):
    world.commit(world.start_owned_run(graph=MANUAL_GRAPH))
    run_id = world.raw.value("UPDATE rp_runs SET expires_us = 0 RETURNING run_id")
    refused = world.refused(world.continue_run(graph="other"), NothingToClaim)
    assert refused.details["last_run_id"] == run_id


def test_a_run_whose_domains_are_not_revoked_is_not_continued(world):
    old = world.owned()
    world.with_domain(old)
    world.expire(old)
    world.refused(world.continue_run(), DomainsOpen)
    world.commit(world.confirm_revocation(old.run_id))
    assert world.commit(world.continue_run()).result["epoch"] == old.epoch + 1
    assert world.run(old.run_id)["revocation"] == ALL_REVOKED
