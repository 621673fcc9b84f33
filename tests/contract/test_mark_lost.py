import pytest

from runtime_persist.commands.mark_lost import MarkLost
from runtime_persist.errors import IllegalTransition, NothingToClaim, RunNotFound, ThreadOwned
from tests.fixtures.contracts import Receipt, changed


def make(world, run_id):
    return MarkLost(run_id=run_id, **world.base())


def left(world, thread_id="thread-1"):
    held = world.owned(thread_id)
    world.expire(held)
    return held


class TestReceipt(Receipt):
    def make(self, world):
        return make(world, left(world).run_id)

    def other(self, world, command):
        return changed(command, run_id=left(world, "another thread").run_id)


def test_a_started_run_whose_lease_ran_out_is_lost_and_never_queued(world):
    held = left(world)
    before = world.run(held.run_id)
    assert world.commit(make(world, held.run_id)).result == {"status": "lost"}
    run, attempt = world.run(held.run_id), world.attempt(held.attempt_id)
    assert (run["status"], run["queued_us"]) == ("lost", before["queued_us"])
    assert [run[name] for name in ("epoch", "phase", "takeovers")] == [
        before[name] for name in ("epoch", "phase", "takeovers")
    ]
    assert (attempt["status"], attempt["termination_reason"]) == ("lost", "lease_expired")
    assert world.events(held.run_id)[-2:] == ["attempt.lost", "run.lost"]


def test_a_lost_run_keeps_its_thread_until_it_is_taken_over(world):
    held = left(world)
    world.commit(make(world, held.run_id))
    behind = world.queued()
    assert world.refused(world.claim_run(behind), NothingToClaim).details["waits_for"] == held.run_id
    result = world.commit(world.claim_run(held.run_id)).result
    assert (result["takeover"], result["epoch"]) == (True, 2)
    world.refused(world.start_owned_run(), ThreadOwned)


def test_a_run_with_a_live_lease_is_not_lost(world):
    world.refused(make(world, world.owned().run_id), IllegalTransition)


def test_before_the_start_fence_there_is_nothing_to_lose(world):
    held = world.claimed()
    world.expire(held)
    world.refused(make(world, held.run_id), IllegalTransition)
    world.refused(make(world, world.queued("another thread")), IllegalTransition)


@pytest.mark.parametrize("status", ["lost", "succeeded", "failed", "cancelled", "timed_out"])
def test_a_run_that_is_lost_or_final_stays_as_it_is(world, status):
    held = left(world)
    world.set_run(held.run_id, status=status)
    before = world.run(held.run_id)
    assert world.commit(make(world, held.run_id)).result == {"status": status}
    assert world.run(held.run_id) == before


def test_an_unknown_run_is_refused(world):
    world.refused(make(world, "nobody"), RunNotFound)
