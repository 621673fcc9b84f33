from runtime_persist.commands.copy_thread import CopyThread
from runtime_persist.commands.delete_thread import DeleteThread
from runtime_persist.errors import InvalidInput, ThreadDeleted, ThreadNotEmpty
from tests.fixtures.contracts import Receipt, Unleased, changed
from tests.fixtures.world import THREAD

SOURCE = "source"


def make(world, target=THREAD, source=SOURCE):
    return CopyThread(source_id=source, source_hash=world.keys.thread_hash(source), **world.of_thread(target))


def filled(world):
    """A thread with two checkpoints, writes, one finished and one open operation."""
    held = world.owned(SOURCE)
    world.commit(world.complete(held, world.begun(held)))
    world.begun(held, ordinal="#2")
    world.commit(world.commit_checkpoint(held, checkpoint_id="c1"))
    world.commit(world.commit_checkpoint(held, checkpoint_id="c2", parent_id="c1"))
    world.commit(world.commit_writes(held, "a"))
    return held


class TestGuard(Unleased):
    def send(self, world):
        return make(world)


class TestReceipt(Receipt):
    def make(self, world):
        return make(world)

    def other(self, world, command):
        return changed(command, source_id="another")


def of_thread(world, table, thread_id):
    rows = world.raw.rows(f"SELECT * FROM {table} WHERE thread_id = ?", thread_id)
    return [{k: v for k, v in row.items() if k not in {"thread_id", "run_id", "epoch"}} for row in rows]


def test_the_copy_has_the_same_rows_under_its_own_id_and_shares_the_content(world):
    filled(world)
    blobs = world.count("rp_blobs")
    world.commit(make(world))
    for table in ("rp_checkpoints", "rp_writes", "rp_heads"):
        assert sorted(map(repr, of_thread(world, table, THREAD))) == sorted(map(repr, of_thread(world, table, SOURCE)))
    assert (world.head(), world.count("rp_blobs")) == ("c2", blobs)


def test_the_source_is_untouched_also_while_a_live_run_owns_it(world):
    filled(world)
    before = {t: of_thread(world, t, SOURCE) for t in ("rp_checkpoints", "rp_writes", "rp_heads", "rp_operations")}
    world.commit(make(world))
    assert {table: of_thread(world, table, SOURCE) for table in before} == before


def test_an_effect_of_the_source_never_fires_again_in_the_copy(world):
    filled(world)
    world.commit(make(world))
    rows = world.raw.rows("SELECT * FROM rp_operations WHERE thread_id = ? ORDER BY ordinal", THREAD)
    source = world.raw.rows("SELECT * FROM rp_operations WHERE thread_id = ? ORDER BY ordinal", SOURCE)
    assert [row["status"] for row in rows] == ["succeeded", "pending"]
    assert [row["copied_from"] for row in rows] == [row["operation_id"] for row in source]
    assert [row["idempotency_key"] for row in rows] == [row["idempotency_key"] for row in source]
    assert [world.tries(row["operation_id"]) for row in rows] == [["succeeded"], ["unknown"]]
    assert [world.tries(row["operation_id"]) for row in source] == [["succeeded"], ["started"]]


def test_a_target_that_is_not_empty_is_refused(world):
    filled(world)
    world.commit(world.put_checkpoint(checkpoint_id="c9"))
    world.refused(make(world), ThreadNotEmpty)


def test_a_deleted_target_is_refused_because_no_saver_could_write_to_the_copy(world):
    """What is put on a copied checkpoint names one that is older than the mark of the deleted thread."""
    filled(world)
    world.commit(world.put_checkpoint(checkpoint_id="z1"))
    world.commit(DeleteThread(**world.of_thread()))
    world.refused(make(world), ThreadDeleted)
    world.refused(world.put_checkpoint(checkpoint_id="z2", parent_id="c2"), ThreadDeleted)


def test_a_thread_is_not_copied_onto_itself(world):
    world.refused(make(world, target=SOURCE), InvalidInput)


def test_an_unknown_source_gives_an_empty_copy(world):
    world.commit(make(world))
    assert world.count("rp_checkpoints") == 0
