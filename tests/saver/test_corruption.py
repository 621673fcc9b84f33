"""Content that was damaged or lost is told, by channel and checkpoint; it is never served."""

import pytest

from runtime_persist.contentstore.cache import SegmentCache
from runtime_persist.errors import CheckpointCorrupt
from tests.support.checkpoints import Steps, at


@pytest.fixture(autouse=True)
def cold(monkeypatch):
    """A process that has not seen the content before: it reads what is in the database."""
    monkeypatch.setattr(SegmentCache, "add", lambda *_: None)


def flip(raw, position):
    (row,) = raw.rows("SELECT address, content FROM rp_blobs")
    content = bytearray(row["content"])
    content[position] ^= 0x01
    raw.rows("UPDATE rp_blobs SET content = ? WHERE address = ?", bytes(content), row["address"])


def lose(raw, _):
    raw.rows("DELETE FROM rp_blobs")


DAMAGE = {
    "a flipped byte": (flip, -1),
    "a flipped first byte": (flip, 0),
    "a flipped byte inside": (flip, 9),
    "lost": (lose, 0),
}


@pytest.mark.parametrize(("damage", "position"), DAMAGE.values(), ids=DAMAGE)
async def test_damaged_values_are_told_by_channel_and_checkpoint(saver, way, raw, damage, position):
    steps = Steps(way, saver)
    await steps.put(small=1, letters="the quick brown fox " * 100)
    damage(raw, position)
    for reading in (way(saver, "get_tuple", at()), way.all(saver, "list", at())):
        with pytest.raises(CheckpointCorrupt) as caught:
            await reading
        assert "'letters'" in str(caught.value)
        assert steps.ids[0] in str(caught.value)
        assert caught.value.kind == "corrupt"


async def test_damaged_short_values_are_told_too(saver, way, raw):
    """Content below the size that is compressed."""
    steps = Steps(way, saver)
    await steps.put(letters="x" * 300)
    flip(raw, 100)
    with pytest.raises(CheckpointCorrupt, match="letters"):
        await way(saver, "get_tuple", at())


async def test_damaged_writes_are_told(saver, way, raw):
    steps = Steps(way, saver)
    place = await steps.put(a=1)
    await way(saver, "put_writes", place, [("letters", "y" * 20_000)], "task")
    flip(raw, -1)
    with pytest.raises(CheckpointCorrupt) as caught:
        await way(saver, "get_tuple", at())
    assert "'letters'" in str(caught.value)
    assert steps.ids[0] in str(caught.value)


async def test_another_threads_damage_stays_there(saver, way, raw):
    await Steps(way, saver, "damaged").put(letters="x" * 1_000)
    flip(raw, -1)
    await Steps(way, saver, "well").put(letters="y" * 1_000)
    assert (await way(saver, "get_tuple", at("well"))).checkpoint["channel_values"] == {"letters": "y" * 1_000}
    with pytest.raises(CheckpointCorrupt):
        await way(saver, "get_tuple", at("damaged"))


@pytest.mark.parametrize(
    ("column", "position"), [("body", 0), ("body", 1), ("body", 20), ("body", -1), ("metadata", -1)]
)
@pytest.mark.parametrize("channels", [1, 50], ids=["plain", "compressed"])
async def test_a_damaged_row_is_told(saver, way, raw, column, position, channels):
    """Short values live in the checkpoint's own row."""
    steps = Steps(way, saver)
    await steps.put(**{f"channel {n}": n for n in range(channels)})
    stored = bytearray(raw.value(f"SELECT {column} FROM rp_checkpoints"))
    stored[position] ^= 0x5A
    raw.rows(f"UPDATE rp_checkpoints SET {column} = ?", bytes(stored))
    for reading in (way(saver, "get_tuple", at()), way.all(saver, "list", at())):
        with pytest.raises(CheckpointCorrupt, match=steps.ids[0]):
            await reading


async def test_a_damaged_short_write_is_told(saver, way, raw):
    steps = Steps(way, saver)
    await way(saver, "put_writes", await steps.put(a=1), [("letters", "short")], "task")
    stored = bytearray(raw.value("SELECT value FROM rp_writes"))
    stored[-1] ^= 0x01
    raw.rows("UPDATE rp_writes SET value = ?", bytes(stored))
    with pytest.raises(CheckpointCorrupt, match=f"'letters'.*{steps.ids[0]}"):
        await way(saver, "get_tuple", at())
