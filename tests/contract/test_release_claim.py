import pytest

from runtime_persist.commands.activate_lease import ActivateLease
from runtime_persist.commands.release_claim import ReleaseClaim
from runtime_persist.errors import DomainsOpen, IllegalTransition
from runtime_persist.model.ids import new_id
from tests.fixtures.contracts import Leased, Receipt, changed
from tests.fixtures.world import Held


def make(world, held):
    return ReleaseClaim(**world.of_lease(held))


def taken_over(world):
    """A run past its start fence that the next worker has claimed."""
    held = world.owned()
    world.expire(held)
    result = world.commit(world.claim_run(held.run_id)).result
    return Held(held.run_id, result["epoch"], held.attempt_id)


class TestGuard(Leased):
    recovering = True

    def held(self, world):
        return world.claimed()

    def send(self, world, held):
        return make(world, held)


class TestReceipt(Receipt):
    def make(self, world):
        return make(world, world.claimed())

    def other(self, world, command):
        return changed(command, run_id=world.claimed("another thread").run_id)


def test_the_same_attempt_is_queued_again_and_nothing_is_counted(world):
    held = world.claimed()
    before = world.run(held.run_id)
    assert world.commit(make(world, held)).result == {"status": "queued"}
    run, attempt = world.run(held.run_id), world.attempt(held.attempt_id)
    assert (run["status"], run["phase"], run["expires_us"]) == ("queued", "released", 0)
    kept = ("attempt_id", "attempt_no", "takeovers", "queued_us", "epoch")
    assert [run[name] for name in kept] == [before[name] for name in kept]
    assert (attempt["status"], attempt["ended_us"], attempt["start_requested_us"]) == ("queued", None, None)
    assert world.events(held.run_id)[-3:] == ["attempt.released", "lease.released", "run.queued"]
    again = world.commit(world.claim_run(held.run_id)).result
    assert (again["attempt_id"], again["takeover"], again["epoch"]) == (held.attempt_id, False, 2)
    assert world.count("rp_attempts") == 1


def test_a_takeover_that_is_given_back_leaves_the_run_lost_and_is_not_counted(world):
    held = taken_over(world)
    for _ in range(5):  # more often than it may be taken over without progress
        assert world.run(held.run_id)["takeovers"] == 1
        assert world.commit(make(world, held)).result == {"status": "lost"}
        run = world.run(held.run_id)
        assert (run["status"], run["phase"], run["takeovers"]) == ("lost", "released", 0)
        result = world.commit(world.claim_run(held.run_id)).result
        assert (result["takeover"], result["crash_loop"]) == (True, False)
        held = Held(held.run_id, result["epoch"], held.attempt_id)


def test_a_takeovers_attempt_that_was_made_but_not_started_is_claimed_again(world):
    held = taken_over(world)
    activate = ActivateLease(attempt_id=new_id(), **world.of_lease(held))
    attempt_id = world.commit(activate).result["attempt_id"]
    world.commit(make(world, held))
    assert world.attempt(attempt_id)["status"] == "queued"
    world.commit(world.claim_run(held.run_id))
    assert (world.attempt(attempt_id)["status"], world.run(held.run_id)["attempt_id"]) == ("claimed", attempt_id)


@pytest.mark.parametrize(("reason", "final"), [("cancel", "cancelled"), ("deadline", "timed_out")])
def test_a_stopping_run_ends_instead(world, reason, final):
    held = world.claimed()
    world.set_run(held.run_id, control="stopping", stop_reason=reason)
    assert world.commit(make(world, held)).result == {"status": final}
    run, attempt = world.run(held.run_id), world.attempt(held.attempt_id)
    assert (run["status"], run["phase"]) == (final, "released")
    assert (attempt["status"], attempt["termination_reason"]) == ("cancelled", reason)


def test_past_the_start_fence_nothing_is_given_back(world):
    world.refused(make(world, world.owned()), IllegalTransition)


def test_a_lost_run_is_lost_again_with_the_domains_of_its_older_epochs(world):
    """Nothing was started: the next claim finds them as this one did."""
    old = world.owned()
    world.with_domain(old)
    held = world.taken_over(old)
    assert world.commit(ReleaseClaim(**world.of_lease(held))).result == {"status": "lost"}
    assert world.run(old.run_id)["domains_open"] == 1


def test_a_run_that_was_never_started_is_given_back_when_its_domains_are_revoked(world):
    old = world.activated(world.claimed())
    world.with_domain(old)
    held = world.taken_over(old)
    world.refused(ReleaseClaim(**world.of_lease(held)), DomainsOpen)
    world.commit(world.record_revocation(held))
    assert world.commit(ReleaseClaim(**world.of_lease(held))).result == {"status": "queued"}


def test_a_stopping_run_is_not_ended_by_giving_its_claim_back_before_its_domains_are_revoked(world):
    old = world.owned()
    world.with_domain(old)
    held = world.taken_over(old)
    world.set_run(old.run_id, control="stopping", stop_reason="cancel")
    world.refused(ReleaseClaim(**world.of_lease(held)), DomainsOpen)
