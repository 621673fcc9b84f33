from runtime_persist.commands.activate_lease import ActivateLease
from runtime_persist.errors import IllegalTransition
from runtime_persist.model.lease import EMPTY_DOMAIN_SET
from tests.fixtures.contracts import Leased, Receipt, changed
from tests.fixtures.world import Held


def make(world, held, attempt_id="takeover"):
    return ActivateLease(revocation=EMPTY_DOMAIN_SET, attempt_id=attempt_id, **world.of_lease(held))


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
        return changed(command, revocation="another proof")


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
