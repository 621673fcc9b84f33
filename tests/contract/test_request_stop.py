from typing import TYPE_CHECKING

import pytest

from runtime_persist.commands.request_stop import RequestStop
from runtime_persist.errors import LeaseReleased, RunNotFound
from tests.fixtures.contracts import Receipt, changed

if TYPE_CHECKING:
    from tests.fixtures.world import Held


def make(world, run_id, reason="cancel"):
    return RequestStop(run_id=run_id, reason=reason, **world.base())


class TestReceipt(Receipt):
    def make(self, world):
        return make(world, world.owned().run_id)

    def other(self, world, command):
        return changed(command, reason="deadline")


def test_a_running_run_stops_taking_new_work_and_keeps_its_lease(world):
    held = world.owned()
    before = world.run(held.run_id)
    assert world.commit(make(world, held.run_id)).result == {"status": "running", "control": "stopping"}
    run = world.run(held.run_id)
    assert (run["control"], run["stop_reason"], run["status"]) == ("stopping", "cancel", "running")
    assert [run[name] for name in ("epoch", "phase", "expires_us")] == [
        before[name] for name in ("epoch", "phase", "expires_us")
    ]
    assert world.attempt(held.attempt_id)["status"] == "running"
    assert world.events(held.run_id)[-1] == "run.stop_requested"


@pytest.mark.parametrize("status", ["queued", "waiting_approval", "retry_wait"])
@pytest.mark.parametrize(("reason", "final"), [("cancel", "cancelled"), ("deadline", "timed_out")])
def test_a_run_that_nobody_executes_ends_at_once(world, status, reason, final):
    run_id = world.queued()
    world.set_run(run_id, status=status)
    assert world.commit(make(world, run_id, reason)).result == {"status": final, "control": "stopping"}
    run = world.run(run_id)
    assert (run["status"], run["stop_reason"]) == (final, reason)
    assert run["finished_us"] > 0
    assert world.events(run_id)[-2:] == ["run.stop_requested", f"run.{final}"]


@pytest.mark.parametrize(("reason", "final"), [("cancel", "cancelled"), ("deadline", "timed_out")])
def test_a_run_that_was_claimed_but_not_started_ends_at_once_and_its_worker_lost_it(world, reason, final):
    held = world.claimed()
    assert world.commit(make(world, held.run_id, reason)).result["status"] == final
    assert world.run(held.run_id)["phase"] == "released"
    assert (world.attempt(held.attempt_id)["status"], world.count("rp_attempts")) == ("cancelled", 1)
    world.refused(world.renew(held), LeaseReleased)


def test_a_run_that_was_only_created_is_cancelled_whatever_the_reason(world):
    run_id = world.queued()
    world.set_run(run_id, status="created")
    assert world.commit(make(world, run_id, "deadline")).result["status"] == "cancelled"


def test_the_first_reason_counts(world):
    held = world.owned()
    world.commit(make(world, held.run_id, "cancel"))
    events = world.events(held.run_id)
    assert world.commit(make(world, held.run_id, "deadline")).result["control"] == "stopping"
    assert world.run(held.run_id)["stop_reason"] == "cancel"
    assert world.events(held.run_id) == events


@pytest.mark.parametrize("status", ["succeeded", "failed", "cancelled", "timed_out"])
def test_a_final_run_stays_as_it_is(world, status):
    run_id = world.queued()
    world.set_run(run_id, status=status)
    before = world.run(run_id)
    assert world.commit(make(world, run_id)).result == {"status": status, "control": "open"}
    assert world.run(run_id) == before


def test_a_claimed_attempt_that_went_back_to_the_queue_is_cancelled(world):
    held: Held = world.claimed()
    world.set_run(held.run_id, status="queued", phase="released", expires_us=0)
    world.raw.rows("UPDATE rp_attempts SET status = 'queued'")
    world.commit(make(world, held.run_id, "deadline"))
    assert world.attempt(held.attempt_id)["status"] == "cancelled"


def test_an_unknown_run_is_refused(world):
    world.refused(make(world, "nobody"), RunNotFound)
