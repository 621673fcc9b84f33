import pytest

from runtime_persist.commands.delete_thread import DeleteThread
from runtime_persist.commands.finalize_run import FinalizeRun
from runtime_persist.errors import DomainsOpen
from tests.fixtures.contracts import Receipt, Unleased, changed
from tests.fixtures.world import THREAD


def make(world, thread_id=THREAD):
    return DeleteThread(**world.of_thread(thread_id))


def filled(world, thread_id):
    """A thread with a finished run, an operation, checkpoints and writes."""
    held = world.owned(thread_id)
    world.commit(world.complete(held, world.begun(held)))
    world.commit(world.commit_checkpoint(held, checkpoint_id="c1"))
    world.commit(world.commit_checkpoint(held, checkpoint_id="c2", parent_id="c1"))
    world.commit(world.commit_writes(held, "a"))
    base = world.of_thread(thread_id) | world.of_lease(held)
    world.commit(FinalizeRun.succeeded(result=b"r", owner="space", blobs=(), **base))
    world.queued(thread_id)
    return held


class TestGuard(Unleased):
    def send(self, world):
        return make(world)


class TestReceipt(Receipt):
    def make(self, world):
        filled(world, THREAD)
        return make(world)

    def other(self, world, command):
        return changed(command, thread_id="another", thread_hash=world.keys.thread_hash("another"))


def mentions(dump, word):
    return sorted(table for table, rows in dump.items() if word in repr(rows))


def test_nothing_of_the_thread_stays_but_its_mark(world):
    held = filled(world, THREAD)
    assert mentions(world.dump(), THREAD)
    world.commit(make(world))
    row = world.thread_row()
    assert (row["thread_id"], row["owner_run_id"], row["deleted_checkpoint_id"]) == (None, None, "c2")
    assert row["generation"] == 2
    assert row["deleted_us"] > 0
    assert mentions(world.dump(), THREAD) == []
    assert mentions(world.dump(), held.run_id) == []
    for table in ("rp_runs", "rp_attempts", "rp_events", "rp_operations", "rp_operation_tries", "rp_heads",
                  "rp_checkpoints", "rp_writes"):  # fmt: skip
        assert world.count(table) == 0


def test_other_threads_are_not_touched(world):
    filled(world, "other")
    own = {"rp_threads", "rp_receipts", "rp_cursors"}  # the last: see test_positions_are_never_given_again
    before = {name: rows for name, rows in world.dump().items() if name not in own}
    filled(world, THREAD)
    world.commit(make(world))
    after = world.dump()
    blobs = [row for row in after["rp_blobs"] if row in before["rp_blobs"]]
    assert {name: after[name] for name in before} | {"rp_blobs": blobs} == before


def test_an_unknown_thread_is_no_error(world):
    world.commit(make(world))
    assert world.thread_row()["thread_id"] is None


def test_a_deleted_thread_can_begin_anew(world):
    filled(world, THREAD)
    world.commit(make(world))
    world.commit(world.put_checkpoint(expects=None, checkpoint_id="c3"))
    row = world.thread_row()
    assert (row["thread_id"], row["generation"], row["deleted_checkpoint_id"]) == (THREAD, 2, "c2")
    world.commit(make(world))
    assert (world.thread_row()["generation"], world.thread_row()["deleted_checkpoint_id"]) == (3, "c3")


@pytest.mark.parametrize("start", ["start_run", "start_owned_run"])
def test_the_receipt_of_a_deleted_run_is_forgotten_with_it(world, start):
    command = getattr(world, start)()
    world.commit(command)
    world.set_run(command.request.run_id, phase="released", expires_us=0)
    world.commit(make(world))
    again = world.commit(command)
    assert not again.replayed
    assert world.run(command.request.run_id)["thread_id"] == THREAD


def test_a_thread_is_not_deleted_while_a_domain_of_its_runs_is_open(world):
    """How to find the domain would be forgotten with it."""
    held = world.owned()
    world.with_domain(held)
    world.expire(held)
    world.refused(DeleteThread(**world.of_thread()), DomainsOpen)
    world.commit(world.confirm_revocation(held.run_id))
    world.commit(DeleteThread(**world.of_thread()))
    assert world.count("rp_domains") == 0


def test_positions_are_never_given_again(world):
    """A consumer that has seen the deleted events must not take the next ones for them."""
    greatest = "SELECT max(position) AS position FROM rp_events"
    filled(world, "other")
    filled(world, THREAD)
    before = world.raw.value(greatest)
    world.commit(make(world))
    assert world.raw.value(greatest) < before
    world.commit(make(world, "other"))
    world.queued()
    assert world.raw.value(greatest) > before
