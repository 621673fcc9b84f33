"""The three gates of a claim: a slot of its instance, a place of its graph, its scope. On each database."""

import dataclasses

import pytest

from runtime_persist.commands.claim_next import ClaimNext
from runtime_persist.commands.claim_run import ClaimRun
from runtime_persist.commands.move_to_front import MoveToFront
from runtime_persist.commands.register_graph import RegisterGraph
from runtime_persist.commands.request_stop import RequestStop
from runtime_persist.errors import CapacityReached, CapacityUnknown, NothingToClaim
from tests.fixtures.contracts import changed
from tests.fixtures.world import World

HOLDS = ["dispatching", "running", "lost", "stopping"]
"""What a run may be and still hold its slot, its graph's place and its scope."""


@pytest.fixture
def world(world: World) -> World:
    world.instance()
    world.commit(RegisterGraph(graph="g", **world.base()))
    return world


def slots(world, number, *ids):
    world.commit(world.report(report_no=2, slots=number, active_task_ids=ids))


def limit(world, number, graph="g"):
    world.commit(RegisterGraph(graph=graph, max_concurrency=number, **world.base()))


def held(world, thread_id, state, **request):
    """A run that was claimed by instance ``i`` and is in this state now."""
    run_id = world.queued(thread_id, **request)
    epoch = world.commit(world.claim_run(run_id, thread_id)).result["epoch"]
    status = "running" if state == "stopping" else state
    world.set_run(run_id, status=status, **({"control": "stopping"} if state == "stopping" else {}))
    return run_id, f"{run_id}:{epoch}"


def both(world, thread_id="next"):
    """A claim of the only queued run by its name, and one of the graph's next run in its turn."""
    (run_id,) = [row["run_id"] for row in world.raw.rows("SELECT run_id FROM rp_runs WHERE status = 'queued'")]
    turn = world.raw.value("SELECT served_no FROM rp_graphs WHERE graph = 'g'")
    return [world.claim_run(run_id, thread_id), world.claim_next(served_no=turn)]


def full(world, gate, thread_id="next"):
    for command in both(world, thread_id):
        assert world.refused(command, CapacityReached).details["gate"] == gate


def free(world, thread_id="next"):
    """Both claims would be accepted; the second is made."""
    by_name, in_turn = both(world, thread_id)
    world.commit(in_turn)
    assert type(world.refused(by_name, NothingToClaim)) is NothingToClaim  # only because it is claimed now


# --- an instance's report -------------------------------------------------------------------------------------------

UNKNOWN = {
    "missing": ("has not reported", "DELETE FROM rp_instances"),
    "expired": ("too long", "UPDATE rp_instances SET expires_us = reported_us"),
    "of another worker's instance": ("not of w", "UPDATE rp_instances SET worker_id = 'x'"),
    "incomplete: one id twice": ("incompletely", """UPDATE rp_instances SET active_task_ids = '["a","a"]'"""),
    "incomplete: an empty id": ("incompletely", """UPDATE rp_instances SET active_task_ids = '[""]'"""),
    "incomplete: no list": ("incompletely", "UPDATE rp_instances SET active_task_ids = 'null'"),
    "of one that is shutting down": ("shutting down", "UPDATE rp_instances SET draining = 1"),
}


@pytest.mark.parametrize("report", UNKNOWN)
def test_a_report_that_does_not_count_stops_claiming_and_changes_nothing(world, report):
    said, change = UNKNOWN[report]
    world.queued("next")
    world.raw.rows(change)
    for command in both(world):
        assert said in world.refused(command, CapacityUnknown).message


def test_a_claim_has_no_say_in_capacity(world):
    for command in (ClaimRun, ClaimNext):
        fields = {field.name for field in dataclasses.fields(command)}
        assert not fields & {"slots", "capacity", "active_task_ids", "max_concurrency", "limit"}
    run_id = world.queued("next")
    command = changed(world.claim_run(run_id, "next"), instance_id=None)
    assert run_id in world.refused(command, CapacityUnknown).message


# --- slots: a union by identity -------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", HOLDS)
def test_a_run_holds_its_slot_until_its_end_is_proved(world, state):
    held(world, "a", state)
    world.queued("next")
    slots(world, 1)
    full(world, "instance")


def test_a_task_that_the_instance_and_the_database_both_know_counts_once(world):
    _, task = held(world, "a", "running")
    world.queued("next")
    slots(world, 2, task)
    free(world)


def test_a_task_of_somebody_else_and_a_claim_not_seen_yet_both_count(world):
    held(world, "a", "dispatching")
    world.queued("next")
    slots(world, 2, "a chat")
    full(world, "instance")
    world.commit(world.report(report_no=3, slots=3, active_task_ids=("a chat",)))
    free(world)


def test_a_task_that_goes_on_after_its_run_has_ended_holds_its_slot(world):
    """A node that blocks: its run timed out, and the thread is still there."""
    run_id, task = held(world, "a", "running")
    world.set_run(run_id, status="timed_out", finished_us=1, phase="released", expires_us=0)
    world.queued("next")
    slots(world, 1, task)
    full(world, "instance")


def test_every_route_to_an_instance_shares_its_slots(world):
    """Two claimers that name one instance: the second finds what the first holds."""
    world.queued("a")
    world.queued("b")
    slots(world, 1)
    world.commit(world.claim_next())
    assert world.refused(world.claim_next(), CapacityReached).details["taken"] == 1


def test_a_takeover_needs_a_slot_of_its_own_instance_and_only_the_end_of_a_run_needs_none(world):
    owned = world.owned("a")
    world.expire(owned)
    slots(world, 1, "a chat")
    command = world.claim_run(owned.run_id, "a")
    assert world.refused(command, CapacityReached).details["gate"] == "instance"
    world.commit(RequestStop(run_id=owned.run_id, **world.base()))
    assert world.commit(changed(command, instance_id=None)).result["control"] == "stopping"


def test_a_run_that_the_instance_itself_left_does_not_stand_in_its_own_way(world):
    run_id, _ = held(world, "a", "running")
    world.set_run(run_id, expires_us=0)
    slots(world, 1)
    assert world.commit(world.claim_next(kind="left")).result["run_id"] == run_id


def test_run_now_on_a_full_instance_moves_to_the_front_and_waits(world):
    held(world, "a", "running")
    world.queued("b")
    urgent = world.queued("next")
    slots(world, 1)
    world.commit(MoveToFront(run_id=urgent, **world.base()))
    assert world.refused(world.claim_next(), CapacityReached).details["gate"] == "instance"
    world.commit(world.report(report_no=3, slots=2))
    assert world.commit(world.claim_next()).result["run_id"] == urgent


# --- a graph's places -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", HOLDS)
def test_a_run_holds_its_graphs_place_until_its_end_is_proved(world, state):
    held(world, "a", state)
    world.queued("next")
    limit(world, 1)
    full(world, "graph")


@pytest.mark.parametrize("status", ["waiting_approval", "retry_wait", "created", "succeeded", "timed_out"])
def test_a_run_that_is_not_active_holds_no_place(world, status):
    run_id, _ = held(world, "a", "running")
    world.set_run(run_id, status=status)
    world.queued("next")
    limit(world, 1)
    free(world)


def test_a_graphs_limit_is_one_over_all_instances(world):
    world.commit(world.report("another", worker_id="v"))
    limit(world, 2)
    for number in range(3):
        world.queued(f"t{number}")
    world.commit(world.claim_next(served_no=0))
    turn = world.raw.value("SELECT served_no FROM rp_graphs")
    world.commit(world.claim_next(served_no=turn, worker_id="v", instance_id="another"))
    for worker, instance in (("w", "i"), ("v", "another")):
        command = world.claim_next(served_no=turn + 1, worker_id=worker, instance_id=instance)
        assert world.refused(command, CapacityReached).details == {
            "gate": "graph",
            "graph": "g",
            "taken": 2,
            "places": 2,
        }


def test_owned_calls_hold_places_of_their_graph_and_are_refused_without_one(world):
    limit(world, 1)
    owned = world.owned("a")
    assert world.refused(world.start_owned_run("b"), CapacityReached).details["gate"] == "graph"
    world.queued("next")
    full(world, "graph")
    world.set_run(owned.run_id, status="succeeded", finished_us=1, phase="released", expires_us=0)
    free(world)


def test_a_call_that_supersedes_a_run_takes_that_runs_place(world):
    limit(world, 1)
    world.expire(world.owned("a"))
    world.commit(world.start_owned_run("a"))


def test_an_owned_call_that_goes_on_after_a_question_needs_a_place_again(world):
    owned = world.owned("a")
    world.set_run(owned.run_id, status="waiting_approval", phase="released", expires_us=0)
    limit(world, 1)
    world.owned("b")
    assert world.refused(world.continue_run("a"), CapacityReached).details["gate"] == "graph"


def test_a_takeover_has_the_place_of_the_run_it_takes_over(world):
    owned = world.owned("a")
    world.expire(owned)
    limit(world, 1)
    turn = world.raw.value("SELECT served_no FROM rp_graphs")
    assert world.commit(world.claim_next(kind="left", served_no=turn)).result["run_id"] == owned.run_id


def test_a_limit_that_the_claimer_does_not_know_of_is_told(world):
    world.queued("next")
    limit(world, 1)
    assert world.refused(world.claim_next(), NothingToClaim).details["served"]


def test_a_lower_limit_stops_nothing_and_no_limit_is_one_too(world):
    for name in ("a", "b"):
        held(world, name, "running")
    world.queued("next")
    limit(world, 1)
    full(world, "graph")
    limit(world, 0)
    free(world)


# --- scopes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", HOLDS)
def test_a_scope_has_at_most_one_active_run_over_threads_and_graphs(world, state):
    first, _ = held(world, "a", state, scope="customer 7")
    world.queued("next", scope="customer 7")
    by_name, in_turn = both(world)
    assert world.refused(by_name, CapacityReached).details["run_id"] == first
    world.refused(in_turn, NothingToClaim)  # it is not even offered
    world.queued("other", scope="customer 8")
    assert world.commit(world.claim_next(served_no=in_turn.served_no)).result["thread_id"] == "other"


def test_without_a_scope_it_is_the_thread(world):
    world.queued("a")
    world.queued("a")
    world.queued("b")
    assert [world.commit(world.claim_next()).result["thread_id"] for _ in range(2)] == ["a", "b"]
    world.refused(world.claim_next(), NothingToClaim)


def test_a_scope_is_free_when_its_run_waits_for_a_person(world):
    run_id, _ = held(world, "a", "running", scope="s")
    world.set_run(run_id, status="waiting_approval", phase="released", expires_us=0)
    world.queued("next", scope="s")
    free(world)
    assert world.refused(world.continue_run("a"), CapacityReached).details["gate"] == "scope"
