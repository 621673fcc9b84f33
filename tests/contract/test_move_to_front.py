import pytest

from runtime_persist.commands.move_to_front import MoveToFront
from runtime_persist.commands.register_graph import RegisterGraph
from runtime_persist.errors import IllegalTransition, RunNotFound
from runtime_persist.model.retry import RetryPolicy
from runtime_persist.queries import claiming
from tests.fixtures.contracts import Receipt, changed


def make(world, run_id):
    return MoveToFront(run_id=run_id, **world.base())


def first(world):
    """The run that a worker is offered first, if any."""
    world.commit(RegisterGraph(graph="g", **world.base()))
    found = world.engine.coordinator.read("heads", lambda: claiming.heads(world.space, {"g": ()}, 10)).result()
    return found[0].run_id if found else None


class TestReceipt(Receipt):
    def make(self, world):
        return make(world, world.queued())

    def other(self, world, command):
        return changed(command, run_id=world.queued("another thread"))


def test_of_the_runs_that_were_moved_the_last_comes_first_and_the_others_keep_their_order(world):
    runs = [world.queued(f"t{n}", priority=n % 2) for n in range(4)]
    for moved in (runs[2], runs[3]):
        assert world.commit(make(world, moved)).result == {"status": "queued"}
    assert world.events(runs[3])[-1] == "run.moved_to_front"
    for expected in (runs[3], runs[2], runs[1], runs[0]):
        assert first(world) == expected
        world.commit(world.claim_next())


def test_of_two_that_were_moved_while_the_clock_stood_still_the_last_comes_first_whatever_its_graph(world):
    graphs = ("g", "h")
    for graph in graphs:
        world.commit(RegisterGraph(graph=graph, **world.base()))
    runs = [world.queued(f"t{n}", graph=graphs[n % 2]) for n in range(4)]
    world.commit(make(world, runs[2]))
    ahead = -(2**53)
    world.set_run(runs[2], queued_us=ahead)  # as if it had been moved later than what follows
    for moved in (runs[1], runs[0]):
        world.commit(make(world, moved))
    assert [world.run(run_id)["queued_us"] for run_id in runs[:3]] == [ahead - 2, ahead - 1, ahead]
    found = world.engine.coordinator.read("heads", lambda: claiming.heads(world.space, dict.fromkeys(graphs, ()), 10))
    assert [head.run_id for head in found.result()] == [runs[0], runs[1]]


def test_a_claim_that_is_given_back_keeps_the_place(world):
    world.queued("a")
    moved = world.queued("b")
    world.commit(make(world, moved))
    world.commit(world.claim_run(moved, "b"))
    world.set_run(moved, expires_us=0)
    assert first(world) == moved


def test_a_run_that_waits_for_its_retry_does_not_wait_any_longer(world):
    held = world.owned(retry_policy=RetryPolicy(backoff=60).encoded())
    world.commit(world.fail_attempt(held))
    assert first(world) is None
    assert world.commit(make(world, held.run_id)).result == {"status": "queued"}
    run = world.run(held.run_id)
    assert (run["status"], run["next_attempt_us"], run["failures"]) == ("queued", None, 1)
    assert first(world) == held.run_id
    assert world.events(held.run_id)[-2:] == ["run.queued", "run.moved_to_front"]


def test_an_older_run_of_its_thread_still_comes_before_it(world):
    older, newer = world.queued(), world.queued()
    world.commit(make(world, newer))
    assert first(world) == older


@pytest.mark.parametrize("status", ["created", "dispatching", "running", "waiting_approval", "lost", "succeeded"])
def test_what_waits_for_no_worker_is_refused(world, status):
    run_id = world.queued()
    world.set_run(run_id, status=status)
    world.refused(make(world, run_id), IllegalTransition)


def test_an_unknown_run_is_refused(world):
    world.refused(make(world, "nobody"), RunNotFound)
