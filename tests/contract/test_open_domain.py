import pytest

from runtime_persist.commands.finalize_run import FinalizeRun
from runtime_persist.commands.release_claim import ReleaseClaim
from runtime_persist.commands.request_stop import RequestStop
from runtime_persist.commands.yield_attempt import YieldAttempt
from runtime_persist.errors import DomainNotFound, DomainsOpen, IllegalTransition
from runtime_persist.model.domains import DomainState, Proof
from tests.fixtures.contracts import Leased, Receipt, changed


class TestGuard(Leased):
    open_only = True

    def send(self, world, held):
        return world.open_domain(held)


class TestReceipt(Receipt):
    def make(self, world):
        return world.open_domain(world.owned())

    def other(self, world, command):
        return changed(command, kind="workspace")


def test_the_run_counts_its_domains_and_the_domain_knows_who_opened_it(world):
    held = world.owned()
    world.with_domain(held, "d")
    world.with_domain(held, "e")
    run = world.run(held.run_id)
    assert (run["domains_opened"], run["domains_open"]) == (2, 2)
    domain = world.domain("d")
    assert (domain.state, domain.kind, domain.handle) == (DomainState.OPEN, "process", {"pid": 1})
    assert (domain.run_id, domain.attempt_id, domain.epoch) == (held.run_id, held.attempt_id, held.epoch)
    assert domain.opened_us > 0
    assert domain.receipt is None
    assert world.events(held.run_id)[-2:] == ["domain.opened"] * 2


def test_a_domain_is_opened_once(world):
    held = world.owned()
    world.with_domain(held)
    world.refused(world.open_domain(held), IllegalTransition)


# --- while one is open -----------------------------------------------------------------------------------------------


def ends(world, held):
    """Every command that lets go of an active lease."""
    ending = {"run_id": held.run_id, "epoch": held.epoch}
    data, blobs = world.payload("result")
    done = {"result": data, "owner": world.engine.owner, "blobs": blobs}
    return {
        "succeeded": FinalizeRun.succeeded(**done, **ending, **world.of_thread()),
        "failed": FinalizeRun.failed(error_code="E", error_summary="", **ending, **world.of_thread()),
        "cancelled": FinalizeRun.cancelled(reason="cancel", **ending, **world.of_thread()),
        "fail_attempt": world.fail_attempt(held),
        "yield": YieldAttempt(reason="drain", **world.of_lease(held)),
    }


@pytest.mark.parametrize("end", ["succeeded", "failed", "cancelled", "fail_attempt", "yield"])
def test_the_lease_is_not_let_go_while_a_domain_is_open(world, end):
    held = world.owned()
    world.with_domain(held)
    error = world.refused(ends(world, held)[end], DomainsOpen)
    assert error.details["domains_open"] == 1
    world.commit(world.record_revocation(held))
    world.commit(ends(world, held)[end])


@pytest.mark.parametrize("end", ["succeeded", "fail_attempt", "yield"])
def test_a_process_that_ends_its_attempt_ends_its_own_domain_with_it(world, end):
    held = world.owned()
    world.with_domain(held, "mine")
    world.with_domain(held, "another")
    command = changed(ends(world, held)[end], ends_domains=("mine",), actor="worker:w")
    world.refused(command, DomainsOpen)
    world.commit(world.record_revocation(held, "another"))
    world.commit(command)
    receipt = world.domain("mine").receipt
    assert (receipt.how, receipt.by, receipt.epoch) == (Proof.ENDED, "worker:w", held.epoch)
    assert world.run(held.run_id)["domains_open"] == 0
    assert "domain.revoked" in world.events(held.run_id)


def test_only_an_open_domain_of_this_epoch_ends_with_its_attempt(world):
    held = world.owned()
    end = changed(ends(world, held)["yield"], ends_domains=("d",))
    world.refused(end, DomainNotFound)
    world.with_domain(held)
    world.commit(world.record_revocation(held))
    world.refused(end, IllegalTransition)


def test_a_claim_that_opened_a_domain_is_given_back_when_it_is_revoked(world):
    held = world.activated(world.claimed())
    world.with_domain(held)
    world.refused(ReleaseClaim(**world.of_lease(held)), DomainsOpen)
    world.commit(world.record_revocation(held))
    assert world.commit(ReleaseClaim(**world.of_lease(held))).result == {"status": "queued"}


def test_a_run_whose_start_was_prepared_is_stopped_when_its_domain_is_revoked(world):
    """Cancelled before the start fence it would end at once: but its process exists already."""
    held = world.activated(world.claimed())
    world.with_domain(held)
    stop = RequestStop(run_id=held.run_id, **world.base())
    assert world.commit(stop).result == {"status": "dispatching", "control": "stopping"}
    world.refused(ends(world, held)["cancelled"], DomainsOpen)
    world.commit(world.record_revocation(held))
    assert world.commit(ends(world, held)["cancelled"]).result == {"status": "cancelled"}
