from runtime_persist.commands.replace_thread_checkpoint import ReplaceThreadCheckpoint
from runtime_persist.errors import StaleWriter
from tests.fixtures.contracts import Unleased


def make(world, **row):
    return ReplaceThreadCheckpoint(row=world.row(**row), **world.of_thread())


class TestGuard(Unleased):
    def send(self, world):
        world.commit(world.put_checkpoint())
        return make(world, body=b"new")


def test_row_and_content_are_replaced_and_the_head_stays(world):
    world.commit(world.put_checkpoint())
    world.commit(world.put_checkpoint(checkpoint_id="c2", parent_id="c1"))
    world.commit(make(world, body=b"new", metadata=b"{1}", parent_id="c0"))
    row = world.raw.one("SELECT * FROM rp_checkpoints WHERE checkpoint_id = 'c1'")
    assert (row["body"], row["metadata"], row["parent_id"]) == (b"new", b"{1}", "c0")
    assert row["fingerprint"] == world.row(body=b"new").fingerprint
    assert world.head() == "c2"
    assert world.count("rp_blobs") == 2


def test_sent_again_nothing_changes(world):
    world.commit(world.put_checkpoint())
    command = make(world, body=b"new")
    world.commit(command)
    with world.nothing_written():
        world.commit(command)


def test_a_checkpoint_that_is_gone_is_refused(world):
    world.commit(world.put_checkpoint())
    world.refused(make(world, checkpoint_id="gone"), StaleWriter)
    world.refused(make(world, checkpoint_ns="other"), StaleWriter)
