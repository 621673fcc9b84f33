import pytest

from runtime_persist.commands.answer_question import AnswerQuestion
from runtime_persist.commands.yield_attempt import YieldAttempt
from runtime_persist.errors import IllegalTransition, RunNotFound
from runtime_persist.model.states import RunStatus
from tests.fixtures.contracts import Receipt, changed


def waiting(world):
    held = world.owned()
    world.commit(YieldAttempt(reason="interrupt", question=b"?", **world.of_lease(held)))
    return held.run_id


def make(world, run_id):
    answer, blobs = world.payload("a rather long answer")
    return AnswerQuestion(run_id=run_id, answer=answer, owner="space", blobs=blobs, **world.base())


class TestReceipt(Receipt):
    def make(self, world):
        return make(world, waiting(world))

    def other(self, world, command):
        return changed(command, answer=b"another")


def test_the_run_is_queued_with_its_answer(world):
    run_id = waiting(world)
    command = make(world, run_id)
    blobs = world.count("rp_blobs")
    assert world.commit(command).result == {"status": "queued"}
    run = world.run(run_id)
    assert (run["status"], run["answer"], run["question"]) == ("queued", command.answer, None)
    assert run["queued_us"] == run["updated_us"]
    assert world.count("rp_blobs") == blobs + 1
    assert world.events(run_id)[-2:] == ["run.answered", "run.queued"]


@pytest.mark.parametrize("status", sorted(set(RunStatus) - {RunStatus.WAITING_APPROVAL}))
def test_a_run_that_does_not_wait_is_refused(world, status):
    held = world.owned()
    world.set_run(held.run_id, status=status)
    world.refused(make(world, held.run_id), IllegalTransition)


def test_a_question_is_answered_once(world):
    run_id = waiting(world)
    world.commit(make(world, run_id))
    world.refused(make(world, run_id), IllegalTransition)


def test_an_unknown_run_is_refused(world):
    world.refused(make(world, "nobody"), RunNotFound)
