import pytest

from runtime_persist.errors import IllegalTransition
from tests.fixtures.contracts import Leased, changed
from tests.fixtures.world import Held


class TestGuard(Leased):
    open_only = True

    def send(self, world, held):
        return world.next_try(held, world.begun(held))


def test_the_next_try_is_started_and_the_one_before_stated_unknown(world):
    held = world.owned()
    operation = world.begun(held)
    assert world.commit(world.next_try(held, operation)).result == {}
    row = world.operation(operation)
    assert (row["try_no"], row["status"], row["epoch"]) == (2, "pending", held.epoch)
    assert world.tries(operation) == ["unknown", "started"]
    assert world.events(held.run_id)[-2:] == ["operation.started"] * 2


def test_a_failed_try_stays_failed_and_its_error_is_cleared_from_the_operation(world):
    held = world.owned()
    operation = world.begun(held)
    command = world.complete(held, operation)
    world.commit(type(command).failed(
        error_type="ValueError", error_text="no", outcome=b"f",
        operation_id=operation, name="charge", try_no=1, **world.of_lease(held),
    ))  # fmt: skip
    world.commit(world.next_try(held, operation))
    row = world.operation(operation)
    assert (row["status"], row["error_type"], row["error_text"], row["ended_us"]) == ("pending", None, None, None)
    assert world.tries(operation) == ["failed", "started"]


def test_sent_again_it_is_replayed(world):
    held = world.owned()
    command = world.next_try(held, world.begun(held))
    world.commit(command)
    with world.nothing_written():
        assert world.commit(command).replayed


def test_a_try_of_another_epoch_is_not_a_receipt(world):
    held = world.owned()
    operation = world.begun(held)
    command = world.next_try(held, operation)
    world.commit(command)
    world.take_over(held)
    world.refused(changed(command, epoch=held.epoch + 1), IllegalTransition)


@pytest.mark.parametrize("try_no", [1, 3])
def test_only_the_next_number_is_accepted(world, try_no):
    held = world.owned()
    operation = world.begun(held)
    world.commit(world.next_try(held, operation))
    world.take_over(held)
    mine = Held(held.run_id, held.epoch + 1, held.attempt_id)
    world.refused(world.next_try(mine, operation, {1: 1, 3: 4}[try_no]), IllegalTransition)


def test_an_operation_that_succeeded_is_not_tried_again(world):
    held = world.owned()
    operation = world.begun(held)
    world.commit(world.complete(held, operation))
    world.refused(world.next_try(held, operation), IllegalTransition)


def test_an_unknown_operation_is_refused(world):
    world.refused(world.next_try(world.owned(), "none"), IllegalTransition)
