import pytest

from runtime_persist.commands.note_attempt import NoteAttempt
from runtime_persist.errors import IllegalTransition
from tests.fixtures.contracts import Leased


def make(world, held, operation, **fields):
    return NoteAttempt(**({"operation_id": operation, "try_no": 1} | world.of_lease(held) | fields))


def noted(world):
    row = world.raw.one("SELECT * FROM rp_operation_tries")
    return row["provider_request_id"], row["first_output_kind"], row["first_output_us"]


class TestGuard(Leased):
    def send(self, world, held):
        return make(world, held, world.begun(held), provider_request_id="req-1")


def test_a_request_id_is_noted_and_a_later_one_replaces_it(world):
    held = world.owned()
    operation = world.begun(held)
    world.commit(make(world, held, operation, provider_request_id="req-1"))
    assert noted(world) == ("req-1", None, None)
    world.commit(make(world, held, operation, provider_request_id="req-2"))
    assert noted(world) == ("req-2", None, None)


def test_the_first_output_counts_with_its_kind_and_its_time(world):
    held = world.owned()
    operation = world.begun(held)
    world.commit(make(world, held, operation, first_output_kind="text"))
    _, kind, at = noted(world)
    assert (kind, at >= world.raw.value("SELECT started_us FROM rp_operation_tries")) == ("text", True)
    world.commit(make(world, held, operation, first_output_kind="tool_name", provider_request_id="req-1"))
    assert noted(world) == ("req-1", "text", at)


def test_sent_again_it_writes_the_same(world):
    held = world.owned()
    command = make(world, held, world.begun(held), first_output_kind="text")
    world.commit(command)
    before = noted(world)
    world.commit(command)
    assert noted(world) == before


@pytest.mark.parametrize("try_no", [0, 2])
def test_another_try_than_the_current_one_is_refused(world, try_no):
    held = world.owned()
    world.refused(make(world, held, world.begun(held), try_no=try_no), IllegalTransition)


def test_nothing_is_noted_about_a_try_that_has_ended(world):
    held = world.owned()
    operation = world.begun(held)
    world.commit(world.complete(held, operation))
    world.refused(make(world, held, operation, provider_request_id="late"), IllegalTransition)
