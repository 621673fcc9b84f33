import pytest

from runtime_persist.commands.yield_attempt import YieldAttempt
from runtime_persist.errors import IllegalTransition
from tests.fixtures.contracts import Leased, Receipt, changed


def make(world, held, reason="interrupt", **fields):
    question, blobs = world.payload("a rather long question?")
    made = {"reason": reason, "question": question, "owner": "space", "blobs": blobs}
    return YieldAttempt(**(made | world.of_lease(held) | fields))


class TestGuard(Leased):
    open_only = True  # a stopping run is ended instead: nobody would ever answer its question

    def send(self, world, held):
        return make(world, held)


class TestReceipt(Receipt):
    def make(self, world):
        return make(world, world.owned())

    def other(self, world, command):
        return changed(command, reason="ask")


@pytest.mark.parametrize("reason", ["interrupt", "ask", "budget"])
def test_a_run_with_a_question_waits_and_its_lease_is_released(world, reason):
    held = world.owned()
    command = make(world, held, reason)
    assert world.commit(command).result == {"status": "waiting_approval"}
    run, attempt = world.run(held.run_id), world.attempt(held.attempt_id)
    assert (run["status"], run["phase"], run["expires_us"]) == ("waiting_approval", "released", 0)
    assert (run["question"], run["answer"]) == (command.question, None)
    assert (attempt["status"], attempt["termination_reason"]) == ("yielded", reason)
    assert attempt["ended_us"] > 0
    assert world.events(held.run_id)[-2:] == ["attempt.yielded", "run.waiting_approval"]


def test_a_drained_run_is_queued_again_where_it_was(world):
    held = world.owned()
    before = world.run(held.run_id)["queued_us"]
    assert world.commit(make(world, held, "drain", question=None, blobs=())).result == {"status": "queued"}
    run = world.run(held.run_id)
    assert (run["status"], run["phase"], run["question"]) == ("queued", "released", None)
    assert run["queued_us"] == before > 0
    assert world.events(held.run_id)[-2:] == ["attempt.yielded", "run.queued"]


def test_an_attempt_that_was_never_started_cannot_yield(world):
    held = world.claimed()
    world.set_run(held.run_id, phase="active")
    world.refused(make(world, held), IllegalTransition)
