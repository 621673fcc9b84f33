import pytest

from runtime_persist.commands.activate_lease import ActivateLease
from runtime_persist.commands.request_start import RequestStart
from runtime_persist.errors import IllegalTransition
from tests.fixtures.contracts import Leased, Receipt, changed


@pytest.fixture
def activated(world):
    return active(world)


def active(world):
    held = world.claimed()
    world.commit(ActivateLease(attempt_id="x", **world.of_lease(held)))
    return held


def make(world, held, **fields):
    return RequestStart(**({"attempt_id": held.attempt_id} | world.of_lease(held) | fields))


class TestGuard(Leased):
    open_only = True

    def held(self, world):
        return active(world)

    def send(self, world, held):
        return make(world, held)


class TestReceipt(Receipt):
    def make(self, world):
        return make(world, active(world))

    def other(self, world, command):
        return changed(command, attempt_id="another")


def test_the_start_fence_is_written(world, activated):
    world.commit(make(world, activated))
    attempt = world.attempt(activated.attempt_id)
    assert attempt["status"] == "starting"
    assert attempt["start_requested_us"] > 0
    assert world.run(activated.run_id)["status"] == "dispatching"
    assert world.events(activated.run_id)[-1] == "attempt.start_requested"


def test_another_attempt_is_refused(world, activated):
    world.refused(make(world, activated, attempt_id="another"), IllegalTransition)


def test_an_attempt_is_started_once(world, activated):
    world.commit(make(world, activated))
    world.refused(make(world, activated), IllegalTransition)
