import pytest

from runtime_persist.commands.move_to_front import MoveToFront
from runtime_persist.errors import IllegalTransition, RunNotFound
from runtime_persist.model.retry import RetryPolicy
from runtime_persist.queries import runs as run_queries
from tests.fixtures.contracts import Receipt, changed


def make(world, run_id):
    return MoveToFront(run_id=run_id, **world.base())


def order(world):
    """The runs as a worker is offered them."""
    graphs = {"g": ()}
    rows = world.engine.coordinator.read("claimable", lambda: run_queries.claimable(world.space, graphs, 10)).result()
    return [row["run_id"] for row in rows]


class TestReceipt(Receipt):
    def make(self, world):
        return make(world, world.queued())

    def other(self, world, command):
        return changed(command, run_id=world.queued("another thread"))


def test_of_the_runs_that_were_moved_the_last_comes_first_and_the_others_keep_their_order(world):
    runs = [world.queued(f"t{n}") for n in range(4)]
    assert order(world) == runs
    for moved in (runs[2], runs[3]):
        assert world.commit(make(world, moved)).result == {"status": "queued"}
    assert order(world) == [runs[3], runs[2], runs[0], runs[1]]
    assert world.events(runs[3])[-1] == "run.moved_to_front"


def test_a_claim_that_is_given_back_keeps_the_place(world):
    first, second = world.queued("a"), world.queued("b")
    world.commit(make(world, second))
    world.commit(world.claim_run(second, "b"))
    world.set_run(second, expires_us=0)
    assert order(world) == [second, first]


def test_a_run_that_waits_for_its_retry_does_not_wait_any_longer(world):
    held = world.owned(retry_policy=RetryPolicy(backoff=60).encoded())
    world.commit(world.fail_attempt(held))
    assert order(world) == []
    assert world.commit(make(world, held.run_id)).result == {"status": "queued"}
    run = world.run(held.run_id)
    assert (run["status"], run["next_attempt_us"], run["failures"]) == ("queued", None, 1)
    assert order(world) == [held.run_id]
    assert world.events(held.run_id)[-2:] == ["run.queued", "run.moved_to_front"]


def test_an_older_run_of_its_thread_still_comes_before_it(world):
    first, second = world.queued(), world.queued()
    world.commit(make(world, second))
    assert order(world) == [first]


@pytest.mark.parametrize("status", ["created", "dispatching", "running", "waiting_approval", "lost", "succeeded"])
def test_what_waits_for_no_worker_is_refused(world, status):
    run_id = world.queued()
    world.set_run(run_id, status=status)
    world.refused(make(world, run_id), IllegalTransition)


def test_an_unknown_run_is_refused(world):
    world.refused(make(world, "nobody"), RunNotFound)
