import dataclasses

from runtime_persist.commands.delete_thread import DeleteThread
from runtime_persist.commands.import_thread import ImportThread
from runtime_persist.errors import CheckpointConflict, StaleWriter, ThreadDeleted
from runtime_persist.model.ids import new_id
from tests.fixtures.contracts import Receipt, Unleased, changed
from tests.fixtures.world import THREAD

EMPTY = {"rows": (), "writes": (), "heads": {}}


def make(world, thread_id=THREAD, **fields):
    """c1 <- c2 with two writes of c1, and the head."""
    given = {
        "rows": (world.row("c1"), world.row("c2", "c1", b"other body")),
        "writes": (world.given("a", "b"),),
        "heads": {"": (None, "c2")},
    }
    return ImportThread(**(given | world.of_thread(thread_id) | fields))


def again(command, **fields):
    """The same page, sent by a second import."""
    return dataclasses.replace(command, command_id=new_id(), **fields)


class TestGuard(Unleased):
    def send(self, world):
        return make(world)


class TestReceipt(Receipt):
    def make(self, world):
        return make(world)

    def other(self, world, command):
        return changed(command, rows=command.rows[:1])


def stored(world):
    found = world.raw.rows("SELECT checkpoint_id, parent_id FROM rp_checkpoints ORDER BY checkpoint_id")
    return [(row["checkpoint_id"], row["parent_id"]) for row in found]


def test_checkpoints_writes_content_and_head_are_stored(world):
    world.commit(make(world))
    assert (stored(world), world.head(), world.count("rp_blobs")) == ([("c1", None), ("c2", "c1")], "c2", 2)
    rows = world.raw.rows("SELECT task_id, idx, channel, run_id, epoch FROM rp_writes ORDER BY idx")
    assert [tuple(row.values()) for row in rows] == [("task", 0, "ch", None, None), ("task", 1, "ch", None, None)]


def test_the_head_moves_only_when_it_is_told_to(world):
    world.commit(make(world, heads={}))
    assert world.count("rp_heads") == 0
    world.commit(make(world, **EMPTY | {"heads": {"": (None, "c2")}}))
    assert world.head() == "c2"


def test_a_page_that_is_there_already_changes_nothing(world):
    command = make(world)
    world.commit(command)
    before = {table: rows for table, rows in world.dump().items() if table != "rp_receipts"}
    assert world.commit(again(command)).result == {"stored": 0}
    assert {table: rows for table, rows in world.dump().items() if table != "rp_receipts"} == before


def test_a_page_that_is_half_there_is_completed(world):
    command = make(world)
    world.commit(again(command, rows=command.rows[:1], writes=(world.given("a"),), heads={}))
    world.commit(command)
    assert (len(stored(world)), world.count("rp_writes"), world.head()) == (2, 2, "c2")


def test_a_checkpoint_with_other_content_is_refused(world):
    world.commit(make(world))
    world.refused(make(world, rows=(world.row("c1", None, b"different"),)), CheckpointConflict)


def test_a_write_with_other_content_is_refused(world):
    world.commit(make(world))
    world.refused(make(world, writes=(world.given("other"),)), CheckpointConflict)


def test_a_head_that_moved_on_is_refused(world):
    world.commit(make(world))
    world.commit(world.put_checkpoint(checkpoint_id="c3", parent_id="c2"))
    error = world.refused(make(world, **EMPTY | {"heads": {"": ("c2", "c4")}}), StaleWriter)
    assert error.details["head"] == "c3"


def test_a_later_import_moves_the_head_it_left(world):
    world.commit(make(world))
    world.commit(make(world, rows=(world.row("c3", "c2", b"third"),), writes=(), heads={"": ("c2", "c3")}))
    assert world.head() == "c3"


def test_a_deleted_thread_is_refused(world):
    world.commit(make(world))
    world.commit(DeleteThread(**world.of_thread()))
    world.refused(make(world), ThreadDeleted)
    assert world.thread_row()["thread_id"] is None


def test_what_is_newer_than_the_deletion_is_stored_and_the_thread_has_its_id_again(world):
    world.commit(make(world))
    world.commit(DeleteThread(**world.of_thread()))
    world.commit(make(world, rows=(world.row("c3"),), writes=(), heads={"": (None, "c3")}))
    assert (stored(world), world.head(), world.thread_row()["thread_id"]) == ([("c3", None)], "c3", THREAD)
