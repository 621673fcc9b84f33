import pytest

from runtime_persist.commands.end_attempt import EndAttempt
from runtime_persist.errors import IllegalTransition
from runtime_persist.model.states import TryStatus
from tests.fixtures.contracts import Leased, Replay, changed


def make(world, held, operation, **fields):
    said = {"status": TryStatus.FAILED, "error_type": "TimeoutError", "error_text": "down", "retry_in_us": 60_000_000}
    named = {"operation_id": operation, "name": "charge", "try_no": 1}
    return EndAttempt(**(named | said | world.of_lease(held) | fields))


class TestGuard(Leased):
    def send(self, world, held):
        return make(world, held, world.begun(held))


class TestReplay(Replay):
    def make(self, world):
        held = world.owned()
        return make(world, held, world.begun(held))

    def other(self, world, command):
        return changed(command, status=TryStatus.UNKNOWN)


def test_a_failed_try_leaves_its_operation_pending_with_the_next_one_due_later(world):
    held = world.owned()
    operation = world.begun(held)
    world.commit(make(world, held, operation))
    row = world.operation(operation)
    tried = world.raw.one("SELECT * FROM rp_operation_tries")
    assert (row["status"], row["phase"], row["try_no"], row["ended_us"]) == ("pending", "executing", 1, None)
    assert row["next_attempt_us"] >= tried["ended_us"] + 60_000_000
    assert (tried["status"], tried["error_type"], tried["error_text"]) == ("failed", "TimeoutError", "down")
    assert world.events(held.run_id)[-1] == "operation.attempt_ended"
    world.refused(world.next_try(held, operation), IllegalTransition)  # not due yet


def test_a_try_that_is_due_is_started_and_the_due_time_is_gone(world):
    held = world.owned()
    operation = world.begun(held)
    world.commit(make(world, held, operation, retry_in_us=0))
    world.commit(world.next_try(held, operation))
    assert world.operation(operation)["next_attempt_us"] is None
    assert world.tries(operation) == ["failed", "started"]


def test_a_try_that_nobody_waits_for_any_more_is_unknown_and_may_still_be_settled(world):
    held = world.owned()
    operation = world.begun(held)
    world.commit(make(world, held, operation, status=TryStatus.UNKNOWN, retry_in_us=None))
    assert world.operation(operation)["next_attempt_us"] is None
    assert world.tries(operation) == ["unknown"]
    world.commit(world.complete(held, operation))
    assert world.tries(operation) == ["succeeded"]


def test_a_stopping_run_says_how_a_try_ended(world):
    held = world.owned()
    operation = world.begun(held)
    world.set_run(held.run_id, control="stopping", stop_reason="cancel")
    world.commit(make(world, held, operation))
    assert world.tries(operation) == ["failed"]


@pytest.mark.parametrize("try_no", [0, 2])
def test_another_try_than_the_current_one_is_refused(world, try_no):
    held = world.owned()
    world.refused(make(world, held, world.begun(held), try_no=try_no), IllegalTransition)


def test_a_try_that_has_ended_is_refused(world):
    held = world.owned()
    operation = world.begun(held)
    world.commit(world.complete(held, operation))
    world.refused(make(world, held, operation), IllegalTransition)
