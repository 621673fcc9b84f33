from runtime_persist.commands.block_takeover import BlockTakeover
from runtime_persist.errors import DomainNotFound, IllegalTransition, RunNotFound
from runtime_persist.model.domains import Proof
from tests.fixtures.contracts import Receipt, changed


class TestReceipt(Receipt):
    def make(self, world):
        held = world.owned()
        world.with_domain(held)
        world.expire(held)
        return world.confirm_revocation(held.run_id)

    def other(self, world, command):
        return changed(command, saw="something else")


def test_a_persons_word_is_a_receipt_with_their_name(world):
    held = world.owned()
    world.with_domain(held)
    world.expire(held)
    assert world.commit(world.confirm_revocation(held.run_id)).result == {"status": "running", "domains_open": 0}
    receipt = world.domain().receipt
    assert (receipt.how, receipt.by, receipt.saw) == (Proof.STATED, "user:ann", "the machine was thrown away")
    (event,) = world.raw.rows("SELECT actor FROM rp_events WHERE type = ?", "domain.revoked")
    assert event["actor"] == "user:ann"


def test_a_domain_of_the_live_lease_is_its_holders(world):
    held = world.owned()
    world.with_domain(held)
    world.refused(world.confirm_revocation(held.run_id), IllegalTransition)


def test_a_domain_of_an_older_epoch_is_anybodys_while_the_run_is_recovering(world):
    old = world.owned()
    world.with_domain(old)
    held = world.taken_over(old)
    world.commit(world.confirm_revocation(old.run_id))
    run = world.run(old.run_id)
    assert (run["phase"], run["domains_open"]) == ("recovering", 0)
    world.activated(held)  # whoever works on it goes on


def test_the_last_word_gives_a_blocked_claim_back_so_that_the_run_is_claimed_at_once(world):
    old = world.owned()
    world.with_domain(old, "d")
    world.with_domain(old, "e")
    held = world.taken_over(old)
    world.commit(BlockTakeover(**world.of_lease(held)))
    world.commit(world.confirm_revocation(old.run_id, "d"))
    assert world.run(old.run_id)["phase"] == "recovering"
    world.commit(world.confirm_revocation(old.run_id, "e"))
    run = world.run(old.run_id)
    assert (run["phase"], run["status"], run["revocation"], run["expires_us"]) == ("released", "lost", None, 0)
    assert world.events(old.run_id)[-1] == "lease.released"
    again = world.commit(world.claim_run(old.run_id)).result
    assert (again["epoch"], again["takeover"], again["domains_open"]) == (held.epoch + 1, True, 0)


def test_a_revoked_domain_keeps_its_receipt(world):
    held = world.owned()
    world.with_domain(held)
    world.commit(world.record_revocation(held))
    before = world.domain()
    world.commit(world.confirm_revocation(held.run_id))
    assert world.domain() == before


def test_unknown_ones_are_refused(world):
    world.refused(world.confirm_revocation("nobody"), RunNotFound)
    world.refused(world.confirm_revocation(world.owned().run_id), DomainNotFound)
