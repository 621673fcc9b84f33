from typing import TYPE_CHECKING

from runtime_persist.errors import LeaseExpired
from runtime_persist.model.ids import new_id
from runtime_persist.model.keys import fingerprint
from tests.fixtures.contracts import LeasedThread, Replay, changed

if TYPE_CHECKING:
    from tests.fixtures.world import Held


class TestGuard(LeasedThread):
    open_only = True

    def send(self, world, held):
        return world.begin(held)

    def on_thread(self, world, command, thread_id):
        return changed(command, key=changed(command.key, thread_id=thread_id))


class TestReplay(Replay):
    def make(self, world):
        return world.begin(world.owned())

    def other(self, world, command):
        return changed(command, operation_id=new_id(), request_fingerprint=fingerprint(b"20 EUR"))


def test_the_operation_its_first_try_and_the_event_are_written(world):
    held = world.owned()
    command = world.begin(held)
    assert world.commit(command).result == {}
    row = world.operation(command.operation_id)
    assert (row["status"], row["try_no"], row["idempotency_key"]) == ("pending", 1, "key #1")
    assert (row["run_id"], row["epoch"], row["ordinal"], row["result"]) == (held.run_id, held.epoch, "#1", None)
    (tried,) = world.raw.rows("SELECT * FROM rp_operation_tries")
    assert (tried["status"], tried["try_no"], tried["attempt_id"]) == ("started", 1, held.attempt_id)
    assert world.events(held.run_id)[-1] == "operation.started"
    assert world.raw.value("SELECT count(*) FROM rp_receipts WHERE kind = 'begin_operation'") == 0


def test_found_again_it_answers_what_is_stored(world):
    held = world.owned()
    operation = world.begun(held)
    completed = world.complete(held, operation)
    world.commit(completed)
    with world.nothing_written():
        receipt = world.commit(world.begin(held))
    assert receipt.replayed
    assert receipt.result["operation_id"] == operation
    assert (receipt.result["status"], receipt.result["result"]) == ("succeeded", completed.result)


def test_a_later_run_of_the_thread_finds_it_too(world):
    held = world.owned()
    operation = world.begun(held)
    world.expire(held)
    later = world.owned()
    assert later.run_id != held.run_id
    receipt = world.commit(world.begin(later))
    assert (receipt.replayed, receipt.result["operation_id"]) == (True, operation)
    assert receipt.result["try_status"] == "unknown"


def test_the_refusal_of_a_fenced_writer_comes_before_that_of_other_arguments(world):
    held = world.owned()
    world.begun(held)
    world.expire(held)
    other = changed(world.begin(held), request_fingerprint=b"other")
    world.refused(other, LeaseExpired)


def test_another_place_is_another_operation(world):
    held = world.owned()
    world.begun(held)
    for ordinal in ("#2", "my key"):
        assert not world.commit(world.begin(held, ordinal)).replayed
    other: Held = world.owned("another thread")
    assert not world.commit(world.begin(other)).replayed
    assert world.count("rp_operations") == world.count("rp_operation_tries") == 4
    assert world.events(held.run_id)[-3:] == ["operation.started"] * 3
