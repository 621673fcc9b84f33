from runtime_persist.commands.delete_thread import DeleteThread
from runtime_persist.errors import ThreadDeleted
from tests.fixtures.contracts import Unleased
from tests.fixtures.writes import TaskWritesContract


class TestGuard(Unleased):
    def send(self, world):
        return world.put_writes("a")


class TestWrites(TaskWritesContract):
    def sender(self, world):
        return world.put_writes


def test_the_rows_name_no_run_and_the_thread_is_made(world):
    world.commit(world.put_writes("a"))
    assert world.raw.rows("SELECT run_id, epoch FROM rp_writes") == [{"run_id": None, "epoch": None}]
    row = world.thread_row()
    assert (row["generation"], row["run_no"], row["owner_run_id"]) == (1, 0, None)


def test_writes_to_a_deleted_checkpoint_are_refused(world):
    world.commit(world.put_checkpoint(checkpoint_id="c1"))
    world.commit(DeleteThread(**world.of_thread()))
    world.refused(world.put_writes("a"), ThreadDeleted)
    assert world.count("rp_writes") == 0
