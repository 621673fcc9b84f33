"""Only dialects, and what drives each database, tell databases apart by name."""

import ast
from pathlib import Path

import runtime_persist

PACKAGE = Path(runtime_persist.__file__).parent
AT_HOME = {"dialects", "drivers", "testing"}
ALLOWED = {"adapters/workflow/sources.py": "which published saver's database is read: not one of ours"}
NAMES = {"sqlite", "postgresql", "postgres"}


def comparisons(path):
    """The lines where something is compared with the name of a database."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(isinstance(side, ast.Constant) and side.value in NAMES for side in sides):
                yield node.lineno


def test_nobody_else_asks_which_database_it_is():
    found = {
        path.relative_to(PACKAGE).as_posix(): lines
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in AT_HOME and (lines := list(comparisons(path)))
    }
    assert found.keys() == ALLOWED.keys(), found
