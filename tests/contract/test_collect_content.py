import time

import pytest

from runtime_persist.commands.collect_content import CollectContent
from runtime_persist.commands.import_thread import ImportThread
from runtime_persist.commands.replace_thread_checkpoint import ReplaceThreadCheckpoint
from tests.fixtures.contracts import Receipt, changed

HOUR = 3_600_000_000
NOTHING = {"marked": 0, "unmarked": 0, "removed": 0, "removed_bytes": 0}


def now():
    """A moment of the database's clock (it runs on this machine), behind all that was stored."""
    return time.time_ns() // 1_000 + 2_000


def address(world, name):
    return world.keys.address(world.engine.owner, b"content of " + name)


def stored(world, *names):
    """Content of checkpoints, each of a thread of its own."""
    for name in names:
        world.commit(world.put_checkpoint(name.decode(), body=name))
    return tuple(address(world, name) for name in names)


def make(world, seen_us=None, window_us=24 * HOUR, **found):
    moment = now() if seen_us is None else seen_us
    return CollectContent(owner=world.engine.owner, seen_us=moment, window_us=window_us, **found, **world.base())


def collect(world, **fields):
    """The counts that are not 0."""
    result = world.commit(make(world, **fields)).result
    return {name: count for name, count in result.items() if count}


def marks(world):
    """Which content is there, and whether it is marked."""
    return {
        bytes(row["address"]): row["unused_us"] is not None
        for row in world.raw.rows("SELECT address, unused_us FROM rp_blobs")
    }


def later(world, hours):
    """As if that much time had gone by since the marks were made."""
    world.raw.rows("UPDATE rp_blobs SET unused_us = unused_us - ?", hours * HOUR)


class TestReceipt(Receipt):
    def make(self, world):
        return make(world, unused=stored(world, b"a"))

    def other(self, world, command):
        return changed(command, unused=())


def test_content_is_marked_first_and_removed_when_it_was_marked_long_enough_ago(world):
    one, other = stored(world, b"one", b"other")
    assert collect(world, unused=(one,)) == {"marked": 1}
    assert marks(world) == {one: True, other: False}
    assert collect(world, unused=(one,)) == {}, "at once it does nothing more"
    later(world, 23)
    assert collect(world, unused=(one, other)) == {"marked": 1}
    later(world, 1)
    assert collect(world, unused=(one, other)) == {"removed": 1, "removed_bytes": len(b"content of one")}
    assert marks(world) == {other: True}


def test_what_is_used_again_loses_its_mark(world):
    (one,) = stored(world, b"one")
    collect(world, unused=(one,))
    later(world, 48)
    assert collect(world, used=(one,)) == {"unmarked": 1}
    assert collect(world, unused=(one,)) == {"marked": 1}, "and begins anew"


@pytest.mark.parametrize("send", ["put_checkpoint", "put_writes", "complete", "start_run", "import", "replace"])
def test_who_sends_it_takes_the_mark_off_and_keeps_it_from_being_removed(world, send):
    """Whatever command brings it, hot or cold: what a scan found before that does not count."""
    held = world.owned("another")
    operation_id = world.begun(held)
    command = {
        "put_checkpoint": lambda: world.put_checkpoint("new", body=b"one"),
        "put_writes": lambda: world.put_writes("x", thread_id="new"),
        "complete": lambda: world.complete(held, operation_id),
        "start_run": lambda: world.start_run("new"),
        "import": lambda: imported(world),
        "replace": lambda: replaced(world),
    }[send]()
    blobs = sent(command)
    assert blobs
    if send != "replace":  # that one needs the checkpoint; it has brought the content already
        before(world, send)
    addresses = tuple(blob.address for blob in blobs)
    collect(world, unused=addresses)
    later(world, 48)
    seen_us = now()
    world.commit(command)
    assert not any(marks(world)[one] for one in addresses)
    assert world.commit(make(world, unused=addresses, seen_us=seen_us)).result["removed"] == 0
    assert set(addresses) <= set(marks(world))


def sent(command):
    for where in (command, *(getattr(command, name, None) for name in ("row", "given", "request"))):
        if blobs := getattr(where, "blobs", None):
            return blobs
    return command.rows[0].blobs


def imported(world):
    return ImportThread(rows=(world.row(body=b"one"),), **world.of_thread("new"))


def replaced(world):
    world.commit(world.put_checkpoint("new", body=b"one"))
    return ReplaceThreadCheckpoint(row=world.row(body=b"one"), **world.of_thread("new"))


def before(world, send):
    """The same content, sent by somebody else before."""
    if send in {"put_checkpoint", "import"}:
        stored(world, b"one")
    elif send == "put_writes":
        world.commit(world.put_writes("x", thread_id="old"))
    elif send == "start_run":
        world.commit(world.start_run("old"))
    else:
        held = world.owned("old")
        world.commit(world.complete(held, world.begun(held)))


def test_what_is_younger_than_the_look_at_the_rows_is_left_alone(world):
    (one,) = stored(world, b"one")
    created = world.raw.value("SELECT created_us FROM rp_blobs")
    assert collect(world, unused=(one,), seen_us=created - 1) == {}
    assert marks(world) == {one: False}


def test_a_mark_counts_from_when_it_was_made_to_the_look_at_the_rows(world):
    """A look that began before, however long its commands take, is not long enough after it."""
    (one,) = stored(world, b"one")
    moment = now()
    collect(world, unused=(one,))
    marked = world.raw.value("SELECT unused_us FROM rp_blobs")
    for seen_us, removed in ((moment, 0), (marked + 24 * HOUR - 1, 0), (marked + 24 * HOUR, 1)):
        assert world.commit(make(world, unused=(one,), seen_us=seen_us)).result["removed"] == removed


def test_what_is_not_there_and_what_nobody_named_does_nothing(world):
    stored(world, b"one")
    assert world.commit(make(world, unused=(b"x" * 16,), used=(b"y" * 16,))).result == NOTHING
    assert world.commit(make(world)).result == NOTHING
    assert list(marks(world).values()) == [False]


def test_other_spaces_and_owners_keep_theirs(world):
    (one,) = stored(world, b"one")
    for other in ({"space": "another"}, {"owner": "another"}):
        assert world.commit(changed(make(world, unused=(one,)), **other)).result == NOTHING


def test_content_that_is_being_sent_at_this_moment_is_left_alone_and_nobody_waits(postgres_world, postgres_raw):
    world, other = postgres_world, postgres_raw()
    one, two = stored(world, b"one", b"two")
    collect(world, unused=(one, two))
    later(world, 48)
    other.rows("BEGIN")
    other.rows("UPDATE rp_blobs SET unused_us = NULL WHERE address = ?", one)
    assert world.commit(make(world, unused=(one, two))).result["removed"] == 1  # and did not wait
    other.rows("COMMIT")
    assert marks(world) == {one: False}


def test_who_sends_what_is_being_removed_waits_and_stores_it_again(postgres_world, postgres_raw):
    world, other = postgres_world, postgres_raw()
    (one,) = stored(world, b"one")
    other.rows("BEGIN")
    other.rows("DELETE FROM rp_blobs WHERE address = ?", one)
    sent_again = world.engine.coordinator.commit(world.put_checkpoint("new", body=b"one"))
    other.wait_for_lock_wait()
    other.rows("COMMIT")
    sent_again.result()
    assert marks(world) == {one: False}
