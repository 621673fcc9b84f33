"""Whether a run's domains are revoked is decided on its locked row, never on what was read before the lock."""

import pytest

from runtime_persist.commands.activate_lease import ActivateLease
from runtime_persist.errors import DomainsOpen
from runtime_persist.model.ids import new_id
from tests.concurrency import test_fence_rules as rules
from tests.concurrency.test_fence_rules import LOCK_RUN, LOCK_THREAD
from tests.fixtures.raw import DEADLINE_SECONDS
from tests.fixtures.world import THREAD

race, world = rules.race, rules.world  # its fixtures
REVOKED = "UPDATE rp_runs SET domains_open = 0"
OPENED = "UPDATE rp_runs SET domains_opened = 1, domains_open = 1"


def activate(world, held):
    return ActivateLease(attempt_id=new_id(), **world.of_lease(held))


@pytest.fixture
def recovering(world):
    """Somebody claimed a run whose domain is open."""
    old = world.owned()
    world.with_domain(old)
    return world.taken_over(old)


def test_a_domain_that_is_revoked_while_the_activation_waits_is_no_hindrance(world, race, recovering):
    with race.waiting(activate(world, recovering), LOCK_RUN, recovering.run_id) as outcome:
        race.holder.rows(REVOKED)
    outcome[0].result(DEADLINE_SECONDS)
    assert world.run(recovering.run_id)["phase"] == "active"


def test_a_domain_that_is_open_when_the_activation_has_its_lock_refuses_it(world, race):
    held = world.taken_over(world.owned())
    with race.waiting(activate(world, held), LOCK_RUN, held.run_id) as outcome:
        race.holder.rows(OPENED)
    race.refused(outcome, DomainsOpen)
    assert world.run(held.run_id)["phase"] == "recovering"


@pytest.mark.parametrize("make", ["continue_run", "start_owned_run"])
def test_an_owned_call_that_waits_for_the_thread_sees_the_domain_that_is_opened_meanwhile(world, race, make):
    held = world.owned()
    world.expire(held)
    with race.waiting(getattr(world, make)(), LOCK_THREAD, THREAD) as outcome:
        race.holder.rows(OPENED)
    race.refused(outcome, DomainsOpen)
    assert world.run(held.run_id)["epoch"] == held.epoch


def test_an_end_that_waits_sees_the_domain_that_its_own_attempt_opened_meanwhile(world, race):
    held = world.owned()
    with race.waiting(world.fail_attempt(held), LOCK_RUN, held.run_id) as outcome:
        race.holder.rows(OPENED)
    race.refused(outcome, DomainsOpen)
    assert world.run(held.run_id)["status"] == "running"


def test_a_persons_word_and_a_claimers_proof_of_one_domain_are_one_receipt(world, race, recovering):
    """Both wait for the run; whoever comes second finds it revoked."""
    proof = world.record_revocation(recovering)
    with race.waiting(world.confirm_revocation(recovering.run_id), LOCK_RUN, recovering.run_id) as outcome:
        other = race.elsewhere.commit(proof)
        world.raw.wait_for_lock_wait(2)
    outcome[0].result(DEADLINE_SECONDS)
    other.result(DEADLINE_SECONDS)
    assert world.run(recovering.run_id)["domains_open"] == 0
    assert world.events(recovering.run_id).count("domain.revoked") == 1
