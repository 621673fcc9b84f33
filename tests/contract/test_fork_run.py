import pytest

from runtime_persist.commands.delete_thread import DeleteThread
from runtime_persist.commands.fork_run import ForkRun
from runtime_persist.errors import CheckpointNotFound, RunNotFound, ThreadDeleted, ThreadNotEmpty
from tests.fixtures.contracts import Receipt, changed
from tests.fixtures.world import THREAD

SOURCE = "source"


def filled(world):
    """A run with three checkpoints, an inner one for each, writes on each, and an operation in flight."""
    held = world.owned(SOURCE)
    world.begun(held)
    for n in (1, 3, 5):
        parent = f"c{n - 2}" if n > 1 else None
        world.commit(world.commit_checkpoint(held, checkpoint_id=f"c{n}", parent_id=parent))
        world.commit(world.commit_checkpoint(held, checkpoint_id=f"c{n + 1}", checkpoint_ns="inner:1"))
    world.commit(world.commit_writes(held, "a"))
    return held


def make(world, of_run_id, checkpoint_id="c3", target=THREAD, **fields):
    source = {"source_id": SOURCE, "source_hash": world.keys.thread_hash(SOURCE)}
    made = {"request": world.request("the input of the fork"), "of_run_id": of_run_id, "checkpoint_id": checkpoint_id}
    return ForkRun(**(made | source | world.of_thread(target) | fields))


class TestReceipt(Receipt):
    def make(self, world):
        return make(world, filled(world).run_id)

    def other(self, world, command):
        return changed(command, request=world.request("another input"))


def shown(world, thread_id):
    rows = world.raw.rows("SELECT checkpoint_ns, checkpoint_id FROM rp_checkpoints WHERE thread_id = ?", thread_id)
    return sorted((row["checkpoint_ns"], row["checkpoint_id"]) for row in rows)


def test_the_new_thread_has_what_was_there_at_the_checkpoint_and_a_queued_run(world):
    held = filled(world)
    blobs = world.count("rp_blobs")
    receipt = world.commit(make(world, held.run_id))
    assert shown(world, THREAD) == [("", "c1"), ("", "c3"), ("inner:1", "c2")]
    assert (world.head(), world.head(ns="inner:1")) == ("c3", "c2")
    run = world.run(receipt.result["run_id"])
    assert (run["status"], run["thread_id"], run["thread_run_no"]) == ("queued", THREAD, 1)
    assert world.events(run["run_id"]) == ["run.created", "run.queued"]
    assert world.thread_row()["run_no"] == 1
    assert world.count("rp_blobs") == blobs + 1  # the input: content of checkpoints is shared


def test_at_the_head_everything_comes_along_that_its_tasks_have_done(world):
    held = filled(world)
    world.commit(make(world, held.run_id, "c5"))
    assert shown(world, THREAD) == shown(world, SOURCE)
    assert world.head(ns="inner:1") == "c6"


def test_writes_on_an_older_checkpoint_are_of_tasks_that_ran_after_it(world):
    held = filled(world)
    world.commit(make(world, held.run_id, "c1"))
    assert world.raw.rows("SELECT * FROM rp_writes WHERE thread_id = ?", THREAD) == []


def test_an_effect_of_the_source_never_fires_again_in_the_fork(world):
    held = filled(world)
    world.commit(make(world, held.run_id))
    (copied,) = world.raw.rows("SELECT * FROM rp_operations WHERE thread_id = ?", THREAD)
    assert (copied["status"], world.tries(copied["operation_id"])) == ("pending", ["unknown"])
    assert world.tries(copied["copied_from"]) == ["started"]


def test_the_source_is_untouched_while_its_run_is_live(world):
    held = filled(world)
    before = shown(world, SOURCE), world.run(held.run_id)
    world.commit(make(world, held.run_id))
    assert (shown(world, SOURCE), world.run(held.run_id)) == before


def test_a_checkpoint_that_the_run_did_not_store_is_refused(world):
    held = filled(world)
    world.refused(make(world, held.run_id, "c9"), CheckpointNotFound)
    world.refused(make(world, held.run_id, "c2"), CheckpointNotFound)  # of a subgraph
    world.set_run(held.run_id, phase="released", expires_us=0)
    world.commit(world.put_checkpoint(SOURCE, checkpoint_id="d1", parent_id="c5"))
    assert "no run" in world.refused(make(world, held.run_id, "d1"), CheckpointNotFound).message


def test_an_unknown_run_or_one_of_another_thread_is_refused(world):
    filled(world)
    world.refused(make(world, "nobody"), RunNotFound)
    world.refused(make(world, world.queued("another thread")), RunNotFound)


@pytest.mark.parametrize("what", ["a checkpoint", "a run"])
def test_a_thread_that_is_not_new_is_refused(world, what):
    held = filled(world)
    if what == "a run":
        world.queued(THREAD)
    else:
        world.commit(world.put_checkpoint(THREAD, checkpoint_id="d1"))
    world.refused(make(world, held.run_id), ThreadNotEmpty)


def test_a_deleted_thread_is_refused_because_what_is_older_cannot_come_back_to_it(world):
    held = filled(world)
    world.commit(world.put_checkpoint(THREAD, checkpoint_id="z1"))
    world.commit(DeleteThread(**world.of_thread(THREAD)))
    world.refused(make(world, held.run_id), ThreadDeleted)
