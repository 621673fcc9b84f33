"""Row A4: a worker claims a run again that it had lost; its name is no proof, the epoch is. A6: tests/worker/."""

import pytest

from runtime_persist.commands.activate_lease import ActivateLease
from runtime_persist.commands.finalize_run import FinalizeRun
from runtime_persist.commands.release_claim import ReleaseClaim
from runtime_persist.commands.report_attempt_event import ReportAttemptEvent
from runtime_persist.commands.request_start import RequestStart
from runtime_persist.commands.yield_attempt import YieldAttempt
from runtime_persist.errors import LeaseLost
from runtime_persist.model.ids import new_id
from tests.fixtures.world import Held


@pytest.fixture
def claim(world):
    """Claim the run as worker ``w``, always the same, and start its attempt."""

    def claims(run_id):
        epoch = world.commit(world.claim_run(run_id)).result["epoch"]
        held = Held(run_id, epoch, new_id())
        activate = ActivateLease(attempt_id=held.attempt_id, **world.of_lease(held))
        attempt_id = world.commit(activate).result["attempt_id"]
        for step in (RequestStart, ReportAttemptEvent):
            world.commit(step(attempt_id=attempt_id, **world.of_lease(held)))
        return Held(run_id, epoch, attempt_id)

    return claims


def late(world, old, begun):
    """All that the attempt before may still send."""
    of_lease = world.of_lease(old)
    ending = {"run_id": old.run_id, "epoch": old.epoch}
    return {
        "renew": world.renew(old),
        "give back": ReleaseClaim(**of_lease),
        "yield": YieldAttempt(reason="drain", **of_lease),
        "report": ReportAttemptEvent(attempt_id=old.attempt_id, **world.of_lease(old)),
        "fail": world.fail_attempt(old),
        "end": FinalizeRun.cancelled(reason="late", **ending, **world.of_thread()),
        "put": world.commit_checkpoint(old),
        "put_writes": world.commit_writes(old, "late"),
        "begin": world.begin(old, "#2"),
        "next try": world.next_try(old, begun),
        "complete": world.complete(old, begun),
    }


def test_a4_the_same_worker_that_claims_again_is_not_the_one_it_was(world, claim):
    run_id = world.queued()
    old = claim(run_id)
    begun = world.begun(old)
    world.expire(old)
    new = claim(run_id)
    workers = {row["worker_id"] for row in world.raw.rows("SELECT worker_id FROM rp_attempts")}
    assert (workers, old.epoch, new.epoch) == ({"w"}, 1, 2)
    before = world.run(run_id)
    for command in late(world, old, begun).values():
        world.refused(command, LeaseLost)  # and not a row of any table is written
    assert world.run(run_id) == before
    assert (world.count("rp_attempts"), world.attempt(old.attempt_id)["status"]) == (2, "lost")
    world.commit(world.commit_checkpoint(new))
    world.commit(world.renew(new))
