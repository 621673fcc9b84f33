import pytest

from runtime_persist.commands.complete_operation import CompleteOperation
from runtime_persist.errors import IllegalTransition
from tests.fixtures.contracts import Leased, Replay, changed


class TestGuard(Leased):
    def send(self, world, held):
        return world.complete(held, world.begun(held))


class TestReplay(Replay):
    def make(self, world):
        held = world.owned()
        return world.complete(held, world.begun(held))

    def other(self, world, command):
        return changed(command, result=b"another", outcome=b"another")


def test_a_result_is_stored_with_its_content(world):
    held = world.owned()
    operation = world.begun(held)
    blobs = world.count("rp_blobs")
    command = world.complete(held, operation)
    assert world.commit(command).result == {}
    row = world.operation(operation)
    assert (row["status"], row["result"], row["result_fingerprint"]) == (
        "succeeded", command.result, command.outcome,
    )  # fmt: skip
    assert row["ended_us"] > 0
    assert world.tries(operation) == ["succeeded"]
    assert world.count("rp_blobs") == blobs + 1
    assert world.events(held.run_id)[-2:] == ["operation.started", "operation.completed"]


@pytest.mark.parametrize("try_status", ["failed", "unknown"])
def test_a_failure_is_stored(world, try_status):
    held = world.owned()
    operation = world.begun(held)
    world.commit(CompleteOperation.failed(
        error_type="ValueError", error_text="no", outcome=b"f", try_status=try_status,
        operation_id=operation, name="charge", try_no=1, **world.of_lease(held),
    ))  # fmt: skip
    row = world.operation(operation)
    assert (row["status"], row["error_type"], row["error_text"], row["result"]) == (
        "failed", "ValueError", "no", None,
    )  # fmt: skip
    assert world.tries(operation) == [try_status]


@pytest.mark.parametrize("try_no", [0, 2])
def test_another_try_than_the_current_one_is_refused(world, try_no):
    held = world.owned()
    world.refused(world.complete(held, world.begun(held), try_no=try_no), IllegalTransition)


def test_a_late_outcome_of_an_older_try_is_refused(world):
    held = world.owned()
    operation = world.begun(held)
    late = world.complete(held, operation)
    world.commit(world.next_try(held, operation))
    world.refused(late, IllegalTransition)
    world.commit(world.complete(held, operation, try_no=2))
    assert world.tries(operation) == ["unknown", "succeeded"]
    world.refused(late, IllegalTransition)


def test_an_unknown_operation_is_refused(world):
    world.refused(world.complete(world.owned(), "none"), IllegalTransition)
