import pytest

from runtime_persist.commands.complete_operation import CompleteOperation
from runtime_persist.commands.save_attempt_raw import SaveAttemptRaw
from runtime_persist.errors import IllegalTransition
from runtime_persist.model.keys import fingerprint
from tests.fixtures.contracts import Leased, Replay, changed


def make(world, held, operation, value="what the outside said", try_no=1):
    raw, blobs = world.payload(value)
    return SaveAttemptRaw(
        operation_id=operation, name="charge", try_no=try_no, raw=raw, outcome=fingerprint(raw),
        owner=world.engine.owner, blobs=blobs, **world.of_lease(held),
    )  # fmt: skip


class TestGuard(Leased):
    def send(self, world, held):
        return make(world, held, world.begun(held))


class TestReplay(Replay):
    def make(self, world):
        held = world.owned()
        return make(world, held, world.begun(held))

    def other(self, world, command):
        return changed(command, raw=b"another", outcome=b"another")


def test_it_is_stored_with_its_content_and_the_operation_stays_pending(world):
    held = world.owned()
    operation = world.begun(held)
    blobs = world.count("rp_blobs")
    command = make(world, held, operation)
    world.commit(command)
    row = world.operation(operation)
    assert (row["status"], row["phase"], row["raw"], row["result"]) == ("pending", "raw_saved", command.raw, None)
    assert world.tries(operation) == ["succeeded"]
    assert world.count("rp_blobs") == blobs + 1
    assert world.events(held.run_id)[-2:] == ["operation.started", "operation.raw_saved"]


def test_the_call_is_never_made_again(world):
    held = world.owned()
    operation = world.begun(held)
    world.commit(make(world, held, operation))
    world.refused(world.next_try(held, operation), IllegalTransition)
    world.refused(make(world, held, operation, try_no=2), IllegalTransition)


def test_it_is_accepted_later_and_the_try_keeps_its_end(world):
    held = world.owned()
    operation = world.begun(held)
    world.commit(make(world, held, operation))
    ended = world.raw.value("SELECT ended_us FROM rp_operation_tries")
    command = world.complete(held, operation)
    world.commit(command)
    row = world.operation(operation)
    assert (row["status"], row["phase"], row["result"]) == ("succeeded", "completed", command.result)
    assert world.raw.value("SELECT ended_us FROM rp_operation_tries") == ended


def test_one_that_failed_behind_its_raw_result_may_be_tried_again(world):
    held = world.owned()
    operation = world.begun(held)
    world.commit(make(world, held, operation))
    said = {"error_type": "Denied", "error_text": "no", "outcome": b"f"}
    named = {"operation_id": operation, "name": "charge", "try_no": 1}
    world.commit(CompleteOperation.failed(**said, **named, **world.of_lease(held)))
    world.commit(world.next_try(held, operation))
    row = world.operation(operation)
    assert (row["phase"], row["raw"]) == ("executing", None)
    assert world.tries(operation) == ["succeeded", "started"]


@pytest.mark.parametrize("late", ["completed", "unknown id"])
def test_an_operation_that_does_not_execute_is_refused(world, late):
    held = world.owned()
    operation = world.begun(held)
    world.commit(world.complete(held, operation))
    world.refused(make(world, held, operation if late == "completed" else "none"), IllegalTransition)
