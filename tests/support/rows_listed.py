"""Tables of rows that name their tests: what is checked of each, wherever it stands."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

TESTS = Path(__file__).parents[1]


@cache
def functions_of(file: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """The tests of a file below ``tests/`` by name (``Class::name`` inside a class)."""
    found = {}
    for node in ast.parse((TESTS / file).read_text()).body:
        members = [(node, "")] if not isinstance(node, ast.ClassDef) else [(one, f"{node.name}::") for one in node.body]
        for one, inside in members:
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name.startswith("test_"):
                found[f"{inside}{one.name}"] = one
    return found


def check_they_exist(tests: tuple[str, ...]) -> None:
    """Fail unless each ``file::name`` is a test, and none is named twice."""
    assert len(set(tests)) == len(tests)
    for test in tests:
        file, _, function = test.partition("::")
        assert (TESTS / file).is_file(), file
        assert function in functions_of(file), test


def written_in(folder: str, *, beside: Iterable[str] = ()) -> set[str]:
    """Return every test of a folder, those of the files ``beside`` excepted."""
    return {
        f"{folder}/{path.name}::{name}"
        for path in (TESTS / folder).glob("test_*.py")
        if path.name not in set(beside)
        for name in functions_of(f"{folder}/{path.name}")
    }
