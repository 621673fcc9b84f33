from runtime_persist.errors import CheckpointConflict, LeaseLost
from tests.fixtures.contracts import LeasedThread, Replay, changed


class TestGuard(LeasedThread):
    def send(self, world, held):
        return world.commit_checkpoint(held)


class TestReplay(Replay):
    mismatch = CheckpointConflict

    def make(self, world):
        return world.commit_checkpoint(world.owned())

    def other(self, world, command):
        return changed(command, row=world.row(body=b"other"))


def test_row_content_and_head_are_written_and_the_row_is_the_receipt(world):
    held = world.owned()
    receipts, blobs = world.count("rp_receipts"), world.count("rp_blobs")
    world.commit(world.commit_checkpoint(held))
    row = world.raw.one("SELECT * FROM rp_checkpoints")
    assert (row["checkpoint_id"], row["parent_id"], row["body"], row["metadata"]) == ("c1", None, b"body", b"{}")
    assert (row["run_id"], row["epoch"]) == (held.run_id, held.epoch)
    assert world.head() == "c1"
    assert world.count("rp_receipts") == receipts
    assert world.count("rp_blobs") == blobs + 1


def test_the_head_follows_each_namespace(world):
    held = world.owned()
    for checkpoint_id, ns in [("c1", ""), ("s1", "sub"), ("c2", "")]:
        world.commit(world.commit_checkpoint(held, checkpoint_id=checkpoint_id, checkpoint_ns=ns))
    assert (world.head(), world.head(ns="sub")) == ("c2", "s1")
    assert world.count("rp_blobs") == 2  # of the run's input, and of the content all three share


def test_an_older_put_sent_again_does_not_move_the_head_back(world):
    held = world.owned()
    first = world.commit_checkpoint(held)
    world.commit(first)
    world.commit(world.commit_checkpoint(held, checkpoint_id="c2", parent_id="c1"))
    assert world.commit(first).replayed
    assert world.head() == "c2"


def test_a_fenced_writer_is_told_so_and_not_of_a_conflict(world):
    held = world.owned()
    world.commit(world.commit_checkpoint(held))
    world.take_over(held)
    world.refused(world.commit_checkpoint(held, body=b"other"), LeaseLost)
