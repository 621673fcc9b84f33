"""Which process it was: what is read of /proc, and what an identity proves where."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime_persist.errors import InvalidInput
from runtime_persist.model.processes import Place, ProcessIdentity, Stat

HERE = Place(host="h", machine_id="m", boot_id="b", namespaces="pid:[1] time:[2]")
THERE = ProcessIdentity(
    host="h", machine_id="m", boot_id="b", namespaces="pid:[1] time:[2]", pid=7, start_ticks=70, group=7
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def line(name, state="S", group=4, ticks=99):
    fields = [state, 3, group, *range(6, 22), ticks, *range(23, 53)]
    return f"123 ({name}) " + " ".join(map(str, fields)) + "\n"


@given(NAMES, st.sampled_from("RSDTZXI"), st.integers(0, 2**22), st.integers(0, 2**63))
def test_a_name_may_hold_parentheses_spaces_newlines_and_numbers(name, state, group, ticks):
    assert Stat.parsed(line(name, state, group, ticks)) == Stat(state, group, ticks)


@pytest.mark.parametrize("name", [")", ") S 1 2 3", "(x) R 0 0", "a) Z 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", ""])
def test_a_name_that_looks_like_the_fields_behind_it_is_a_name(name):
    assert Stat.parsed(line(name)) == Stat("S", 4, 99)


@pytest.mark.parametrize(
    "text", ["", "1 (x)", "1 (x) S 1 2", "nonsense", "1 (x) running " + "1 " * 60, "1 (x) S " + "x " * 60]
)
def test_what_is_no_such_line_is_refused(text):
    with pytest.raises(ValueError):
        Stat.parsed(text)


def test_an_identity_comes_back_equal_from_its_handle():
    assert ProcessIdentity.of(THERE.handle()) == THERE
    assert ProcessIdentity.of({**THERE.handle(), "path": "/tmp"}) == THERE  # noqa: S108 (a word)


@pytest.mark.parametrize("damage", [{"pid": "7"}, {"pid": None}, {"boot_id": 1}, {"group": 1.0}, {"start_ticks": True}])
def test_a_handle_that_is_none_is_refused(damage):
    with pytest.raises(InvalidInput):
        ProcessIdentity.of({**THERE.handle(), **damage})


def test_at_its_place_it_can_be_looked_at():
    assert THERE.elsewhere(HERE) is None
    assert not THERE.rebooted(HERE)


@pytest.mark.parametrize(
    ("name", "value", "word"),
    [
        ("boot_id", "another", "machine"),
        ("boot_id", "", "platform"),
        ("namespaces", "pid:[9] time:[2]", "container"),
    ],
)
def test_from_elsewhere_it_cannot_be_looked_at(name, value, word):
    here = replace(HERE, host="another", **{name: value})
    assert word in THERE.elsewhere(here)
    assert not THERE.rebooted(here)


def test_another_boot_of_the_same_machine_ends_everything_of_it():
    assert THERE.rebooted(replace(HERE, boot_id="later"))
    assert THERE.rebooted(replace(HERE, boot_id="later", namespaces="pid:[9] time:[9]"))


@pytest.mark.parametrize("other", [{"machine_id": "n"}, {"host": "i"}, {"boot_id": ""}])
def test_another_boot_of_another_machine_proves_nothing(other):
    """A copied machine has the same id, and a container the id of its image: the host name must agree too."""
    assert not THERE.rebooted(replace(HERE, **({"boot_id": "later"} | other)))


def test_machines_without_an_id_are_not_the_same_machine():
    assert not replace(THERE, machine_id="").rebooted(replace(HERE, machine_id="", boot_id="later"))
