"""Every row has tests that exist, and every test of this folder stands in a row."""

from __future__ import annotations

import re

import pytest

from tests.support.rows_listed import check_they_exist, written_in
from tests.user_pains.rows import GROUPS, ROWS

PROMISED = {
    *("A1", "A2", "A4", "A6", "A8", "A10", "B1", "B2", "B3", "B7", "C1", "C2", "C3", "C4", "C7", "D1"),
    *("E3", "E5", "E7", "F1", "F2", "F3", "F4", "F6", "F7", "F9", "F10", "F11"),
    *("G2", "G3", "G4", "G5", "G6", "H1", "H2", "H3", "H4", "H5", "I1", "I4", "I5", "J1", "J2", "K1", "K2", "K3", "L1"),
}
"""No row may go; others may come."""
MEASURED = {"E1", "F3", "F9", "F10", "L1"}
HERE_BESIDE = {"test_rows_listed.py"}


def test_the_rows_are_there_in_their_order():
    assert set(ROWS) >= PROMISED
    assert list(ROWS) == sorted(ROWS, key=lambda name: (name[0], int(name[1:])))
    assert list(GROUPS) == sorted({name[0] for name in ROWS})
    assert {name for name, row in ROWS.items() if row.bench} == MEASURED


@pytest.mark.parametrize("name", ROWS)
def test_every_test_of_a_row_exists(name):
    row = ROWS[name]
    assert row.tests
    check_they_exist(row.tests)
    assert row.title
    assert row.promise.endswith(".")


def test_every_test_of_this_folder_stands_in_a_row():
    listed = {test for row in ROWS.values() for test in row.tests}
    assert written_in("user_pains", beside=HERE_BESIDE) - listed == set()


def test_a_test_that_names_its_row_is_listed_there():
    listed = {(name, test) for name, row in ROWS.items() for test in row.tests}
    for _, test in listed:
        named = re.match(r"test_([a-l]\d{1,2})_", test.partition("::")[2])
        assert named is None or (named[1].upper(), test) in listed, test
