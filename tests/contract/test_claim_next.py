"""What is claimed, and in which order. The gates are in tests/capacity."""

import time

import pytest

from runtime_persist.commands.move_to_front import MoveToFront
from runtime_persist.commands.register_graph import RegisterGraph
from runtime_persist.errors import NothingToClaim
from runtime_persist.model.retry import RetryPolicy
from runtime_persist.queries.claiming import heads
from tests.fixtures.contracts import Receipt, changed
from tests.fixtures.raw import wait_until
from tests.fixtures.world import World


@pytest.fixture
def world(world: World) -> World:
    for graph in ("g", "h"):
        world.commit(RegisterGraph(graph=graph, **world.base()))
    return world


class TestReceipt(Receipt):
    def make(self, world):
        world.queued()
        return world.claim_next()

    def other(self, world, command):
        return changed(command, graph="h")


def later_than(millisecond):
    return lambda: time.time_ns() // 1_000_000 > millisecond


def claimed(world, graph="g", kind="queued", **fields):
    return world.commit(world.claim_next(graph, kind, **fields)).result


def look(world, **versions):
    """What a worker is offered: kind, graph and run, in order."""
    found = world.engine.coordinator.read("heads", lambda: heads(world.space, versions or {"g": ()}, 10)).result()
    return [(head.kind, head.graph, head.run_id) for head in found]


def served(world, graph):
    return world.raw.value("SELECT served_no FROM rp_graphs WHERE graph = ?", graph)


def test_a_queued_run_is_dispatched_under_its_first_epoch(world):
    run_id = world.queued()
    result = claimed(world)
    assert (result["run_id"], result["thread_id"], result["graph"]) == (run_id, "thread-1", "g")
    assert (result["epoch"], result["takeover"], result["control"]) == (1, False, "open")
    run, attempt = world.run(run_id), world.attempt(result["attempt_id"])
    assert (run["status"], run["phase"]) == ("dispatching", "recovering")
    assert (run["worker_id"], run["instance_id"]) == ("w", "i")
    assert (attempt["status"], attempt["cause"], attempt["instance_id"]) == ("claimed", "initial", "i")
    assert world.thread_row()["owner_run_id"] == run_id
    assert world.events(run_id)[2:] == ["lease.claimed", "attempt.claimed", "run.dispatching"]


STARTED = ["lease.activated", "attempt.start_requested", "attempt.running", "run.running"]


def test_a_worker_that_executes_the_run_itself_has_started_it_with_its_claim(world):
    run_id = world.queued()
    result = claimed(world, starts=True)
    run, attempt = world.run(run_id), world.attempt(result["attempt_id"])
    assert (result["started"], result["takeover"], result["epoch"]) == (True, False, 1)
    assert (run["status"], run["phase"], run["revocation"]) == ("running", "active", "empty-domain-set")
    assert (attempt["status"], attempt["runtime"], attempt["observed_state"]) == ("running", "inprocess", "running")
    assert attempt["start_requested_us"] == attempt["claimed_us"]
    assert world.events(run_id)[2:] == ["lease.claimed", "attempt.claimed", "run.dispatching", *STARTED]


def test_an_attempt_that_was_claimed_but_never_started_is_started_by_the_next_claim(world):
    run_id = world.queued()
    before = claimed(world)
    world.set_run(run_id, expires_us=1)
    result = claimed(world, kind="left", starts=True)
    assert (result["started"], result["attempt_id"]) == (True, before["attempt_id"])
    assert world.attempt(before["attempt_id"])["status"] == "running"
    assert world.events(run_id)[-4:] == STARTED


def test_a_claim_starts_nothing_that_is_taken_over_or_past_its_deadline(world):
    held = world.owned()
    world.expire(held)
    assert claimed(world, kind="left", starts=True)["started"] is False
    assert world.run(held.run_id)["status"] == "lost"
    late = world.queued("late")
    world.set_run(late, deadline_us=1)
    result = claimed(world, starts=True)
    assert (result["started"], result["control"]) == (False, "stopping")
    assert world.run(late)["status"] == "dispatching"


def test_a_claim_starts_nothing_while_what_an_older_epoch_opened_is_not_revoked(world):
    """Its worker died between opening what it would work in and its start fence: no takeover, and no start either."""
    old = world.activated(world.claimed())
    world.with_domain(old, "d")
    world.expire(old)
    result = claimed(world, kind="left", starts=True)
    assert (result["started"], result["takeover"], result["domains_open"]) == (False, False, 1)
    run = world.run(old.run_id)
    assert (run["status"], run["phase"], world.attempt(old.attempt_id)["status"]) == (
        "dispatching",
        "recovering",
        "claimed",
    )


def test_runs_come_by_priority_then_in_the_order_in_which_they_were_queued(world):
    runs = [world.queued(f"t{n}", priority=priority) for n, priority in enumerate([0, 5, 0, 5, -1])]
    assert [claimed(world)["run_id"] for _ in runs] == [runs[n] for n in (1, 3, 0, 2, 4)]
    world.refused(world.claim_next(), NothingToClaim)


def test_what_was_moved_to_the_front_comes_before_every_priority(world):
    runs = [world.queued(f"t{n}", priority=priority) for n, priority in enumerate([0, 5, 0])]
    for moved in (runs[0], runs[2]):
        world.commit(MoveToFront(run_id=moved, **world.base()))
        wait_until(later_than(time.time_ns() // 1_000_000), "the next millisecond")  # SQLite counts them
    assert [claimed(world)["run_id"] for _ in runs] == [runs[n] for n in (2, 0, 1)]


def test_the_older_open_run_of_a_thread_comes_first_whatever_its_priority(world):
    first = world.queued()
    second = world.queued(priority=9)
    assert claimed(world)["run_id"] == first
    world.refused(world.claim_next(), NothingToClaim)
    assert look(world) == []
    world.set_run(first, status="succeeded", finished_us=1, phase="released", expires_us=0)
    assert claimed(world)["run_id"] == second


def test_a_run_whose_retry_is_due_is_a_head_of_its_own(world):
    held = world.owned(retry_policy=RetryPolicy(max_attempts=2, backoff=60, jitter=0).encoded())
    world.commit(world.fail_attempt(held))
    assert look(world) == []
    world.refused(world.claim_next(kind="due"), NothingToClaim)
    world.set_run(held.run_id, next_attempt_us=1)
    assert look(world) == [("due", "g", held.run_id)]
    result = claimed(world, kind="due")
    assert (result["run_id"], world.attempt(result["attempt_id"])["cause"]) == (held.run_id, "retry")


def test_a_run_whose_lease_ran_out_is_taken_over(world):
    held = world.owned()
    assert look(world) == []
    world.refused(world.claim_next(kind="left"), NothingToClaim)
    world.expire(held)
    assert look(world) == [("left", "g", held.run_id)]
    result = claimed(world, kind="left")
    assert (result["run_id"], result["takeover"], result["epoch"]) == (held.run_id, True, 2)
    assert world.run(held.run_id)["instance_id"] == "i"


def test_what_could_not_be_taken_over_comes_last_and_the_one_tried_longest_ago_first(world):
    tried = [world.owned(f"t{n}") for n in range(3)]
    for place, held in enumerate(tried):
        world.set_run(held.run_id, revocation="blocked", expires_us=[3, 1, 2][place], queued_us=1)
    fresh = world.owned("t3")
    world.set_run(fresh.run_id, queued_us=2)
    world.expire(fresh)
    queued = world.queued("t4")
    assert look(world) == [("left", "g", fresh.run_id), ("queued", "g", queued)]
    world.commit(world.claim_next(kind="left"))
    assert look(world) == [("queued", "g", queued), ("left", "g", tried[1].run_id)]


def test_a_run_that_is_being_stopped_is_offered_to_everybody_and_only_to_be_ended(world):
    held = world.owned(graph="nobody's")
    world.set_run(held.run_id, control="stopping", stop_reason="cancel", expires_us=0)
    assert look(world) == [("to_end", "nobody's", held.run_id)]
    world.refused(world.claim_next("nobody's", "left"), NothingToClaim)


@pytest.mark.parametrize(("versions", "found"), [((), False), (("v1",), False), (("v2",), True), (("*",), True)])
def test_a_run_of_another_version_is_passed_over(world, versions, found):
    other, own = world.queued("a", graph_version="v2"), world.queued("b")
    first = other if found else own
    assert look(world, g=versions) == [("queued", "g", first)]
    assert claimed(world, versions=versions)["run_id"] == first


def test_graphs_take_turns_and_a_turn_that_somebody_had_meanwhile_is_refused(world):
    for number in range(3):
        world.queued(f"g{number}")
        world.queued(f"h{number}", graph="h")
    order = []
    for _ in range(6):
        (_, graph, _), *_ = look(world, g=(), h=())
        before = served(world, graph)
        order.append(graph)
        claimed(world, graph, served_no=before)
        assert served(world, graph) > before
        error = world.refused(world.claim_next(graph, served_no=before), NothingToClaim)
        assert error.details["served"]
    assert order == ["g", "h"] * 3


def test_a_higher_priority_comes_before_a_turn(world):
    world.queued("g0")
    urgent = world.queued("h0", graph="h", priority=1)
    claimed(world, "h", served_no=0)
    world.set_run(urgent, status="queued")
    assert look(world, g=(), h=())[0] == ("queued", "h", urgent)


def test_a_claim_without_a_turn_leaves_the_order_as_it_is(world):
    world.queued()
    claimed(world)
    assert served(world, "g") == 0


def test_a_claim_without_a_turn_is_refused_while_a_run_of_another_graph_could_be_claimed(world):
    """It was queued since the look: by the next one it has its turn."""
    first = world.queued()
    waits = world.queued("h0", graph="h", graph_version="v1", scope="s")
    error = world.refused(world.claim_next(others=("h:", "h:v1")), NothingToClaim)
    assert error.details["served"]
    assert claimed(world, others=("h:",))["run_id"] == first  # of a version that the worker has not
    world.queued("g1")
    world.set_run(first, scope="s")
    assert claimed(world, others=("h:", "h:v1"))["graph"] == "g"  # its scope is taken
    world.queued("g2")
    world.set_run(first, scope=None)
    world.commit(RegisterGraph(graph="h", max_concurrency=1, **world.base()))
    world.commit(world.start_owned_run("h1", graph="h"))
    assert claimed(world, others=("h:", "h:v1"))["graph"] == "g"  # its graph is full
    world.queued("g3")
    world.set_run(waits, status="running", revocation="blocked", phase="active", expires_us=1)
    assert claimed(world, others=("h:", "h:v1"))["graph"] == "g"  # what is blocked comes last


def test_a_graph_that_nobody_registered_is_not_offered(world):
    world.queued(graph="unregistered")
    assert look(world, unregistered=()) == []


def test_another_space_is_another_world(world):
    world.queued()
    assert world.engine.coordinator.read("heads", lambda: heads("elsewhere", {"g": ()}, 10)).result() == []
