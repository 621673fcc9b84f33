from runtime_persist.errors import CommandMismatch
from tests.fixtures.contracts import Receipt, changed
from tests.fixtures.world import THREAD


class TestReceipt(Receipt):
    def make(self, world):
        return world.start_run()

    def other(self, world, command):
        return changed(command, request=world.request("another input"))


def test_the_run_is_queued_as_the_last_of_its_thread(world):
    command = world.start_run()
    receipt = world.commit(command)
    assert receipt.result == {"run_id": command.request.run_id, "thread_id": THREAD}
    second = world.commit(world.start_run()).result["run_id"]
    run = world.run(command.request.run_id)
    assert (run["status"], run["phase"], run["control"], run["epoch"]) == ("queued", "released", "open", 0)
    assert (run["thread_run_no"], run["attempt_id"], run["version"]) == (1, None, 1)
    assert run["queued_us"] == run["created_us"] > 0
    assert world.run(second)["thread_run_no"] == 2
    assert world.thread_row()["run_no"] == 2
    assert world.thread_row()["owner_run_id"] is None
    assert world.events(command.request.run_id) == ["run.created", "run.queued"]
    assert world.count("rp_blobs") == 1


def test_it_is_accepted_while_a_live_run_owns_the_thread(world):
    held = world.owned()
    queued = world.queued()
    assert world.run(queued)["thread_run_no"] == 2
    assert world.thread_row()["owner_run_id"] == held.run_id


def test_the_same_request_with_another_run_id_is_the_same_run(world):
    command = world.start_run(idempotency_key="k")
    first = world.commit(command)
    again = changed(command, request=changed(command.request, run_id="made up anew"))
    with world.nothing_written():
        assert world.commit(again).result == first.result


def test_a_refusal_names_what_is_stored(world):
    command = world.start_run()
    world.commit(command)
    other = changed(command, request=world.request("other"))
    error = world.refused(other, CommandMismatch)
    assert error.details["stored"]["run_id"] == command.request.run_id
