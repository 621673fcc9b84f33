"""Every row of the matrices is there with tests that exist, and every test of this folder stands in a row."""

from __future__ import annotations

import pytest

from tests.acceptance.rows import GROUPS, ROWS
from tests.support.rows_listed import check_they_exist, written_in

PROMISED = [
    *(f"A{n}" for n in range(1, 20)),
    *(f"V{n}" for n in range(1, 15)),
    *(f"DB-{n:02}" for n in range(1, 14)),
]
UNTESTED: set[str] = set()
"""What does not exist here yet; the row says so."""


def test_the_rows_are_there_in_their_order():
    assert list(ROWS) == PROMISED
    assert {name.rstrip("0123456789-") for name in ROWS} == set(GROUPS)


@pytest.mark.parametrize("name", ROWS)
def test_every_test_of_a_row_exists(name):
    row = ROWS[name]
    check_they_exist(row.tests)
    assert bool(row.tests) != (name in UNTESTED)
    assert row.tests or row.here.startswith("Not applicable yet:")
    assert row.scenario
    assert row.required
    assert not row.here or row.here.endswith(".")


def test_every_test_of_this_folder_stands_in_a_row():
    listed = {test for row in ROWS.values() for test in row.tests}
    assert written_in("acceptance", beside={"test_rows_listed.py"}) - listed == set()
