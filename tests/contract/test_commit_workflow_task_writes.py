from tests.fixtures.contracts import LeasedThread
from tests.fixtures.writes import TaskWritesContract, channels


class TestGuard(LeasedThread):
    def send(self, world, held):
        return world.commit_writes(held, "a")


class TestWrites(TaskWritesContract):
    def sender(self, world):
        held = world.owned()
        return lambda *values, **given: world.commit_writes(held, *values, **given)


def test_the_rows_name_run_and_epoch(world):
    held = world.owned()
    world.commit(world.commit_writes(held, "a", "b"))
    assert len(channels(world)) == 2
    found = world.raw.rows("SELECT DISTINCT run_id, epoch FROM rp_writes")
    assert found == [{"run_id": held.run_id, "epoch": held.epoch}]
