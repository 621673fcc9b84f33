import pytest

from runtime_persist.commands.ack_events import AckEvents
from runtime_persist.errors import ConsumerMoved, InvalidInput
from runtime_persist.model.ids import new_id
from runtime_persist.queries import events as event_queries
from runtime_persist.queries.events import BEGINNING, Place
from tests.fixtures.contracts import Replay, changed
from tests.fixtures.raw import wait_until

CONSUMER = "billing"


def places(world, rows=100):
    """Where the events of the space stand, in the order in which they are delivered.

    PostgreSQL delivers nothing behind the oldest transaction of the whole server, which may be one of its own.
    """

    def found():
        listed = world.engine.coordinator.read("outbox", lambda: event_queries.outbox(world.space, BEGINNING, rows))
        return [Place.of(row) for row in listed.result()]

    wait_until(lambda: len(found()) == world.count("rp_events"), "all events are delivered")
    return found()


def make(world, expected, reached, **fields):
    return AckEvents(**(world.base() | {"consumer": CONSUMER, "expected": expected, "reached": reached} | fields))


def cursor(world):
    return Place.of(world.raw.one("SELECT * FROM rp_cursors WHERE consumer = ?", CONSUMER))


class TestReceipt(Replay):
    mismatch = ConsumerMoved

    def make(self, world):
        world.queued()
        return make(world, BEGINNING, places(world)[0])

    def other(self, world, command):
        return changed(command, reached=places(world)[1])


def test_the_cursor_goes_from_place_to_place(world):
    world.queued()
    first, second = places(world)
    world.commit(make(world, BEGINNING, first))
    assert cursor(world) == first
    world.commit(make(world, first, second))
    assert cursor(world) == second


def test_it_never_goes_back(world):
    world.queued()
    first, second = places(world)
    world.commit(make(world, BEGINNING, second))
    with pytest.raises(InvalidInput, match="back"):
        make(world, second, first)
    world.refused(make(world, BEGINNING, first), ConsumerMoved)
    assert cursor(world) == second


def test_of_two_that_consume_under_one_name_the_second_is_told(world):
    world.queued()
    world.queued("another thread")
    first, second, third, _ = places(world)
    world.commit(make(world, BEGINNING, first))
    world.commit(make(world, first, third))
    error = world.refused(make(world, first, second), ConsumerMoved)
    assert error.details["consumer"] == CONSUMER
    assert cursor(world) == third


def test_the_second_is_told_too_when_both_handled_the_same(world):
    world.queued()
    first, _ = places(world)
    world.commit(make(world, BEGINNING, first))
    world.refused(make(world, BEGINNING, first), ConsumerMoved)


def test_consumers_and_spaces_do_not_know_each_other(world):
    world.queued()
    first, second = places(world)
    world.commit(make(world, BEGINNING, second))
    world.commit(make(world, BEGINNING, first, consumer="mail", command_id=new_id()))
    world.commit(make(world, BEGINNING, first, space="elsewhere", command_id=new_id()))
    assert [row["seq"] for row in world.raw.rows("SELECT seq FROM rp_cursors ORDER BY seq")] == [1, 1, 2]
