"""Every row has tests that exist, and every test of this folder stands in a row."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.user_pains.rows import GROUPS, ROWS

TESTS = Path(__file__).parents[1]
PROMISED = {
    *("A1", "A2", "A4", "A6", "A8", "A10", "B1", "B2", "B3", "B7", "C7"),
    *("E3", "E5", "E7", "F1", "F2", "F3", "F4", "F6", "F7", "F9", "F10", "F11"),
    *("G2", "G3", "G4", "G5", "G6", "H1", "H2", "H3", "H4", "H5", "I1", "I4", "I5", "J1", "J2", "K1", "K2", "K3", "L1"),
}
"""No row may go; others may come."""
MEASURED = {"E1", "F3", "F9", "F10", "L1"}
HERE_BESIDE = {"test_rows_listed.py"}


@cache
def functions_of(file: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """The tests of a file by name (``Class::name`` inside a class)."""
    found = {}
    for node in ast.parse((TESTS / file).read_text()).body:
        members = [(node, "")] if not isinstance(node, ast.ClassDef) else [(one, f"{node.name}::") for one in node.body]
        for one, inside in members:
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name.startswith("test_"):
                found[f"{inside}{one.name}"] = one
    return found


def test_the_rows_are_there_in_their_order():
    assert set(ROWS) >= PROMISED
    assert list(ROWS) == sorted(ROWS, key=lambda name: (name[0], int(name[1:])))
    assert list(GROUPS) == sorted({name[0] for name in ROWS})
    assert {name for name, row in ROWS.items() if row.bench} == MEASURED


@pytest.mark.parametrize("name", ROWS)
def test_every_test_of_a_row_exists(name):
    row = ROWS[name]
    assert row.tests
    assert len(set(row.tests)) == len(row.tests)
    for test in row.tests:
        file, _, function = test.partition("::")
        assert (TESTS / file).is_file(), file
        assert function in functions_of(file), test
    assert row.title
    assert row.promise.endswith(".")


def test_every_test_of_this_folder_stands_in_a_row():
    listed = {test for row in ROWS.values() for test in row.tests}
    written = {
        f"user_pains/{path.name}::{name}"
        for path in Path(__file__).parent.glob("test_*.py")
        if path.name not in HERE_BESIDE
        for name in functions_of(f"user_pains/{path.name}")
    }
    assert written - listed == set()


def test_a_test_that_names_its_row_is_listed_there():
    listed = {(name, test) for name, row in ROWS.items() for test in row.tests}
    for _, test in listed:
        named = re.match(r"test_([a-l]\d{1,2})_", test.partition("::")[2])
        assert named is None or (named[1].upper(), test) in listed, test
