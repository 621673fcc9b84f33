import pytest

from runtime_persist.commands.activate_lease import ActivateLease
from runtime_persist.commands.report_attempt_event import ReportAttemptEvent
from runtime_persist.commands.request_start import RequestStart
from runtime_persist.errors import IllegalTransition
from runtime_persist.model.lease import EMPTY_DOMAIN_SET
from tests.fixtures.contracts import Leased, Receipt, changed


def starting(world):
    held = world.claimed()
    world.commit(ActivateLease(revocation=EMPTY_DOMAIN_SET, attempt_id="x", **world.of_lease(held)))
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
    assert world.run(held.run_id)["status"] == "running"
    assert world.events(held.run_id)[-2:] == ["attempt.running", "run.running"]


@pytest.mark.parametrize("attempt_id", ["another", ""])
def test_another_attempt_is_refused(world, attempt_id):
    world.refused(make(world, starting(world), attempt_id=attempt_id), IllegalTransition)


def test_an_attempt_that_was_not_started_is_refused(world):
    held = world.claimed()
    world.set_run(held.run_id, phase="active")
    world.refused(make(world, held), IllegalTransition)
