import ormsgpack
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
    return AnswerQuestion(run_id=run_id, answer=answer, said=b"said", owner="space", blobs=blobs, **world.base())


class TestReceipt(Receipt):
    def make(self, world):
        return make(world, waiting(world))

    def other(self, world, command):
        return changed(command, said=b"something else")


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


def test_an_answer_to_one_question_is_no_answer_to_the_next(world):
    run_id = waiting(world)
    asked = world.run(run_id)["attempt_id"]
    world.refused(changed(make(world, run_id), question_id="an earlier attempt"), IllegalTransition)
    assert world.commit(changed(make(world, run_id), question_id=asked)).result == {"status": "queued"}


def test_who_answered_what_and_when_is_an_event(world):
    run_id = waiting(world)
    world.commit(changed(make(world, run_id), actor="user:ann", interrupt_ids=("i1", "i2")))
    event = world.raw.one("SELECT * FROM rp_events WHERE run_id = ? AND type = 'run.answered'", run_id)
    assert event["actor"] == "user:ann"
    assert event["attempt_id"] == world.run(run_id)["attempt_id"]
    assert ormsgpack.unpackb(event["payload"]) == {"interrupt_ids": ["i1", "i2"]}
