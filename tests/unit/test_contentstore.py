"""Content comes back as it was given, or is said to be corrupt; never anything else."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime_persist.contentstore import ContentReader, ContentWriter, pack, unpack
from runtime_persist.contentstore.cache import KnownAddresses, SegmentCache
from runtime_persist.errors import CheckpointCorrupt, UnknownFormat
from runtime_persist.model import limits
from runtime_persist.model.keys import SpaceKeys

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
