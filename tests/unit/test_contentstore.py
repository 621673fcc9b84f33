"""Content comes back as it was given, or is said to be corrupt; never anything else."""

import hashlib
import pickle
import random
import time

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime_persist.contentstore import ContentReader, ContentStore, ContentWriter, pack, unpack
from runtime_persist.contentstore.cache import KnownAddresses, SegmentCache
from runtime_persist.errors import CheckpointCorrupt, UnknownFormat
from runtime_persist.model import limits
from runtime_persist.model.keys import SpaceKeys
from runtime_persist.model.payload import PayloadRef, Piece, page_of

KEYS = SpaceKeys("s", b"k" * 32)
OWNER, WHERE = "space", "channel messages"
repeated = st.builds(lambda part, times: part * times, st.binary(max_size=30), st.integers(0, 200))
contents = st.one_of(st.binary(max_size=2_000), repeated)


@given(contents)
def test_packing_is_undone_by_unpacking(content):
    packed = pack(content)
    assert unpack(packed) == content
    assert len(packed) <= len(content) + 1


def test_long_content_is_compressed_and_short_or_random_content_is_not():
    assert len(pack(b"a" * 10_000)) < 100
    assert pack(b"a" * (limits.COMPRESS_BYTES_MIN - 1)) == b"\0" + b"a" * (limits.COMPRESS_BYTES_MIN - 1)
    noise = random.Random(1).randbytes(5_000)
    assert pack(noise) == b"\0" + noise


def test_what_compresses_best_is_unpacked_too():
    content = bytes(5_000_000)
    assert len(pack(content)) < 1_000
    assert unpack(pack(content)) == content


@pytest.mark.parametrize("stored", [b"", b"\2data", b"\xff"])
def test_an_unknown_codec_is_named(stored):
    with pytest.raises(UnknownFormat):
        unpack(stored)


@pytest.mark.parametrize("stored", [b"\1", b"\1nonsense", pack(b"a" * 10_000)[:-3]])
def test_compressed_bytes_that_do_not_decompress_are_corrupt(stored):
    with pytest.raises(CheckpointCorrupt):
        unpack(stored)


def checked(keys, owner, ref, stored, where):
    """The bytes of a reference in a store that holds just this."""
    reader = ContentReader(keys, owner, SegmentCache(), KnownAddresses())
    reader.want([ref])
    while asked := reader.missing():
        reader.give(asked, {address: stored[address] for address in asked if address in stored})
    return reader.content(ref, where)


def written(content, inline_max=16):
    writer = ContentWriter(KEYS, OWNER)
    ref = writer.put("bytes", content, inline_max)
    return ref, {blob.address: blob.content for blob in writer.blobs()}


@given(contents)
def test_what_is_put_is_read_back(content):
    ref, stored = written(content)
    assert ref.size == len(content)
    assert (ref.address is None) == (len(content) <= 16) == (not stored)
    assert checked(KEYS, OWNER, ref, stored, WHERE) == content


def test_equal_content_is_collected_once_and_blobs_come_in_address_order():
    writer = ContentWriter(KEYS, OWNER)
    refs = [writer.put("bytes", content, 0) for content in (b"b", b"a", b"c", b"a")]
    blobs = writer.blobs()
    assert refs[1] == refs[3]
    assert [blob.address for blob in blobs] == sorted({ref.address for ref in refs})
    assert {blob.size for blob in blobs} == {1}


def test_commands_on_their_way_at_once_share_the_packed_content():
    """A task's write and the checkpoint after it hold the same value: it is in memory once."""
    store = ContentStore(KEYS, OWNER)
    first, second = store.writer(), store.writer()
    for writer in (first, second):
        writer.put("bytes", b"a" * 100_000, 0)
    (one,), (other,) = first.blobs(), second.blobs()
    assert one is other
    del first, second, one, other
    again = store.writer()
    again.put("bytes", b"a" * 100_000, 0)
    assert len(again.blobs()) == 1


def test_of_a_value_larger_than_the_cache_no_more_is_copied_than_the_cache_holds():
    cache = SegmentCache(max_bytes=1_000_000)
    writer = ContentWriter(KEYS, OWNER, cache)
    for number in range(30):
        writer.put("bytes", random.Random(number).randbytes(100_000), 0)
    assert sum(map(len, writer._new.values())) <= cache.max_bytes
    assert len(writer.blobs()) == 30


def test_missing_content_is_corrupt_and_named():
    ref, _ = written(b"a" * 100)
    with pytest.raises(CheckpointCorrupt) as caught:
        checked(KEYS, OWNER, ref, {}, WHERE)
    assert WHERE in caught.value.message
    assert ref.address.hex() in caught.value.message


@pytest.mark.parametrize("content", [b"a" * 100, b"a" * 5_000, bytes(range(256)) * 4], ids=len)
def test_any_flipped_bit_is_noticed(content):
    """Also in compressed content, where it may decompress to something else, or not at all."""
    ref, stored = written(content)
    packed = stored[ref.address]
    for position in range(len(packed)):
        for bit in range(8):
            damaged = bytearray(packed)
            damaged[position] ^= 1 << bit
            # A bit of the frame that means nothing may leave the content whole; anything else is noticed.
            assert read(ref, bytes(damaged)) in {content, None}
    assert read(ref, packed) == content


def read(ref, packed):
    """The content, None when it is said to be corrupt."""
    try:
        return checked(KEYS, OWNER, ref, {ref.address: packed}, WHERE)
    except (CheckpointCorrupt, UnknownFormat):
        return None


@given(st.binary(min_size=17, max_size=300), st.data())
def test_cut_content_is_noticed(content, data):
    ref, stored = written(content)
    cut = data.draw(st.integers(0, len(stored[ref.address]) - 1))
    assert read(ref, stored[ref.address][:cut]) is None


def test_other_content_another_owner_and_another_key_are_noticed():
    ref, stored = written(b"a" * 100)
    other = {ref.address: pack(b"b" * 100)}
    for keys, owner, found in [
        (KEYS, OWNER, other),
        (KEYS, "another", stored),
        (SpaceKeys("s", b"x" * 32), OWNER, stored),
    ]:
        with pytest.raises(CheckpointCorrupt):
            checked(keys, owner, ref, found, WHERE)


# --- values in parts ------------------------------------------------------------------------------------------


class Store:
    """What is stored, and what one process knows of it."""

    def __init__(self) -> None:
        self.content = ContentStore(KEYS, OWNER)
        self.stored = {}
        self.trips = []

    def put(self, value, kind="msgpack", **options):
        """Store a value; return its reference and the sizes of what was sent."""
        writer = self.content.writer()
        ref = writer.put(kind, ormsgpack.packb(value, **options), 128)
        sent = writer.blobs()
        assert [blob.address for blob in sent] == sorted({blob.address for blob in sent})
        self.stored |= {blob.address: blob.content for blob in sent}
        writer.committed()
        return ref, [blob.size for blob in sent]

    def get(self, *refs):
        """Read values; how many addresses each trip asked for is noted."""
        reader = self.content.reader()
        reader.want(refs)
        self.trips = []
        while asked := reader.missing():
            self.trips.append(len(asked))
            reader.give(asked, {address: self.stored[address] for address in asked if address in self.stored})
        found = [reader.content(ref, WHERE) for ref in refs]
        reader.keep()
        return found

    def forget(self):
        self.content = ContentStore(KEYS, OWNER)


def lines(count, length=600):
    return [hashlib.blake2b(b"%d" % n).hexdigest() * (length // 128) + "." * (length % 128) for n in range(count)]


@pytest.mark.parametrize("count", [1, 10, 100, 1_000, 20_000])
def test_a_long_list_comes_back_in_few_trips_and_has_a_short_reference(count):
    store, value = Store(), lines(count, 128)
    ref, _ = store.put(value)
    assert len(ref.encoded()) < 1_500
    assert PayloadRef.decoded(ref.encoded()) == ref
    store.forget()
    assert store.get(ref) == [ormsgpack.packb(value)]
    assert len(store.trips) <= 1 + (count > 100) + 2 * (count > 5_000)
    assert store.get(ref) == [ormsgpack.packb(value)]
    assert store.trips == []


def test_an_append_to_a_very_long_list_sends_few_small_parts():
    store = Store()
    store.put(lines(20_000, 128))
    for count in range(20_001, 20_010):
        _, sent = store.put(lines(count, 128))
        assert len(sent) <= 6
        assert sum(sent) < 8_000


@given(st.lists(st.one_of(st.text(max_size=300), st.lists(st.integers(), max_size=50)), max_size=200))
def test_any_list_comes_back_cold_and_warm(value):
    store = Store()
    try:
        ref, _ = store.put(value)
    except TypeError:  # an integer msgpack has no form for
        return
    assert store.get(ref) == [ormsgpack.packb(value)]
    store.forget()
    assert store.get(ref, ref) == [ormsgpack.packb(value)] * 2


def test_what_several_values_share_is_read_once():
    store = Store()
    refs = [store.put(lines(count))[0] for count in range(200, 220)]
    store.forget()
    assert store.get(*refs) == [ormsgpack.packb(lines(count)) for count in range(200, 220)]
    assert sum(store.trips) <= len(store.stored)


def test_nothing_is_known_before_it_is_committed():
    store = Store()
    writer = store.content.writer()
    ref = writer.put("msgpack", ormsgpack.packb(lines(50)), 128)
    _, sent = store.put(lines(50))
    assert len(sent) == len(writer.blobs()) > 3
    store.forget()
    assert store.put(lines(50))[0] == ref  # the reference does not depend on what is known


def test_a_command_takes_everything_to_another_process():
    store = Store()
    _, sent = store.put(lines(50))
    writer = store.content.writer()
    writer.put("msgpack", ormsgpack.packb([*lines(50), "new" * 100]), 128)
    brought = writer.blobs()
    assert len(brought) == 1
    taken = pickle.loads(pickle.dumps(brought))  # noqa: S301 (its own bytes)
    assert len(taken) == len(sent) + 1
    assert set(store.stored) | {brought[0].address} >= {blob.address for blob in taken}


def test_what_was_read_is_not_sent():
    store = Store()
    ref, _ = store.put(lines(300))
    store.forget()
    store.get(ref)
    assert store.put(lines(300)) == (ref, [])


def test_a_reference_needs_what_its_pages_name():
    store = Store()
    ref, _ = store.put(lines(1_000))
    store.forget()
    for address in list(store.stored):
        taken = store.stored.pop(address)
        store.content.cache.clear()
        with pytest.raises(CheckpointCorrupt) as caught:
            store.get(ref)
        assert address.hex() in caught.value.message
        assert WHERE in caught.value.message
        store.stored[address] = taken


def test_a_page_that_names_no_lower_page_is_corrupt():
    store = Store()
    content = page_of([Piece(b"a" * 16, 1)])
    address = KEYS.address(OWNER, content)
    store.stored = {address: pack(content), b"a" * 16: pack(b"")}
    with pytest.raises(CheckpointCorrupt, match="below"):
        store.get(PayloadRef("msgpack", 5, pieces=(Piece(address, 1),)))


def test_a_page_of_another_format_is_unknown():
    store = Store()
    content = ormsgpack.packb([99, b"x"])
    address = KEYS.address(OWNER, content)
    store.stored = {address: pack(content)}
    with pytest.raises(UnknownFormat, match=WHERE):
        store.get(PayloadRef("msgpack", 5, pieces=(Piece(address, 1),)))


def test_a_value_of_another_size_is_corrupt():
    store = Store()
    ref, _ = store.put(lines(50))
    with pytest.raises(CheckpointCorrupt, match="instead of"):
        store.get(PayloadRef(ref.type, ref.size + 1, pieces=ref.pieces))


def test_the_cache_keeps_what_was_used_last_within_its_bytes():
    cache = SegmentCache(max_bytes=10_000)
    for n in range(100):
        cache.add({bytes([n]) * 16: bytes(1_000)})
        cache.get([bytes(16)])  # the first one is used again and again
    kept = cache.get(bytes([n]) * 16 for n in range(100))
    assert set(kept) == {bytes([n]) * 16 for n in (0, *range(93, 100))}
    cache.add({b"large" * 4: bytes(limits.SEGMENT_CACHED_BYTES_MAX + 1)})
    assert cache.get([b"large" * 4]) == {}


@pytest.mark.parametrize("hours", [-1, 1.1])
def test_what_was_seen_an_hour_ago_or_in_the_future_is_not_known(hours, monkeypatch):
    known, now = KnownAddresses(), time.time()
    known.add([b"a"])
    assert b"a" in known
    monkeypatch.setattr(time, "time", lambda: now + hours * 3_600)
    assert b"a" not in known


def test_only_so_many_addresses_are_known():
    known = KnownAddresses(max_entries=3)
    known.add([b"a", b"b", b"c"])
    known.add([b"a", b"d"])
    assert [address in known for address in (b"a", b"b", b"c", b"d")] == [True, False, True, True]
