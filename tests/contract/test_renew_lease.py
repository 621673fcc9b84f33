import pytest

from tests.fixtures.contracts import Leased
from tests.fixtures.world import TTL_US


class TestGuard(Leased):
    recovering = True

    def send(self, world, held):
        return world.renew(held)


def test_the_lease_is_extended_from_the_databases_now(world):
    held = world.owned()
    before = world.run(held.run_id)
    result = world.commit(world.renew(held)).result
    after = world.run(held.run_id)
    assert result == {
        "control": "open",
        "stop_reason": None,
        "expires_us": after["expires_us"],
        "deadline_in_us": None,
    }
    assert after["expires_us"] > before["expires_us"]
    assert {name for name in after if after[name] != before[name]} == {"expires_us"}


def test_it_says_how_far_away_the_deadline_is_and_stops_nothing_itself(world):
    held = world.owned(deadline_in_us=TTL_US)
    command = world.renew(held)
    result = world.commit(command).result
    assert result["deadline_in_us"] == world.run(held.run_id)["deadline_us"] - (result["expires_us"] - command.ttl_us)
    assert 0 < result["deadline_in_us"] <= TTL_US
    world.set_run(held.run_id, deadline_us=1)
    result = world.commit(world.renew(held)).result
    assert result["deadline_in_us"] < 0
    assert (result["control"], world.run(held.run_id)["control"]) == ("open", "open")


def test_it_leaves_no_receipt_and_extends_again(world):
    held = world.owned()
    receipts, command = world.count("rp_receipts"), world.renew(held)
    assert not world.commit(command).replayed
    assert not world.commit(command).replayed
    assert world.count("rp_receipts") == receipts


@pytest.mark.parametrize("reason", ["cancel", "deadline"])
def test_it_brings_back_why_the_run_is_to_stop(world, reason):
    held = world.owned()
    world.set_run(held.run_id, control="stopping", stop_reason=reason)
    result = world.commit(world.renew(held)).result
    assert (result["control"], result["stop_reason"]) == ("stopping", reason)
