import random

import pytest

from runtime_persist.commands.store_content import StoreContent
from runtime_persist.contentstore import pack, unpack
from runtime_persist.errors import StoreFailed
from runtime_persist.model.payload import Blob
from tests.fixtures.contracts import changed

SIZE = 100_000


def blob(world, number):
    content = random.Random(number).randbytes(SIZE)
    return Blob(world.keys.address(world.engine.owner, content), len(content), pack(content))


def make(world, *numbers):
    found = sorted((blob(world, number) for number in numbers), key=lambda one: one.address)
    return StoreContent(owner=world.engine.owner, blobs=found, **world.base())


def stored(world):
    rows = world.raw.rows("SELECT space, owner, address, size, content FROM rp_blobs ORDER BY address")
    return [(row["space"], row["owner"], bytes(row["address"]), row["size"], bytes(row["content"])) for row in rows]


def column(world, name):
    rows = world.raw.rows(f"SELECT address, {name} FROM rp_blobs")
    return {bytes(row["address"]): row[name] for row in rows}


def test_content_is_stored_and_nothing_else_is_written(world):
    command = make(world, 1, 2, 3)
    others = ("rp_receipts", "rp_events", "rp_threads", "rp_checkpoints", "rp_writes", "rp_heads")
    before = [world.count(table) for table in others]
    world.commit(command)
    assert stored(world) == [(world.space, world.engine.owner, b.address, b.size, b.content) for b in command.blobs]
    assert [world.count(table) for table in others] == before


def test_sent_again_it_writes_nothing(world):
    command = make(world, 1, 2)
    world.commit(command)
    with world.nothing_written():
        world.commit(command)
        world.commit(changed(command, command_id="another"))


def test_of_what_is_there_already_only_the_rest_is_added(world):
    world.commit(make(world, 1))
    before = column(world, "created_us")
    world.commit(make(world, 1, 2))
    after = column(world, "created_us")
    assert len(after) == len(before) + 1
    assert after.items() >= before.items()


def test_the_mark_of_a_collection_goes(world):
    world.commit(make(world, 1, 2))
    world.raw.rows("UPDATE rp_blobs SET unused_us = 1")
    world.commit(make(world, 1))
    assert column(world, "unused_us") == {blob(world, 1).address: None, blob(world, 2).address: 1}


def test_no_lease_and_no_thread_is_needed_and_a_live_run_is_not_disturbed(world):
    held = world.owned()
    world.commit(make(world, 1))
    assert not world.commit(world.commit_checkpoint(held)).replayed


def test_an_owner_and_a_space_have_content_of_their_own(world):
    command = make(world, 1)
    world.commit(command)
    world.commit(changed(command, owner="another"))
    world.commit(changed(command, space="another"))
    assert sorted(row[:2] for row in stored(world)) == sorted(
        [(world.space, world.engine.owner), (world.space, "another"), ("another", world.engine.owner)]
    )


def test_it_is_stored_whole_or_not_at_all(world):
    """A blob the database refuses takes its neighbours with it."""
    command = make(world, 1, 2)
    good, bad = command.blobs
    with pytest.raises(StoreFailed):
        world.commit(changed(command, blobs=[good, Blob(bad.address, bad.size, None)]))
    assert world.count("rp_blobs") == 0


def test_what_is_stored_unpacks_to_what_was_given(world):
    world.commit(make(world, 1))
    assert unpack(stored(world)[0][4]) == random.Random(1).randbytes(SIZE)
