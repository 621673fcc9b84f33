import pytest

from runtime_persist.commands.delete_thread import DeleteThread
from runtime_persist.errors import CheckpointConflict, StaleWriter, ThreadDeleted
from tests.fixtures.contracts import Replay, Unleased, changed
from tests.fixtures.world import THREAD


class TestGuard(Unleased):
    def send(self, world):
        return world.put_checkpoint()


class TestReplay(Replay):
    mismatch = CheckpointConflict

    def make(self, world):
        return world.put_checkpoint(expects=None)

    def other(self, world, command):
        return changed(command, row=world.row(body=b"other"))


def refused_as_stale(world, command):
    """Refuse a put; on PostgreSQL the row that was made to lock a thread nobody knew may stay, and nothing else."""
    before, knew = world.dump(), world.count("rp_threads")
    with pytest.raises(StaleWriter) as caught:
        world.commit(command)
    after = world.dump()
    if world.is_postgres and not knew:
        (locked,) = after.pop("rp_threads")
        assert dict(locked)["thread_id"] == THREAD
        assert dict(locked)["owner_run_id"] is None
        assert before.pop("rp_threads") == []
    assert after == before
    return caught.value


def test_the_first_put_makes_thread_row_content_and_head(world):
    world.commit(world.put_checkpoint(expects=None))
    row = world.raw.one("SELECT * FROM rp_checkpoints")
    assert (row["checkpoint_id"], row["run_id"], row["epoch"]) == ("c1", None, None)
    thread = world.thread_row()
    assert (thread["thread_id"], thread["generation"], thread["owner_run_id"]) == (THREAD, 1, None)
    assert world.head() == "c1"
    assert (world.count("rp_blobs"), world.count("rp_receipts")) == (1, 1)  # the receipt is the space's


def test_a_chain_of_puts_moves_the_head(world):
    for expects, checkpoint_id in [(None, "c1"), ("c1", "c2"), ("c2", "c3")]:
        world.commit(world.put_checkpoint(expects=expects, checkpoint_id=checkpoint_id, parent_id=expects))
    assert world.head() == "c3"
    assert world.count("rp_checkpoints") == 3


def test_a_put_without_an_expectation_moves_the_head_wherever_it_is(world):
    world.commit(world.put_checkpoint(checkpoint_id="c2"))
    world.commit(world.put_checkpoint(checkpoint_id="c1"))
    assert world.head() == "c1"


def test_namespaces_have_heads_of_their_own(world):
    world.commit(world.put_checkpoint(expects=None))
    world.commit(world.put_checkpoint(expects=None, checkpoint_ns="sub", checkpoint_id="s1"))
    assert (world.head(), world.head(ns="sub")) == ("c1", "s1")


@pytest.mark.parametrize("expects", [None, "c0"])
def test_a_head_that_moved_is_refused(world, expects):
    world.commit(world.put_checkpoint())
    error = refused_as_stale(world, world.put_checkpoint(expects=expects, checkpoint_id="c2"))
    assert (error.details["loaded"], error.details["head"]) == (expects, "c1")


def test_a_head_that_is_gone_is_refused(world):
    error = refused_as_stale(world, world.put_checkpoint(expects="c1", checkpoint_id="c2"))
    assert (error.details["loaded"], error.details["head"]) == ("c1", None)


def test_sent_again_behind_a_moved_head_it_is_still_replayed(world):
    first = world.put_checkpoint(expects=None)
    world.commit(first)
    world.commit(world.put_checkpoint(expects="c1", checkpoint_id="c2"))
    with world.nothing_written():
        assert world.commit(first).replayed
    assert world.head() == "c2"


def test_other_content_under_a_stored_id_is_a_conflict_also_behind_a_moved_head(world):
    world.commit(world.put_checkpoint(expects=None))
    world.commit(world.put_checkpoint(expects="c1", checkpoint_id="c2"))
    world.refused(world.put_checkpoint(expects=None, body=b"other"), CheckpointConflict)


@pytest.mark.parametrize(("made", "parent"), [("c1", None), ("c2", None), ("c3", "c2")], ids=["own", "mark", "parent"])
def test_a_write_that_names_a_deleted_checkpoint_is_refused(world, made, parent):
    world.commit(world.put_checkpoint(checkpoint_id="c2"))
    world.commit(DeleteThread(**world.of_thread()))
    world.refused(world.put_checkpoint(checkpoint_id=made, parent_id=parent), ThreadDeleted)
    world.commit(world.put_checkpoint(checkpoint_id="c4"))
