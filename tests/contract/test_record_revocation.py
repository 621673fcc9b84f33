import pytest

from runtime_persist.errors import DomainNotFound
from runtime_persist.model.domains import DomainState, Proof
from tests.fixtures.contracts import Leased, Receipt, changed


class TestGuard(Leased):
    recovering = True

    def held(self, world):
        held = world.owned()
        world.with_domain(held)
        return held

    def send(self, world, held):
        return world.record_revocation(held)


class TestReceipt(Receipt):
    def make(self, world):
        held = world.owned()
        world.with_domain(held)
        return world.record_revocation(held)

    def other(self, world, command):
        return changed(command, saw="something else")


@pytest.mark.parametrize("how", Proof)
def test_the_receipt_says_who_when_and_what_was_seen(world, how):
    old = world.owned()
    world.with_domain(old)
    held = world.taken_over(old)
    command = world.record_revocation(held, how=how, saw="what was seen", actor="worker:w")
    assert world.commit(command).result == {"domains_open": 0}
    domain = world.domain()
    assert (domain.state, domain.epoch) == (DomainState.REVOKED, old.epoch)
    receipt = domain.receipt
    assert (receipt.how, receipt.saw, receipt.by, receipt.epoch) == (how, "what was seen", "worker:w", held.epoch)
    assert receipt.at_us >= domain.opened_us
    assert (world.run(old.run_id)["domains_opened"], world.run(old.run_id)["domains_open"]) == (1, 0)
    assert world.events(old.run_id)[-1] == "domain.revoked"


def test_the_first_receipt_stays(world):
    held = world.owned()
    world.with_domain(held)
    world.commit(world.record_revocation(held))
    before = world.domain()
    events = world.events(held.run_id)
    assert world.commit(world.record_revocation(held, saw="later")).result == {"domains_open": 0}
    assert world.domain() == before
    assert world.events(held.run_id) == events


def test_a_domain_of_another_run_is_not_found(world):
    other = world.owned("another thread")
    world.with_domain(other)
    world.refused(world.record_revocation(world.owned()), DomainNotFound)
