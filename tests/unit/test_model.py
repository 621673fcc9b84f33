"""Ids, states, keys and records: what they accept, and that their tables are the design's."""

import re
import uuid

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime_persist.errors import IllegalTransition, InvalidThreadId, UnknownFormat
from runtime_persist.model import limits
from runtime_persist.model.guards import CLAIM, CONTROL, LEASE_ACTIVE, LEASE_ACTIVE_OPEN, LEASE_HELD, THREAD
from runtime_persist.model.ids import new_id, thread_id_of
from runtime_persist.model.keys import SpaceKeys, fingerprint
from runtime_persist.model.payload import PayloadRef, Piece, page_of, pieces_of
from runtime_persist.model.states import (
    ATTEMPT_TRANSITIONS,
    FINAL_ATTEMPT,
    FINAL_RUN,
    RUN_TRANSITIONS,
    AttemptCause,
    AttemptStatus,
    Control,
    LeasePhase,
    RunStatus,
    TryStatus,
    check_attempt,
    check_run,
)

# --- ids ------------------------------------------------------------------------------------------------------------


def test_new_ids_are_uuid7_and_differ():
    made = [new_id() for _ in range(1_000)]
    assert len(set(made)) == 1_000
    assert {uuid.UUID(one).version for one in made} == {7}
    assert all(one == str(uuid.UUID(one)) for one in made)


@pytest.mark.parametrize(
    ("given_id", "expected"),
    [("t", "t"), (" ", " "), (1, "1"), (-7, "-7"), (10**30, "1" + "0" * 30), ("é🙂", "é🙂"), ("a" * 1_024,) * 2],
)
def test_texts_and_ints_are_thread_ids(given_id, expected):
    assert thread_id_of(given_id) == expected


def test_an_int_and_its_decimal_text_are_one_thread():
    assert thread_id_of(1) == thread_id_of("1")


@pytest.mark.parametrize(
    "bad",
    ["", None, b"t", True, False, 1.5, ["t"], {}, uuid.UUID(int=1), "a\0b", "\ud800", "a" * 1_025, "é" * 513],
    ids=ascii,
)
def test_everything_else_is_refused(bad):
    with pytest.raises(InvalidThreadId) as caught:
        thread_id_of(bad)
    assert caught.value.code == "INVALID_THREAD_ID"


@given(st.text(min_size=1, max_size=200))
def test_any_other_text_is_taken_as_it_is_or_refused(text):
    if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
        with pytest.raises(InvalidThreadId):
            thread_id_of(text)
    else:
        assert thread_id_of(text) == text


# --- transitions: the tables of domain §2 and §3 --------------------------------------------------------------------

RUNS = """
created: queued, cancelled
queued: dispatching, cancelled, timed_out
dispatching: running, queued, retry_wait, failed, cancelled, timed_out, lost
running: waiting_approval, queued, retry_wait, succeeded, failed, cancelled, timed_out, lost
waiting_approval: queued, running, cancelled, timed_out
retry_wait: queued, cancelled, timed_out
lost: queued, running, retry_wait, succeeded, failed, cancelled, timed_out
"""
ATTEMPTS = """
queued: claimed, cancelled
claimed: queued, starting, cancelled
starting: running, succeeded, failed, cancelled, timed_out, lost, yielded
running: succeeded, failed, cancelled, timed_out, lost, yielded
"""


def table(text):
    lines = (line.split(":") for line in text.strip().splitlines())
    return {old: set(re.split(r",\s*", new.strip())) for old, new in lines}


def as_text(transitions):
    return {str(old): {str(new) for new in found} for old, found in transitions.items()}


@pytest.mark.parametrize(
    ("text", "transitions", "final"),
    [(RUNS, RUN_TRANSITIONS, FINAL_RUN), (ATTEMPTS, ATTEMPT_TRANSITIONS, FINAL_ATTEMPT)],
    ids=["run", "attempt"],
)
def test_the_transitions_are_the_designs(text, transitions, final):
    assert as_text(transitions) == table(text) | {str(status): set() for status in final}


@pytest.mark.parametrize("old", RunStatus)
@pytest.mark.parametrize("new", RunStatus)
def test_a_run_moves_only_as_the_table_says(old, new):
    if str(new) in table(RUNS).get(str(old), set()):
        check_run(old, new)
    else:
        with pytest.raises(IllegalTransition):
            check_run(old, new)


@pytest.mark.parametrize("old", AttemptStatus)
@pytest.mark.parametrize("new", AttemptStatus)
def test_an_attempt_moves_only_as_the_table_says(old, new):
    if str(new) in table(ATTEMPTS).get(str(old), set()):
        check_attempt(old, new)
    else:
        with pytest.raises(IllegalTransition):
            check_attempt(old, new)


def test_the_other_states_are_the_designs():
    assert {str(cause) for cause in AttemptCause} == {"initial", "retry", "takeover", "resume"}
    assert {str(phase) for phase in LeasePhase} == {"recovering", "active", "released"}
    assert {str(control) for control in Control} == {"open", "stopping"}
    assert {str(status) for status in TryStatus} == {"started", "succeeded", "failed", "unknown", "cancelled"}


def test_guards_are_written_as_in_the_design():
    assert [str(guard) for guard in (LEASE_ACTIVE_OPEN, LEASE_ACTIVE, LEASE_HELD, CLAIM, CONTROL, THREAD)] == [
        "lease(active, open)", "lease(active)", "lease(recovering or active)", "claim", "control", "thread",
    ]  # fmt: skip


# --- payload references ---------------------------------------------------------------------------------------------

types = st.text(min_size=1, max_size=20).filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text))


@given(types, st.binary(max_size=200))
def test_an_inline_reference_comes_back(kind, data):
    ref = PayloadRef(kind, len(data), inline=data)
    assert PayloadRef.decoded(ref.encoded()) == ref
    assert PayloadRef.unpacked(ref.packed()) == ref


@given(types, st.binary(min_size=16, max_size=16), st.integers(min_value=0, max_value=2**63 - 1))
def test_a_reference_by_address_comes_back(kind, address, size):
    ref = PayloadRef(kind, size, address=address)
    assert PayloadRef.decoded(ref.encoded()) == ref
    assert PayloadRef.unpacked(ref.packed()) == ref


pieces = st.lists(
    st.one_of(
        st.binary(max_size=40).map(Piece),
        st.builds(Piece, st.binary(min_size=16, max_size=16), st.integers(min_value=0, max_value=5)),
    ),
    max_size=60,
)


@given(types, pieces.filter(bool))
def test_a_reference_of_pieces_comes_back(kind, found):
    ref = PayloadRef(kind, 1_000, pieces=tuple(found))
    assert PayloadRef.decoded(ref.encoded()) == ref
    assert PayloadRef.unpacked(ref.packed()) == ref
    assert list(ref.stored()) == [piece for piece in found if piece.depth >= 0]


@given(pieces)
def test_a_page_of_pieces_comes_back(found):
    assert pieces_of(page_of(found)) == found


@pytest.mark.parametrize("page", [b"", b"\xc1", ormsgpack.packb([2, b"x"]), ormsgpack.packb(7), ormsgpack.packb([])])
def test_what_is_no_page_is_an_unknown_format(page):
    with pytest.raises(UnknownFormat):
        pieces_of(page)


def test_another_version_or_other_content_is_an_unknown_format():
    for parts in (
        [1, "msgpack", b"x"],
        [2, "msgpack", "no bytes"],
        [2, "msgpack", 7],
        [2, "msgpack", 7, "text"],
        [2, "msgpack", 7, 0, b"no address"],
        [2, "msgpack", 7, -1, b""],
    ):
        with pytest.raises(UnknownFormat):
            PayloadRef.decoded(ormsgpack.packb(parts))


# --- keys -----------------------------------------------------------------------------------------------------------

ONE, TWO = (SpaceKeys(name, name.encode() * 32) for name in "ab")


def test_hashes_have_their_length_and_are_stable():
    assert len(ONE.thread_hash("t")) == 32
    assert len(ONE.address("space", b"content")) == limits.ADDRESS_BYTES == 16
    assert ONE.thread_hash("t") == SpaceKeys("another name", ONE.secret).thread_hash("t")


def test_equal_content_of_two_spaces_or_owners_has_unrelated_addresses():
    found = {keys.address(owner, b"content") for keys in (ONE, TWO) for owner in ("space", "other")}
    assert len(found) == 4
    assert ONE.thread_hash("t") != TWO.thread_hash("t")


@given(st.lists(st.binary(max_size=8), max_size=4), st.lists(st.binary(max_size=8), max_size=4))
def test_a_fingerprint_tells_parts_and_their_split_apart(one, other):
    assert (fingerprint(*one) == fingerprint(*other)) == (one == other)
    assert len(fingerprint(*one)) == 16


def test_the_secret_is_not_shown():
    assert "aaaa" not in repr(ONE)
