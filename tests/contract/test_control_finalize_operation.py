import pytest

from runtime_persist.commands.control_finalize_operation import ControlFinalizeOperation
from runtime_persist.commands.end_attempt import EndAttempt
from runtime_persist.commands.finalize_run import FinalizeRun
from runtime_persist.errors import IllegalTransition, OperationNotFound, RunNotFound
from runtime_persist.model.states import TryStatus
from tests.fixtures.contracts import Receipt, changed


def cancelled(world, held):
    return FinalizeRun.cancelled(reason="cancel", **(world.of_thread(held.thread_id) | world.of_lease(held)))


def left(world, thread_id="thread-1", *, hooked=False):
    """A run that ended while an operation of it was open."""
    held = world.owned(thread_id)
    command = world.begin(held, hooked=hooked)
    world.commit(command)
    operation = command.operation_id
    world.commit(cancelled(world, held))
    return held, operation


def make(world, run_id, operation, *, happened=True):
    result, blobs = world.payload("what the outside says")
    fields = {"result": result, "outcome": b"o", "owner": "space", "blobs": blobs} if happened else {}
    return ControlFinalizeOperation(run_id=run_id, operation_id=operation, happened=happened, **fields, **world.base())


class TestReceipt(Receipt):
    def make(self, world):
        held, operation = left(world)
        return make(world, held.run_id, operation)

    def other(self, world, command):
        return changed(command, happened=False)


def test_it_happened_and_the_run_stays_as_it_ended(world):
    held, operation = left(world)
    assert world.tries(operation) == ["started"]  # nobody guessed
    before = world.run(held.run_id)
    command = make(world, held.run_id, operation)
    assert world.commit(command).result == {"status": "succeeded", "run_status": "cancelled"}
    row = world.operation(operation)
    assert (row["status"], row["phase"], row["result"]) == ("succeeded", "completed", command.result)
    assert world.tries(operation) == ["succeeded"]
    after = world.run(held.run_id)
    assert [after[name] for name in ("status", "finished_us", "epoch")] == [
        before[name] for name in ("status", "finished_us", "epoch")
    ]
    assert world.events(held.run_id)[-1] == "operation.resolved"


def test_of_an_operation_with_response_hooks_the_result_is_a_raw_answer_that_counts_when_they_were_asked(world):
    held, operation = left(world, hooked=True)
    command = make(world, held.run_id, operation)
    assert world.commit(command).result == {"status": "pending", "run_status": "cancelled"}
    row = world.operation(operation)
    assert (row["status"], row["phase"], row["raw"], row["result"]) == ("pending", "raw_saved", command.result, None)
    assert world.tries(operation) == ["succeeded"]
    world.refused(make(world, held.run_id, operation), IllegalTransition)


def test_it_did_not_happen_and_is_called_again_by_who_comes_to_it(world):
    held, operation = left(world)
    world.commit(make(world, held.run_id, operation, happened=False))
    row = world.operation(operation)
    assert (row["status"], row["error_type"]) == ("failed", "DidNotHappen")
    later = world.owned()
    world.commit(world.next_try(later, operation))
    assert world.tries(operation) == ["failed", "started"]


def test_one_that_a_later_run_has_tried_is_not_settled_for_the_one_that_ended(world):
    held, operation = left(world)
    later = world.owned()
    world.commit(world.next_try(later, operation))
    world.refused(make(world, held.run_id, operation), IllegalTransition)
    assert world.tries(operation) == ["unknown", "started"]


def test_a_run_that_has_not_ended_is_refused(world):
    held = world.owned()
    world.refused(make(world, held.run_id, world.begun(held)), IllegalTransition)


@pytest.mark.parametrize("how", ["succeeded", "failed", "another is due"])
def test_one_of_which_it_is_known_is_refused(world, how):
    held = world.owned()
    operation = world.begun(held)
    if how == "another is due":
        named = {"operation_id": operation, "name": "charge", "try_no": 1, "retry_in_us": 0}
        world.commit(EndAttempt(status=TryStatus.FAILED, **named, **world.of_lease(held)))
    else:
        world.raw.rows("UPDATE rp_operations SET status = ?, ended_us = 1", how)
        world.raw.rows("UPDATE rp_operation_tries SET status = ?", how)
    world.commit(cancelled(world, held))
    world.refused(make(world, held.run_id, operation), IllegalTransition)


def test_an_operation_of_another_thread_and_unknown_ids_are_refused(world):
    held, operation = left(world)
    _, other = left(world, "another")
    world.refused(make(world, held.run_id, other), OperationNotFound)
    world.refused(make(world, held.run_id, "none"), OperationNotFound)
    world.refused(make(world, "nobody", operation), RunNotFound)
