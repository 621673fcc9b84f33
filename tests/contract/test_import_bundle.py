import dataclasses

from runtime_persist.commands.import_bundle import ImportBundle
from runtime_persist.errors import SpaceTaken
from runtime_persist.model.ids import new_id
from runtime_persist.model.payload import Blob
from tests.fixtures.contracts import Replay, changed

SPACE = "bundle-1"
EVENT = {
    "run_id": "run",
    "seq": 1,
    "type": "run.created",
    "actor": "user",
    "attempt_id": None,
    "epoch": None,
    "payload": None,
    "created_us": 5,
    "position": 7,
    "dedupe_key": None,
}


def make(world, **fields):
    """The first page, which makes the space."""
    said = {"bundle": "b" * 64, "manifest": b"{}", "as_of_us": 9, "secret": b"s" * 32, "page": 0, "space": SPACE}
    return ImportBundle(**(world.base() | said | fields))


def page(world, number=1, **fields):
    rows = {"events": (EVENT,)}
    return make(world, page=number, rows=rows, blobs=(Blob(b"a" * 16, 3, b"\0abc"),), **fields)


class TestReplay(Replay):
    def make(self, world):
        return make(world)

    def other(self, world, command):
        return changed(command, page=5)


def space(world):
    return world.raw.one("SELECT * FROM rp_spaces WHERE space = ?", SPACE)


def test_the_first_page_makes_a_space_that_is_not_whole_and_the_last_one_ends_that(world):
    world.commit(make(world))
    made = space(world)
    assert (made["bundle"], bytes(made["manifest"]), made["as_of_us"]) == ("b" * 64, b"{}", 9)
    assert (bytes(made["secret"]), made["whole_us"]) == (b"s" * 32, None)
    world.commit(page(world, last=True))
    ended = space(world)["whole_us"]
    assert ended > 0
    world.commit(page(world, 2, last=True))
    assert space(world)["whole_us"] == ended


def test_a_page_is_stored_as_it_is_and_once(world):
    world.commit(make(world))
    world.commit(page(world))
    (stored,) = world.raw.rows("SELECT * FROM rp_events WHERE space = ?", SPACE)
    assert {name: stored[name] for name in EVENT} == EVENT
    assert world.raw.value("SELECT size FROM rp_blobs WHERE space = ?", SPACE) == 3
    again = dataclasses.replace(page(world), command_id=new_id())
    world.commit(again)
    assert world.raw.value("SELECT count(*) FROM rp_events WHERE space = ?", SPACE) == 1


def test_a_space_of_anything_else_is_refused(world):
    with world.nothing_written():
        world.refused(make(world, space=world.space), SpaceTaken)
        world.refused(page(world), SpaceTaken)  # nobody made it
    world.commit(make(world))
    with world.nothing_written():
        world.refused(page(world, bundle="c" * 64), SpaceTaken)
        world.refused(page(world, secret=b"t" * 32), SpaceTaken)


def test_the_secret_is_not_shown(world):
    assert "ssss" not in repr(make(world))
