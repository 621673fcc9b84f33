import pytest

from runtime_persist.commands.finalize_run import FinalizeRun
from runtime_persist.commands.release_claim import ReleaseClaim
from runtime_persist.commands.request_stop import RequestStop
from runtime_persist.commands.yield_attempt import YieldAttempt
from runtime_persist.errors import CheckpointNotFound, CommandMismatch, NothingToClaim, ThreadBusy
from runtime_persist.model.states import OnBusy
from tests.fixtures.contracts import Receipt, changed
from tests.fixtures.world import THREAD, Held


class TestReceipt(Receipt):
    def make(self, world):
        return world.start_run()

    def other(self, world, command):
        return changed(command, request=world.request("another input"))


def test_the_run_is_queued_as_the_last_of_its_thread(world):
    command = world.start_run()
    receipt = world.commit(command)
    assert receipt.result == {"run_id": command.request.run_id, "thread_id": THREAD}
    second = world.commit(world.start_run()).result["run_id"]
    run = world.run(command.request.run_id)
    assert (run["status"], run["phase"], run["control"], run["epoch"]) == ("queued", "released", "open", 0)
    assert (run["thread_run_no"], run["attempt_id"], run["version"]) == (1, None, 1)
    assert run["queued_us"] == run["created_us"] > 0
    assert world.run(second)["thread_run_no"] == 2
    assert world.thread_row()["run_no"] == 2
    assert world.thread_row()["owner_run_id"] is None
    assert world.events(command.request.run_id) == ["run.created", "run.queued"]
    assert world.count("rp_blobs") == 1


def test_it_is_accepted_while_a_live_run_owns_the_thread(world):
    held = world.owned()
    queued = world.queued()
    assert world.run(queued)["thread_run_no"] == 2
    assert world.thread_row()["owner_run_id"] == held.run_id


def test_the_same_request_with_another_run_id_is_the_same_run(world):
    command = world.start_run(idempotency_key="k")
    first = world.commit(command)
    again = changed(command, request=changed(command.request, run_id="made up anew"))
    with world.nothing_written():
        assert world.commit(again).result == first.result


def test_a_refusal_names_what_is_stored(world):
    command = world.start_run()
    world.commit(command)
    other = changed(command, request=world.request("other"))
    error = world.refused(other, CommandMismatch)
    assert error.details["stored"]["run_id"] == command.request.run_id


# --- a busy thread ----------------------------------------------------------------------------------------------------


def replacing(world, on_busy, **fields):
    return changed(world.start_run(), on_busy=OnBusy(on_busy), **fields)


def waiting(world):
    """A run that stored a checkpoint behind an older one, and waits for a person."""
    world.commit(world.put_checkpoint(checkpoint_id="c1"))
    held = world.owned()
    world.commit(world.commit_checkpoint(held, checkpoint_id="c2", parent_id="c1"))
    world.commit(YieldAttempt(reason="interrupt", question=b"?", **world.of_lease(held)))
    return held.run_id


@pytest.mark.parametrize("on_busy", list(OnBusy))
def test_a_free_thread_is_no_matter_of_policy(world, on_busy):
    world.commit(world.fail_attempt(world.owned()))
    assert world.run(world.commit(replacing(world, on_busy)).result["run_id"])["status"] == "queued"


@pytest.mark.parametrize("busy", ["queued", "claimed", "owned"])
def test_reject_writes_nothing_and_names_the_run(world, busy):
    made = getattr(world, busy)()
    error = world.refused(replacing(world, "reject"), ThreadBusy)
    assert error.details["run_id"] == getattr(made, "run_id", made)


def test_a_key_that_was_used_is_the_same_run_also_when_it_rejects_now(world):
    command = replacing(world, "reject")
    first = world.commit(command)
    assert world.commit(command).result == first.result


@pytest.mark.parametrize("on_busy", ["interrupt", "rollback"])
def test_what_does_not_run_ends_in_the_transaction_that_starts_the_new_run(world, on_busy):
    first, second = waiting(world), world.queued()
    new = world.commit(replacing(world, on_busy)).result["run_id"]
    for run_id in (first, second):
        run = world.run(run_id)
        assert (run["status"], run["stop_reason"], run["question"]) == ("cancelled", "superseded", None)
        assert world.events(run_id)[-1] == "run.cancelled"
    assert world.run(new)["thread_run_no"] == 3


def test_a_claim_is_no_start_and_its_attempt_ends_with_the_run(world):
    held = world.claimed()
    world.commit(replacing(world, "interrupt"))
    assert world.run(held.run_id)["status"] == "cancelled"
    assert world.attempt(held.attempt_id)["status"] == "cancelled"


@pytest.mark.parametrize(("on_busy", "head"), [("interrupt", "c2"), ("rollback", "c1")])
def test_interrupting_keeps_what_was_committed_and_rolling_back_does_not(world, on_busy, head):
    waiting(world)
    world.commit(replacing(world, on_busy))
    assert world.head() == head
    assert world.count("rp_checkpoints") == {"c2": 2, "c1": 1}[head]


def test_a_rollback_takes_what_was_put_on_top_of_the_run_and_its_writes_and_inner_heads(world):
    held = world.owned("t")
    world.commit(world.commit_checkpoint(held, checkpoint_id="c1"))
    world.commit(world.commit_checkpoint(held, checkpoint_id="c2", checkpoint_ns="inner"))
    world.commit(YieldAttempt(reason="interrupt", question=b"?", **world.of_lease(held)))
    world.commit(world.put_checkpoint("t", checkpoint_id="c3", parent_id="c1"))  # a person's edit
    world.commit(world.put_writes("a", thread_id="t"))
    world.commit(changed(world.start_run("t"), on_busy=OnBusy.ROLLBACK))
    for table in ("rp_checkpoints", "rp_heads", "rp_writes"):
        assert world.count(table) == 0
    assert world.events(held.run_id)[-2:] == ["run.rolled_back", "run.cancelled"]


def test_a_run_that_is_being_stopped_is_not_changed_again_except_to_be_rolled_back_too(world):
    held = world.owned()
    world.commit(replacing(world, "interrupt"))
    before = world.run(held.run_id)
    world.commit(replacing(world, "interrupt"))
    assert world.run(held.run_id) == before
    world.commit(replacing(world, "rollback"))
    assert world.run(held.run_id)["rolls_back"] == 1
    assert world.events(held.run_id)[-1] == "run.rollback_requested"


@pytest.mark.parametrize("on_busy", ["interrupt", "rollback"])
def test_what_runs_is_asked_to_stop_and_the_new_run_waits_for_its_end(world, on_busy):
    held = world.owned()
    world.commit(world.commit_checkpoint(held, checkpoint_id="c1"))
    new = world.commit(replacing(world, on_busy)).result["run_id"]
    run = world.run(held.run_id)
    assert (run["status"], run["control"], run["stop_reason"]) == ("running", "stopping", "superseded")
    assert world.head() == "c1"
    world.refused(world.claim_run(new), NothingToClaim)
    world.commit(world.fail_attempt(held))
    assert world.run(held.run_id)["status"] == "cancelled"
    assert world.count("rp_checkpoints") == {"interrupt": 1, "rollback": 0}[on_busy]
    assert world.commit(world.claim_run(new)).result["epoch"] == 1


def test_a_run_that_is_being_stopped_for_another_reason_is_rolled_back_all_the_same(world):
    held = world.owned()
    world.commit(world.commit_checkpoint(held, checkpoint_id="c1"))
    world.commit(RequestStop(run_id=held.run_id, **world.base()))
    world.commit(replacing(world, "rollback"))
    assert world.run(held.run_id)["stop_reason"] == "cancel"
    world.commit(world.fail_attempt(held))
    assert world.count("rp_checkpoints") == 0


def test_a_claim_of_a_run_that_is_rolled_back_is_given_back_and_whoever_ends_it_rolls_it_back(world):
    held = world.owned()
    world.commit(world.commit_checkpoint(held, checkpoint_id="c1"))
    world.expire(held)
    claimed = world.commit(world.claim_run(held.run_id)).result
    world.commit(replacing(world, "rollback"))
    lease = Held(held.run_id, claimed["epoch"], claimed["attempt_id"] or "")
    assert world.commit(ReleaseClaim(**world.of_lease(lease))).result["status"] == "lost"
    assert world.count("rp_checkpoints") == 1
    epoch = world.commit(world.claim_run(held.run_id)).result["epoch"]
    end = FinalizeRun.cancelled(reason="superseded", run_id=held.run_id, epoch=epoch, **world.of_thread())
    assert world.commit(end).result["status"] == "cancelled"
    assert world.count("rp_checkpoints") == 0


def test_where_a_rollback_goes_back_to_must_not_be_pruned(world):
    waiting(world)
    world.raw.rows("UPDATE rp_checkpoints SET orphan = 1 WHERE checkpoint_id = 'c2'")
    world.refused(replacing(world, "rollback"), CheckpointNotFound)
    world.commit(replacing(world, "interrupt"))


def test_pruned_after_it_was_asked_for_nothing_is_taken_away_and_the_run_says_so(world):
    held = world.owned()
    world.commit(world.commit_checkpoint(held, checkpoint_id="c1"))
    world.commit(replacing(world, "rollback"))
    world.raw.rows("UPDATE rp_checkpoints SET orphan = 1")
    world.commit(world.fail_attempt(held))
    assert world.count("rp_checkpoints") == 1
    assert world.events(held.run_id)[-2:] == ["run.rollback_refused", "run.cancelled"]


# --- where it begins --------------------------------------------------------------------------------------------------


def test_a_run_begins_only_at_a_checkpoint_that_is_there(world):
    world.commit(world.put_checkpoint(checkpoint_id="c1"))
    world.commit(world.put_checkpoint(checkpoint_id="c2", checkpoint_ns="inner:1"))
    world.commit(changed(world.start_run(start_checkpoint_id="c1"), begins_at="c1"))
    for unknown in ("c2", "c9"):
        world.refused(changed(world.start_run(), begins_at=unknown), CheckpointNotFound)


def test_it_does_not_begin_at_a_checkpoint_that_it_rolls_back(world):
    waiting(world)
    world.refused(replacing(world, "rollback", begins_at="c2"), CheckpointNotFound)
    world.commit(replacing(world, "rollback", begins_at="c1"))
