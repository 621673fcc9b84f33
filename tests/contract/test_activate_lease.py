from runtime_persist.commands.activate_lease import ActivateLease
from runtime_persist.errors import DomainsOpen, IllegalTransition
from runtime_persist.model.lease import ALL_REVOKED, EMPTY_DOMAIN_SET
from tests.fixtures.contracts import Leased, Receipt, changed
from tests.fixtures.world import Held


def make(world, held, attempt_id="takeover"):
    return ActivateLease(attempt_id=attempt_id, **world.of_lease(held))


class TestGuard(Leased):
    recovering = True

    def held(self, world):
        return world.claimed()

    def send(self, world, held):
        return make(world, held)


class TestReceipt(Receipt):
    def make(self, world):
        return make(world, world.claimed())

    def other(self, world, command):
        return changed(command, attempt_id="another")


def test_a_claimed_run_keeps_its_attempt(world):
    held = world.claimed()
    assert world.commit(make(world, held)).result == {"attempt_id": held.attempt_id}
    run = world.run(held.run_id)
    assert (run["phase"], run["revocation"], run["status"]) == ("active", EMPTY_DOMAIN_SET, "dispatching")
    assert world.events(held.run_id)[-1] == "lease.activated"
    assert world.count("rp_attempts") == 1


def test_a_takeover_gets_a_new_attempt(world):
    old = world.owned()
    world.expire(old)
    epoch = world.commit(world.claim_run(old.run_id)).result["epoch"]
    assert world.commit(make(world, Held(old.run_id, epoch, ""))).result == {"attempt_id": "takeover"}
    attempt = world.attempt("takeover")
    assert (attempt["status"], attempt["cause"], attempt["epoch"]) == ("claimed", "takeover", 2)
    assert (attempt["previous_attempt_id"], attempt["attempt_no"]) == (old.attempt_id, 2)
    assert world.run(old.run_id)["status"] == "lost"
    assert world.events(old.run_id)[-2:] == ["lease.activated", "attempt.claimed"]


def test_an_active_lease_is_refused(world):
    world.refused(make(world, world.owned()), IllegalTransition)


def test_a_domain_of_an_older_epoch_keeps_the_lease_recovering_until_it_is_revoked(world):
    """DB-08: a lease alone never lets a run go on."""
    old = world.owned()
    world.with_domain(old, "d")
    world.with_domain(old, "e")
    held = world.taken_over(old)
    for domain_id in ("d", "e"):
        world.refused(make(world, held), DomainsOpen)
        world.commit(world.record_revocation(held, domain_id))
    world.commit(make(world, held))
    run = world.run(old.run_id)
    assert (run["phase"], run["revocation"]) == ("active", ALL_REVOKED)


def test_a_claim_of_a_run_that_was_never_started_waits_for_its_domains_too(world):
    """Its worker died between the opening of a process's domain and the start fence."""
    old = world.activated(world.claimed())
    world.with_domain(old)
    held = world.taken_over(old)
    assert world.run(old.run_id)["status"] == "dispatching"
    world.refused(make(world, held), DomainsOpen)
    world.commit(world.record_revocation(held))
    world.commit(make(world, held))
