"""Fragments that only read are one select on SQLite, which finds each row by its key."""

import sqlite3

import pytest

from runtime_persist.commands import COMMANDS
from runtime_persist.commands.parts.spec import HotCommand
from runtime_persist.coordinator.transaction import bundle_of
from runtime_persist.dialects.sqlite import SqliteDialect
from runtime_persist.schema import migrate

HOT = [spec for spec in COMMANDS.values() if isinstance(spec, HotCommand)]


def together(spec):
    """What reads first of all, and its other selects of several fragments."""
    compiled = SqliteDialect().bundle(bundle_of(spec))
    found = [part for part in compiled.parts if part.together]
    return found if compiled.steady is None else [compiled.steady, *found]


@pytest.fixture(scope="module")
def database():
    connection = sqlite3.connect(":memory:")
    connection.executescript(migrate.sql(SqliteDialect()))
    yield connection
    connection.close()


@pytest.mark.parametrize("spec", [spec for spec in HOT if together(spec)], ids=lambda spec: spec.name)
def test_it_finds_each_row_by_a_key(database, spec):
    for part in together(spec):
        given = [None] * len(part.statement.order)
        steps = [row[-1] for row in database.execute(f"EXPLAIN QUERY PLAN {part.statement.sql}", given)]
        looks = [step for step in steps if "always" not in step and "CONSTANT ROW" not in step]
        assert looks
        assert all(step.startswith("SEARCH") and "AUTOMATIC" not in step for step in looks), steps


@pytest.mark.parametrize("spec", [spec for spec in HOT if together(spec)], ids=lambda spec: spec.name)
def test_without_any_row_it_says_of_each_fragment_that_it_gave_none(database, spec):
    for part in together(spec):
        if part.source is not None:  # run only when that gave a row, which it takes as parameters
            continue
        known = dict.fromkeys(part.statement.order) | {name: 0 for name in part.statement.order if "count" in name}
        (row,) = database.execute(part.statement.sql, [known[name] for name in part.statement.order]).fetchall()
        assert not any(row)
        assert len(row) == sum(1 + len(fragment.returns) for fragment in part.fragments)
