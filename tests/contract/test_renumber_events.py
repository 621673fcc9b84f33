import pytest

from runtime_persist.commands.ack_events import AckEvents
from runtime_persist.commands.renumber_events import RenumberEvents
from runtime_persist.queries import events as event_queries
from runtime_persist.queries.events import BEGINNING, Place
from runtime_persist.runtime.events import Consumer
from tests.fixtures.contracts import Receipt, changed

FAR = 1 << 40


@pytest.fixture
def world(postgres_world):
    """Only a database that numbers by transactions can meet numbers of another server."""
    return postgres_world


def make(world):
    return RenumberEvents(**world.base())


def delivered(world, after=BEGINNING):
    rows = world.engine.coordinator.read("outbox", lambda: event_queries.outbox(world.space, after, 100)).result()
    return [(row["run_id"], row["seq"]) for row in rows]


def restored(world):
    """A space as out of a dump of a server that had come far; a consumer had seen the first run."""
    runs = [world.queued("a"), world.queued("b")]
    (first, *_) = world.raw.rows("SELECT run_id, seq, position FROM rp_events ORDER BY position, run_id, seq DESC")
    ack = {"consumer": "billing", "expected": BEGINNING, "reached": Place.of(first)}
    world.commit(AckEvents(**world.base(), **ack))
    for table, column in (("rp_events", "position"), ("rp_runs", "event_position"), ("rp_cursors", "position")):
        world.raw.rows(f"UPDATE {table} SET {column} = {column} + ?", FAR)
    return runs


class TestReceipt(Receipt):
    def make(self, world):
        restored(world)
        return make(world)

    def test_another_request_under_its_id_is_refused(self, world):
        """It has no field beside the space, whose receipts are its own."""
        command = self.make(world)
        world.commit(command)
        assert not world.commit(changed(command, space="elsewhere")).replayed


def test_foreign_positions_come_first_in_each_runs_order_and_consumers_begin_anew(world):
    first, second = restored(world)
    assert delivered(world) == []
    assert world.commit(make(world)).result == {"found": True}
    third = world.queued("c")
    again = delivered(world)
    assert again[-2:] == [(third, 1), (third, 2)]
    assert sorted(again) == sorted((run, seq) for run in (first, second, third) for seq in (1, 2))
    assert [seq for run, seq in again if run == first] == [1, 2]
    assert Place.of(world.raw.one("SELECT * FROM rp_cursors")) == BEGINNING


def test_a_run_goes_on_behind_its_renumbered_events(world):
    first, _ = restored(world)
    world.commit(make(world))
    world.commit(world.claim_run(first, "a"))
    places = [
        row["position"] for row in world.raw.rows("SELECT position FROM rp_events WHERE run_id = ? ORDER BY seq", first)
    ]
    assert places[:2] == [0, 0]
    assert 0 < places[2] < FAR


def test_where_there_are_none_nothing_is_changed(world):
    world.queued("a")
    before = {name: rows for name, rows in world.dump().items() if name != "rp_receipts"}
    assert world.commit(make(world)).result == {"found": False}
    assert {name: rows for name, rows in world.dump().items() if name != "rp_receipts"} == before


def test_a_consumer_that_begins_notices_them(world, caplog):
    first, second = restored(world)
    found = [(event.run_id, event.seq) for event in Consumer(world.engine, "billing", wait=False)]
    assert sorted(found) == sorted((run, seq) for run in (first, second) for seq in (1, 2))
    assert "restored" in caplog.text
    assert list(Consumer(world.engine, "billing", wait=False)) == []
