import pytest

from runtime_persist.commands.revoke_callback import RevokeCallback
from runtime_persist.errors import CallbackRefused, IllegalTransition, RunNotFound
from tests.fixtures.contracts import Receipt, changed
from tests.fixtures.remote import report, started


def revoke(world, held):
    return RevokeCallback(run_id=held.run_id, attempt_id=held.attempt_id, **world.base())


class TestReceipt(Receipt):
    def make(self, world):
        return revoke(world, started(world)[0])

    def other(self, world, command):
        return changed(command, attempt_id="another")


def test_a_revoked_token_reports_nothing_any_more(world):
    held, token_hash = started(world)
    assert world.commit(revoke(world, held)).result == {"revoked": True}
    assert world.events(held.run_id)[-1] == "attempt.callback_revoked"
    world.refused(report(world, held, token_hash, "succeeded", 1), CallbackRefused)


def test_revoking_twice_changes_nothing_more(world):
    held, _ = started(world)
    world.commit(revoke(world, held))
    events = world.events(held.run_id)
    assert world.commit(revoke(world, held)).result == {"revoked": False}
    assert world.events(held.run_id) == events


@pytest.mark.parametrize(("field", "error"), [("run_id", RunNotFound), ("attempt_id", IllegalTransition)])
def test_what_is_not_there_is_refused(world, field, error):
    held, _ = started(world)
    world.refused(changed(revoke(world, held), **{field: "nothing"}), error)
