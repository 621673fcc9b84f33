import ormsgpack

from runtime_persist.commands.block_takeover import BlockTakeover
from runtime_persist.errors import DomainsOpen, IllegalTransition
from runtime_persist.model import limits
from runtime_persist.model.lease import BLOCKED
from tests.contract.test_activate_lease import make as activate
from tests.fixtures.contracts import Leased, Receipt, changed


def make(world, held):
    return BlockTakeover(**world.of_lease(held))


def recovering(world):
    """The lease of somebody who took a run with an open domain over."""
    old = world.owned()
    world.with_domain(old)
    return world.taken_over(old)


class TestGuard(Leased):
    recovering = True

    def held(self, world):
        return recovering(world)

    def send(self, world, held):
        return make(world, held)


class TestReceipt(Receipt):
    def make(self, world):
        return make(world, recovering(world))

    def other(self, world, command):
        return changed(command, run_id=world.owned("another thread").run_id)


def told(world):
    rows = world.raw.rows("SELECT epoch, payload FROM rp_events WHERE type = ?", "run.takeover_blocked")
    return [(row["epoch"], ormsgpack.unpackb(row["payload"])) for row in rows]


def test_it_is_told_once_an_epoch_with_the_domains_and_the_lease_stays_recovering(world):
    held = recovering(world)
    before = world.run(held.run_id)
    assert world.commit(make(world, held)).result == {"domains": ["d"], "more": 0}
    run = world.run(held.run_id)
    assert (run["phase"], run["status"], run["revocation"]) == ("recovering", "lost", BLOCKED)
    assert run["expires_us"] == before["expires_us"]
    assert told(world) == [(2, {"epoch": 2, "domains": ["d"], "more": 0})]
    world.commit(make(world, held))
    assert len(told(world)) == 1
    world.refused(activate(world, held), DomainsOpen)
    next_one = world.taken_over(held)
    world.commit(make(world, next_one))
    assert [epoch for epoch, _ in told(world)] == [2, 3]


def test_a_blocked_takeover_does_not_count_towards_the_crash_loop(world):
    held = recovering(world)
    for _ in range(limits.MAX_TAKEOVERS + 2):
        world.commit(make(world, held))
        assert world.run(held.run_id)["takeovers"] == 0
        held = world.taken_over(held)
    world.commit(world.record_revocation(held))
    world.activated(held)
    assert world.run(held.run_id)["takeovers"] == 1


def test_many_domains_are_named_in_part_and_counted(world):
    old = world.owned()
    for n in range(limits.DOMAINS_NAMED_MAX + 3):
        world.with_domain(old, f"d{n:02}")
    held = world.taken_over(old)
    found = world.commit(make(world, held)).result
    assert (len(found["domains"]), found["more"]) == (limits.DOMAINS_NAMED_MAX, 3)


def test_a_run_that_can_go_on_is_not_blocked(world):
    held = recovering(world)
    world.commit(world.record_revocation(held))
    world.refused(make(world, held), IllegalTransition)
    world.refused(make(world, world.owned("another thread")), IllegalTransition)


def test_a_blocked_run_holds_no_slot_of_the_claimer(world):
    held = recovering(world)
    assert world.run(held.run_id)["instance_id"] is not None
    world.commit(make(world, held))
    assert world.run(held.run_id)["instance_id"] is None
