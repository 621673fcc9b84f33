"""Two claims at once: the second really waits for the first (PostgreSQL says so), and then counts what it committed."""

import pytest

from runtime_persist.commands.register_graph import RegisterGraph
from runtime_persist.errors import CapacityReached, NothingToClaim
from tests.fixtures.contracts import changed
from tests.fixtures.raw import DEADLINE_SECONDS

LOCK_SCOPE = 'SELECT pg_advisory_xact_lock(29296, hashtext(\'["default","s"]\'))'


@pytest.fixture
def world(postgres_world):
    postgres_world.instance()
    postgres_world.commit(RegisterGraph(graph="g", **postgres_world.base()))
    return postgres_world


@pytest.fixture
def at_once(world, postgres_raw, open_engine):
    """Send commands from two processes, as it were, while somebody holds a lock; return how they ended."""
    elsewhere = open_engine(world.engine.url.location)

    def ends(lock, first, second):
        holder = postgres_raw()
        holder.rows("BEGIN")
        holder.rows(lock)
        futures = [world.engine.coordinator.commit(first), elsewhere.coordinator.commit(second)]
        world.raw.wait_for_lock_wait(2)
        holder.rows("COMMIT")
        errors = [future.exception(DEADLINE_SECONDS) for future in futures]
        (refused,) = [error for error in errors if error is not None]  # exactly one
        return refused

    return ends


def two(world, **request):
    """Claims of two runs, by two instances."""
    world.commit(world.report("another", worker_id="v"))
    first, second = (world.claim_run(world.queued(name, **request), name) for name in ("a", "b"))
    return first, changed(second, worker_id="v", instance_id="another")


def test_of_two_claims_for_the_last_slot_one_is_refused(world, at_once):
    first, second = (world.claim_run(world.queued(name), name) for name in ("a", "b"))
    world.commit(world.report(report_no=2, slots=1))
    refused = at_once("SELECT 1 FROM rp_instances FOR UPDATE", first, second)
    assert (type(refused), refused.details["gate"]) == (CapacityReached, "instance")


def test_of_two_claims_for_the_last_place_of_a_graph_one_is_refused(world, at_once):
    first, second = two(world)
    world.commit(RegisterGraph(graph="g", max_concurrency=1, **world.base()))
    refused = at_once("SELECT 1 FROM rp_graphs FOR UPDATE", first, second)
    assert (type(refused), refused.details["gate"]) == (CapacityReached, "graph")


def test_of_an_owned_call_and_a_claim_for_the_last_place_one_is_refused(world, at_once):
    claim = world.claim_run(world.queued("a"), "a")
    world.commit(RegisterGraph(graph="g", max_concurrency=1, **world.base()))
    refused = at_once("SELECT 1 FROM rp_graphs FOR UPDATE", claim, world.start_owned_run("b"))
    assert (type(refused), refused.details["gate"]) == (CapacityReached, "graph")


def test_of_two_claims_for_one_scope_one_is_refused(world, at_once):
    first, second = two(world, scope="s")
    refused = at_once(LOCK_SCOPE, first, second)
    assert (type(refused), refused.details["gate"]) == (CapacityReached, "scope")


def test_of_two_claims_of_the_next_run_for_one_scope_one_is_refused(world, at_once):
    """Both were picked while nobody had the scope: what is picked is a hint, its lock decides."""
    world.commit(RegisterGraph(graph="h", **world.base()))
    world.commit(world.report("another", worker_id="v"))
    world.queued("a", scope="s")
    world.queued("b", scope="s", graph="h")
    first, second = world.claim_next(), changed(world.claim_next("h"), worker_id="v", instance_id="another")
    refused = at_once(LOCK_SCOPE, first, second)
    assert (type(refused), refused.details["gate"]) == (CapacityReached, "scope")


def test_of_two_claims_that_wait_for_one_turn_one_looks_again(world, at_once):
    for name in ("a", "b"):
        world.queued(name)
    world.commit(world.report("another", worker_id="v"))
    first = world.claim_next(served_no=0, waits=True)
    second = changed(world.claim_next(served_no=0, waits=True), worker_id="v", instance_id="another")
    refused = at_once("SELECT 1 FROM rp_graphs FOR UPDATE", first, second)
    assert (type(refused), refused.details["served"]) == (NothingToClaim, True)


def test_a_claim_of_the_next_run_waits_for_nobodys_thread_or_run(world, postgres_raw):
    """Whoever is about to take, end or change a run has it locked; the run behind it is claimed meanwhile."""
    names = ["thread locked", "run locked", "free"]
    for name in names:
        world.queued(name)
    holder = postgres_raw()
    holder.rows("BEGIN")
    holder.rows("SELECT 1 FROM rp_threads WHERE thread_id = 'thread locked' FOR UPDATE")
    holder.rows("SELECT 1 FROM rp_runs WHERE thread_id = 'run locked' FOR UPDATE")
    assert world.commit(world.claim_next()).result["thread_id"] == "free"
    with pytest.raises(NothingToClaim):
        world.commit(world.claim_next())
    holder.rows("COMMIT")
    assert world.commit(world.claim_next()).result["thread_id"] == "thread locked"


def test_a_graph_that_is_being_served_is_passed_over(world, postgres_raw):
    world.queued("a")
    holder = postgres_raw()
    holder.rows("BEGIN")
    holder.rows("SELECT 1 FROM rp_graphs FOR UPDATE")
    with pytest.raises(NothingToClaim, match="is being served"):
        world.commit(world.claim_next(served_no=0))
    holder.rows("COMMIT")
    world.commit(world.claim_next(served_no=0))
