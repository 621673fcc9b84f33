"""Content of large values: stored ahead in parts, by one of those who need it; read in parts, and held once."""

import random
import time
from concurrent.futures import Future

import pytest

from runtime_persist.contentstore import ContentStore
from runtime_persist.contentstore.parcel import Part
from runtime_persist.errors import CheckpointCorrupt
from runtime_persist.model import limits
from runtime_persist.model.keys import SpaceKeys

KEYS = SpaceKeys("s", b"k" * 32)
OWNER, WHERE = "space", "channel value"
SIZE = 10_000_000
DATA = random.Random(1).randbytes(SIZE)
ENDED = Future()
ENDED.set_result(None)
FAILED = Future()
FAILED.set_exception(OSError())


class Server:
    """What is stored, how many connections to it were lost, and a process that uses it."""

    def __init__(self) -> None:
        self.stored: dict[bytes, bytes] = {}
        self.parts: list[list[bytes]] = []
        self.losses = 0
        self.content = ContentStore(KEYS, OWNER, lambda: self.losses)

    def put(self, data=DATA):
        writer = self.content.writer(ahead=True)
        ref = writer.put("bytes", data, 128)
        return ref, writer

    def take(self, step, done=ENDED):
        assert isinstance(step, Part)
        if done is ENDED:
            self.stored |= {blob.address: blob.content for blob in step.blobs}
            self.parts.append([blob.address for blob in step.blobs])
        step.settled(done)

    def sent(self):
        return [address for part in self.parts for address in part]

    def finish(self, steps):
        for step in steps:
            self.take(step)

    def read(self, *refs):
        reader = ContentStore(KEYS, OWNER).reader()
        reader.want(refs)
        self.trips = []
        while asked := reader.missing():
            found = {address: self.stored[address] for address in asked if address in self.stored}
            self.trips.append(sum(map(len, found.values())))
            reader.give(asked, found)
        return reader


@pytest.fixture
def server():
    return Server()


def test_content_is_packed_part_by_part_and_all_of_it_once(server):
    ref, writer = server.put()
    parcel = writer.blobs()
    for step in writer.ahead():
        assert step.bytes <= limits.CONTENT_PART_BYTES_MAX + limits.CHUNKED_BYTES_MIN
        server.take(step)
    assert len(server.parts) == 3
    assert server.sent() == sorted(server.stored)
    assert list(parcel) == []
    writer.committed()
    assert server.read(ref).content(ref, WHERE) == DATA


def test_who_does_not_send_ahead_packs_where_it_is(server, monkeypatch):
    """Not on the thread that talks to the database, whose other commands would wait."""
    writer = server.content.writer()
    writer.put("bytes", DATA, 128)
    parcel = writer.blobs()
    monkeypatch.setattr("runtime_persist.contentstore.parcel.pack", None)
    assert sum(blob.size for blob in parcel) >= SIZE


def test_of_two_that_store_the_same_each_part_is_stored_by_one(server):
    (_, one), (_, other) = server.put(), server.put()
    steps, others = one.ahead(), other.ahead()
    first = next(steps)
    second = next(others)
    assert not {b.address for b in first.blobs} & {b.address for b in second.blobs}
    server.take(second)
    third = next(others)
    server.take(third)
    turn = next(others)
    assert turn is first.turn
    assert not turn.done()
    server.take(first)
    assert turn.done()
    assert list(others) == []
    assert list(steps) == []
    assert len(server.sent()) == len(server.stored)


@pytest.mark.parametrize("done", [FAILED, None], ids=["failed", "not sent"])
def test_what_one_could_not_store_the_other_one_does(server, done):
    (_, one), (ref, other) = server.put(), server.put()
    first = next(one.ahead())
    others = other.ahead()
    for _ in range(2):
        server.take(next(others))
    assert next(others) is first.turn
    server.take(first, done)
    server.finish(others)
    assert list(other.blobs()) == []
    assert server.read(ref).content(ref, WHERE) == DATA


def test_after_a_lost_connection_all_of_it_goes_again_but_what_was_sent_since(server):
    ref, writer = server.put()
    steps = writer.ahead()
    server.take(next(steps))
    server.losses += 1
    server.stored.clear()  # a standby took over that has nothing of it
    server.finish(steps)
    assert len(server.sent()) < 2 * len(server.stored)
    assert list(writer.blobs()) == []
    assert server.read(ref).content(ref, WHERE) == DATA


def test_a_connection_lost_before_the_command_makes_the_command_bring_it(server):
    _, writer = server.put()
    server.finish(writer.ahead())
    server.losses += 1
    assert {blob.address for blob in writer.blobs()} == set(server.stored)


def test_connections_that_are_lost_all_the_time_end_nothing_but_going_ahead(server):
    _, writer = server.put()
    for step in writer.ahead():
        server.take(step)
        server.losses += 1
    assert {blob.address for blob in writer.blobs()} == set(server.stored)


def test_a_process_that_slept_so_long_that_content_may_be_collected_brings_it(server, monkeypatch):
    _, writer = server.put()
    server.finish(writer.ahead())
    assert list(writer.blobs()) == []
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + limits.CARRIED_SECONDS + 1)
    assert {blob.address for blob in writer.blobs()} == set(server.stored)


def test_a_large_value_is_read_in_statements_of_bounded_size(server):
    ref, writer = server.put()
    server.finish(writer.ahead())
    server.read(ref)
    assert sum(server.trips) > SIZE
    assert max(server.trips) <= 1.25 * limits.READ_BYTES_MAX  # it is an estimate
    assert len(server.trips) <= 4


def test_many_small_parts_of_a_large_value_are_read_in_few_statements(server):
    writer = server.content.writer(ahead=True)
    refs = [writer.put("bytes", random.Random(n).randbytes(4_000), 128) for n in range(3_000)]
    server.finish(writer.ahead())
    reader = server.read(*refs)
    assert max(server.trips) <= 1.25 * limits.READ_BYTES_MAX  # it is an estimate
    assert len(server.trips) <= 7
    assert reader.content(refs[7], WHERE) == random.Random(7).randbytes(4_000)


def test_values_that_share_their_content_come_back_whole_one_after_the_other(server):
    longer = DATA + b"more"
    writer = server.content.writer(ahead=True)
    refs = [writer.put("bytes", data, 128) for data in (DATA, longer, DATA)]
    server.finish(writer.ahead())
    reader = server.read(*refs)
    assert [reader.content(ref, WHERE) for ref in (*refs, refs[0])] == [DATA, longer, DATA, DATA]
    reader.keep()


def test_what_is_kept_of_a_large_value_is_not_the_value(server):
    ref, writer = server.put()
    server.finish(writer.ahead())
    content = ContentStore(KEYS, OWNER)
    reader = content.reader()
    reader.want([ref])
    while asked := reader.missing():
        reader.give(asked, {address: server.stored[address] for address in asked})
    reader.content(ref, WHERE)
    reader.keep()
    kept = content.cache.get(server.stored)
    assert len(kept) > 1
    assert {type(found) for found in kept.values()} == {bytes}


def test_damage_in_a_large_value_is_noticed(server):
    ref, writer = server.put()
    server.finish(writer.ahead())
    address = sorted(server.stored)[5]
    server.stored[address] = server.stored[address][:-1] + b"?"
    with pytest.raises(CheckpointCorrupt, match=address.hex()):
        server.read(ref).content(ref, WHERE)
