import pytest

from runtime_persist.commands.activate_lease import ActivateLease
from runtime_persist.commands.report_attempt_event import ReportAttemptEvent
from runtime_persist.commands.request_start import RequestStart
from runtime_persist.errors import IllegalTransition, ReportIgnored
from runtime_persist.model.evidence import Observed
from runtime_persist.model.shown import shown_status
from tests.fixtures.contracts import Leased, Receipt, changed
from tests.fixtures.world import Held


def starting(world):
    held = world.claimed()
    world.commit(ActivateLease(attempt_id="x", **world.of_lease(held)))
    world.commit(RequestStart(attempt_id=held.attempt_id, **world.of_lease(held)))
    return held


def make(world, held, **fields):
    return ReportAttemptEvent(**({"attempt_id": held.attempt_id} | world.of_lease(held) | fields))


class TestGuard(Leased):
    def held(self, world):
        return starting(world)

    def send(self, world, held):
        return make(world, held)


class TestReceipt(Receipt):
    def make(self, world):
        return make(world, starting(world))

    def other(self, world, command):
        return changed(command, attempt_id="another")


def test_attempt_and_run_are_running(world):
    held = starting(world)
    world.commit(make(world, held))
    attempt = world.attempt(held.attempt_id)
    assert (attempt["status"], attempt["observed_state"]) == ("running", "running")
    assert attempt["observed_us"] > 0
    assert (attempt["sync_state"], attempt["last_event_seq"]) == ("in_sync", 1)
    assert world.run(held.run_id)["status"] == "running"
    assert world.events(held.run_id)[-2:] == ["attempt.running", "run.running"]


def test_a_takeover_that_is_seen_running_ends_the_loss_of_its_run(world):
    held = world.owned()
    world.expire(held)
    taken = world.commit(world.claim_run(held.run_id)).result
    held = world.activated(Held(held.run_id, taken["epoch"], taken["attempt_id"]))
    assert world.run(held.run_id)["status"] == "lost"
    world.commit(RequestStart(attempt_id=held.attempt_id, **world.of_lease(held)))
    world.commit(make(world, held))
    assert world.run(held.run_id)["status"] == "running"
    assert world.events(held.run_id)[-2:] == ["attempt.running", "run.running"]


def test_an_accepted_attempt_waits_for_its_runtime_until_it_is_seen_running(world):
    held = starting(world)
    world.commit(make(world, held, observed=Observed.ACCEPTED))
    run, attempt = world.run(held.run_id), world.attempt(held.attempt_id)
    assert (attempt["status"], attempt["observed_state"]) == ("starting", "accepted")
    assert shown_status(run, run["updated_us"]) == "waiting_runtime"
    assert shown_status(run, run["expires_us"]) == "unknown"
    world.commit(make(world, held, sequence=2))
    run = world.run(held.run_id)
    assert shown_status(run, run["updated_us"]) == "running"
    assert world.events(held.run_id)[-3:] == ["attempt.accepted", "attempt.running", "run.running"]


def test_seen_running_again_is_noted_without_an_event(world):
    held = starting(world)
    world.commit(make(world, held))
    events = world.events(held.run_id)
    world.commit(make(world, held, sequence=7))
    world.commit(make(world, held, sequence=9, observed=Observed.ACCEPTED))
    attempt = world.attempt(held.attempt_id)
    assert (attempt["observed_state"], attempt["last_event_seq"]) == ("running", 9)
    assert world.events(held.run_id) == events


@pytest.mark.parametrize(("sequence", "reason"), [(5, "duplicate"), (4, "reordered"), (None, "missing_sequence")])
def test_what_is_not_newer_changes_nothing(world, sequence, reason):
    held = starting(world)
    world.commit(make(world, held, sequence=5))
    error = world.refused(make(world, held, sequence=sequence), ReportIgnored)
    assert error.details["reason"] == reason


@pytest.mark.parametrize("attempt_id", ["another", ""])
def test_another_attempt_is_refused(world, attempt_id):
    world.refused(make(world, starting(world), attempt_id=attempt_id), IllegalTransition)


def test_an_attempt_that_was_not_started_is_refused(world):
    held = world.claimed()
    world.set_run(held.run_id, phase="active")
    world.refused(make(world, held), IllegalTransition)


def test_how_an_attempt_ended_is_no_report(world):
    world.refused(make(world, starting(world), observed=Observed.SUCCEEDED), IllegalTransition)
