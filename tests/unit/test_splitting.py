"""Where values are cut: the parts are exactly the bytes, and what did not change is cut the same."""

import random
from collections.abc import Callable
from functools import cache

import ormsgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from runtime_persist.adapters.workflow.values import ValueSerializer
from runtime_persist.adapters.workflow.values.codes import TYPE_TAG
from runtime_persist.contentstore.splitting import STRUCTURED, _Splitter, split
from runtime_persist.model import limits

nested = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False),
        st.text(max_size=40),
        st.binary(max_size=40),
        st.builds(lambda text, times: text * times, st.text(max_size=30), st.integers(0, 600)),
        st.builds(ormsgpack.Ext, st.integers(0, 127), st.binary(max_size=600)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=40),
        st.dictionaries(st.text(max_size=20), inner, max_size=20),
    ),
    max_leaves=20,
)
plain = st.one_of(
    nested,
    st.builds(lambda item, times: [item] * times, nested, st.integers(0, 300)),
    st.builds(lambda item, times: {f"key {n}": item for n in range(times)}, nested, st.integers(0, 300)),
)


def prose(source: random.Random, length: int) -> str:
    return "".join(source.choices("abcdefgh ", k=length))


@cache
def message(n: int) -> HumanMessage:
    source = random.Random(n)
    return HumanMessage(content=prose(source, source.randrange(100, 1_500)), id=f"message {n}")


def messages(count: int, first: int = 0) -> list[HumanMessage]:
    return [message(n) for n in range(first, first + count)]


def dumped(value):
    kind, data = ValueSerializer().dumps_typed(value)
    assert kind in STRUCTURED
    return kind, data


def parts(kind, data):
    """The stored parts, by content; that all parts are the bytes is checked on the way."""
    spans = split(kind, data)
    assert b"".join(data[start:stop] for start, stop, _ in spans) == data
    assert [span.start for span in spans] == [0, *(span.stop for span in spans[:-1])]
    return [data[start:stop] for start, stop, stored in spans if stored]


def stored(value):
    return parts(*dumped(value))


def new_bytes(before, after):
    known = set(stored(before))
    return sum(len(part) for part in stored(after) if part not in known)


def test_the_values_of_the_default_serializer_are_looked_into():
    assert TYPE_TAG in STRUCTURED


@given(plain)
def test_the_parts_of_any_value_are_its_bytes(value):
    parts("msgpack", ormsgpack.packb(value))


@given(st.binary(max_size=6_000), st.sampled_from(["msgpack", TYPE_TAG, "bytes", "msgpack+aes", "json", ""]))
@example(b"", "msgpack")
@example(b"\xdd\xff\xff\xff\xff" + bytes(5_000), "msgpack")
@example(b"\x91\xdb\xff\xff\xff\xff" + bytes(5_000), "msgpack")
@example(b"\xc9\xff\xff\xff\xff" + bytes(5_000), "msgpack")
@example(b"\x91" * 5_000 + b"\xc0", "msgpack")
@example(b"\xdc\x00\x10" + b"\xc1" * 5_000, "msgpack")
def test_the_parts_of_any_bytes_are_these_bytes(data, kind):
    parts(kind, data)


@given(plain, st.data())
def test_the_parts_of_damaged_bytes_are_these_bytes(value, data):
    whole = bytearray(ormsgpack.packb(value))
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    parts("msgpack", bytes(whole[: data.draw(st.integers(0, len(whole)))]))


@pytest.mark.parametrize("count", [1, 2, 7, 50, 200, 1_000])
def test_a_list_has_about_sixteen_messages_a_part(count):
    found = stored(messages(count))
    assert count / 24 <= len(found) <= count / 12 + limits.GROUP_ITEMS_MAX


@pytest.mark.parametrize("count", range(1, 80, 3))
def test_an_append_costs_the_new_message_or_the_end_of_its_group(count):
    before, after = messages(count), messages(count + 1)
    size = len(dumped(after)[1]) - len(dumped(before)[1])
    new = [part for part in stored(after) if part not in set(stored(before))]
    assert len(new) == 1
    assert len(new[0]) <= size + 2 or dumped(after)[1].endswith(new[0])


def test_appends_cost_twice_the_messages_whatever_the_length():
    cost = sum(new_bytes(messages(n), messages(n + 1)) for n in range(400, 448))
    assert cost <= 2.5 * (len(dumped(messages(448))[1]) - len(dumped(messages(400))[1]))


@pytest.mark.parametrize("gone", [1, 2, 5, 16, 17, 100, 333])
def test_a_list_that_lost_its_front_has_the_same_groups(gone):
    whole = messages(500)
    known = set(stored(whole))
    new = [part for part in stored(whole[gone:]) if part not in known]
    assert len(new) <= 3


@pytest.mark.parametrize("place", [0, 3, 250, 498])
@pytest.mark.parametrize("change", ["replaced", "deleted", "inserted"])
def test_a_change_inside_a_list_costs_its_group(place, change):
    before = messages(500)
    after = list(before)
    if change == "deleted":
        del after[place]
    else:
        after[place : place + (change == "replaced")] = [HumanMessage(content="changed " * 20, id="new")]
    known = set(stored(before))
    assert len([part for part in stored(after) if part not in known]) <= 4


def test_a_write_of_new_messages_has_the_parts_the_channel_will_have():
    channel, written = messages(40), messages(2, first=40)
    known = set(stored(written)) | set(stored(channel))
    new = [part for part in stored(channel + written) if part not in known]
    assert new == []
    assert len(stored(written)) == 2
    assert set(stored(written)) <= set(stored(channel + written))
    (bare,) = stored(written[0])
    assert bare in stored(written)


def files(count, size=3_000):
    return {f"src/module_{n}.py": prose(random.Random(n), size) for n in range(count)}


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: {"files": f}, lambda f: {"a": {"files": f}, "n": 1}])
def test_a_file_in_a_dict_of_files_changes_alone(wrap: Callable):
    before = files(40)
    after = before | {"src/module_7.py": "rewritten " * 400}
    assert new_bytes(wrap(before), wrap(after)) == len("rewritten " * 400) + 3
    grown = before | {"src/new.py": "new " * 1_000}
    assert new_bytes(wrap(before), wrap(grown)) == len("new " * 1_000) + 3


@pytest.mark.parametrize("wrap", [lambda f: {"log": f}, lambda f: {"a": {"log": f}}, lambda f: [f, f], tuple])
def test_lists_inside_other_values_are_split_too(wrap: Callable):
    before, after = messages(100), messages(101)
    assert new_bytes(wrap(before), wrap(after)) < 30_000 < len(dumped(after)[1]) / 2


def test_a_plan_of_small_tasks_changes_by_a_group():
    tasks = [{"id": n, "title": prose(random.Random(n), 60), "notes": prose(random.Random(-n), 90)} for n in range(100)]
    before = {"goal": "ship", "tasks": tasks}
    after = {"goal": "ship", "tasks": [*tasks[:40], tasks[40] | {"status": "done"}, *tasks[41:]]}
    assert new_bytes(before, after) < len(dumped(after)[1]) / 3


def test_small_entries_of_a_dict_lie_in_groups():
    many = {f"key {n}": prose(random.Random(n), 100) for n in range(500)}
    assert 500 / 32 < len(stored(many)) < 500 / 8
    assert new_bytes(many, many | {"key 77": "changed"}) < 5_000


@pytest.mark.parametrize("tag", ["bytes", "msgpack+aes", "custom"])
def test_what_is_not_msgpack_is_whole_below_the_size_of_chunks(tag):
    data = ormsgpack.packb(["text " * 200] * 50)
    assert parts(tag, data) == [data]


@pytest.mark.parametrize("value", [5, "text " * 30_000, {"a": 1}, ["x"] * 100, list(range(60_000))])
def test_values_without_parts_worth_it_are_whole(value):
    assert len(stored(value)) == 1


def test_long_texts_lie_in_chunks_and_share_their_front():
    text = prose(random.Random(1), 1_000_000)
    found = stored(text)
    assert {len(part) for part in found[:-1]} == {limits.CHUNK_BYTES}
    assert new_bytes(text, text + "more") <= limits.CHUNK_BYTES
    assert new_bytes({"document": text, "n": 1}, {"document": text + "more", "n": 2}) <= limits.CHUNK_BYTES
    assert new_bytes([text, "a"], [text + "more", "a"]) <= limits.CHUNK_BYTES
    data = text.encode()
    assert set(parts("bytes", data)) & set(parts("bytes", data + b"more"))


def test_a_great_many_small_items_are_not_looked_at_one_by_one():
    numbers = [n / 7 for n in range(1, 100_001)]
    assert len(stored(numbers)) == 900_005 // limits.CHUNK_BYTES + 1


def test_equal_items_do_not_make_tiny_groups():
    found = stored(["the same text again"] * 4_000)
    assert min(map(len, found[:-1])) >= limits.GROUP_BYTES_MIN


@given(value=st.lists(st.binary(min_size=0, max_size=300) | st.text(max_size=300), min_size=1, max_size=1))
def test_a_short_list_of_one_is_split_as_it_would_be_with_a_look_inside(value):
    data = ormsgpack.packb(value)
    assert split("msgpack", data) == _Splitter(data).spans()
