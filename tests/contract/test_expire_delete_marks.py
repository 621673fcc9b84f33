from runtime_persist.commands.delete_thread import DeleteThread
from runtime_persist.commands.expire_delete_marks import ExpireDeleteMarks
from runtime_persist.errors import ThreadDeleted
from tests.fixtures.contracts import Receipt, changed
from tests.fixtures.world import THREAD

DAY = 86_400_000_000


def make(world, days=30, rows_max=1_000):
    return ExpireDeleteMarks(kept_us=days * DAY, rows_max=rows_max, **world.base())


def deleted(world, thread_id=THREAD, days_ago=0):
    world.commit(world.put_checkpoint(thread_id, checkpoint_id="c5"))
    world.commit(DeleteThread(**world.of_thread(thread_id)))
    world.raw.rows(
        "UPDATE rp_threads SET deleted_us = deleted_us - ? WHERE thread_hash = ?",
        days_ago * DAY,
        world.keys.thread_hash(thread_id),
    )


def marked(world):
    rows = world.raw.rows("SELECT thread_hash FROM rp_threads WHERE deleted_us IS NOT NULL")
    names = {world.keys.thread_hash(name): name for name in ("old", "older", "young", "returned")}
    return sorted(names[row["thread_hash"]] for row in rows)


class TestReceipt(Receipt):
    def make(self, world):
        deleted(world, days_ago=31)
        return make(world)

    def other(self, world, command):
        return changed(command, kept_us=1)


def test_marks_go_when_they_are_old_enough_by_the_databases_clock(world):
    deleted(world, "old", 31)
    deleted(world, "young", 29)
    assert world.commit(make(world)).result == {"expired": 1}
    assert marked(world) == ["young"]
    assert world.commit(make(world)).result == {"expired": 0}


def test_a_late_write_is_refused_for_as_long_as_there_is_a_mark(world):
    late = world.put_checkpoint(checkpoint_id="c4")
    deleted(world, days_ago=29)
    world.commit(make(world))
    world.refused(late, ThreadDeleted)
    world.commit(make(world, days=28))
    world.commit(changed(late, command_id="again"))
    assert world.head() == "c4"


def test_a_thread_that_was_used_again_keeps_its_row(world):
    deleted(world, "returned", 31)
    world.commit(world.put_checkpoint("returned", checkpoint_id="c6"))
    before = world.thread_row("returned")
    assert world.commit(make(world, days=0)).result == {"expired": 0}
    assert world.thread_row("returned") == before
    assert world.head("returned") == "c6"


def test_the_oldest_go_first_when_there_are_many(world):
    for name, days in (("old", 40), ("older", 50), ("young", 31)):
        deleted(world, name, days)
    assert world.commit(make(world, rows_max=2)).result == {"expired": 2}
    assert marked(world) == ["young"]


def test_other_spaces_keep_theirs(world):
    deleted(world, "old", 31)
    assert world.commit(changed(make(world), space="another")).result == {"expired": 0}
    assert marked(world) == ["old"]


def test_a_thread_that_is_being_used_again_at_this_moment_is_left_alone(postgres_world, postgres_raw):
    world, other = postgres_world, postgres_raw()
    deleted(world, "old", 31)
    deleted(world, "older", 41)
    other.rows("BEGIN")
    other.rows("SELECT 1 FROM rp_threads WHERE thread_hash = ? FOR UPDATE", world.keys.thread_hash("old"))
    assert world.commit(make(world)).result == {"expired": 1}  # and did not wait
    other.rows("ROLLBACK")
    assert marked(world) == ["old"]
