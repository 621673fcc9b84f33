import pytest

from runtime_persist.commands.resolve_unknown import ResolveUnknown
from runtime_persist.commands.yield_attempt import YieldAttempt
from runtime_persist.errors import IllegalTransition, OperationNotFound, RunNotFound
from tests.fixtures.contracts import Receipt, changed


def asked(world, thread_id="thread-1", *, hooked=False):
    """A run that waits because an operation's try is unknown."""
    held = world.owned(thread_id)
    command = world.begin(held, hooked=hooked)
    world.commit(command)
    operation = command.operation_id
    world.raw.rows("UPDATE rp_operation_tries SET status = 'unknown' WHERE operation_id = ?", operation)
    world.commit(YieldAttempt(reason="ask", question=b"?", **world.of_lease(held)))
    return held.run_id, operation


def make(world, run_id, operation, *, happened=True):
    result, blobs = world.payload("what the outside says")
    fields = {"result": result, "outcome": b"o", "owner": "space", "blobs": blobs} if happened else {}
    return ResolveUnknown(run_id=run_id, operation_id=operation, happened=happened, **fields, **world.base())


class TestReceipt(Receipt):
    def make(self, world):
        return make(world, *asked(world))

    def other(self, world, command):
        return changed(command, happened=False)


def test_it_happened_and_the_result_is_stored(world):
    run_id, operation = asked(world)
    command = make(world, run_id, operation)
    assert world.commit(command).result == {"status": "succeeded", "run_status": "queued"}
    row = world.operation(operation)
    assert (row["status"], row["result"], row["result_fingerprint"]) == ("succeeded", command.result, b"o")
    assert world.tries(operation) == ["succeeded"]
    run = world.run(run_id)
    assert (run["status"], run["question"]) == ("queued", None)
    assert world.events(run_id)[-2:] == ["operation.resolved", "run.queued"]


def test_of_an_operation_with_response_hooks_the_result_is_a_raw_answer_that_counts_when_they_were_asked(world):
    run_id, operation = asked(world, hooked=True)
    command = make(world, run_id, operation)
    assert world.commit(command).result == {"status": "pending", "run_status": "queued"}
    row = world.operation(operation)
    assert (row["status"], row["phase"], row["raw"], row["raw_fingerprint"]) == (
        "pending",
        "raw_saved",
        command.result,
        b"o",
    )
    assert (row["result"], row["ended_us"]) == (None, None)
    assert world.tries(operation) == ["succeeded"]
    world.refused(make(world, run_id, operation), IllegalTransition)


def test_it_did_not_happen_and_may_be_tried_again(world):
    run_id, operation = asked(world)
    world.commit(make(world, run_id, operation, happened=False))
    row = world.operation(operation)
    assert (row["status"], row["result"], row["error_type"]) == ("failed", None, "DidNotHappen")
    assert world.tries(operation) == ["failed"]
    assert world.run(run_id)["status"] == "queued"


@pytest.mark.parametrize("status", ["started", "succeeded", "failed", "cancelled"])
def test_a_try_that_is_not_unknown_is_refused(world, status):
    run_id, operation = asked(world)
    world.raw.rows("UPDATE rp_operation_tries SET status = ?", status)
    world.refused(make(world, run_id, operation), IllegalTransition)


@pytest.mark.parametrize("status", ["running", "dispatching", "lost", "queued", "succeeded"])
def test_a_run_that_does_not_wait_is_refused(world, status):
    run_id, operation = asked(world)
    world.set_run(run_id, status=status)
    world.refused(make(world, run_id, operation), IllegalTransition)


def test_an_operation_of_another_thread_is_refused(world):
    run_id, _ = asked(world)
    _, other = asked(world, "another")
    world.refused(make(world, run_id, other), OperationNotFound)


def test_unknown_runs_and_operations_are_refused(world):
    run_id, operation = asked(world)
    world.refused(make(world, run_id, "none"), OperationNotFound)
    world.refused(make(world, "nobody", operation), RunNotFound)
