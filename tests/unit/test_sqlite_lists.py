"""A list parameter on SQLite: one statement, whatever its length; few texts."""

import sqlite3

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, select

from runtime_persist.dialects.sql import among
from runtime_persist.dialects.sqlite import SqliteDialect, with_list
from runtime_persist.plan import Query

NUMBERS = Table("numbers", MetaData(), Column("n", Integer, primary_key=True))
QUERY = Query("read_numbers", select(NUMBERS.c.n).where(among(NUMBERS.c.n, "wanted")), each="wanted")


@pytest.fixture
def connection():
    made = sqlite3.connect(":memory:")
    made.execute("CREATE TABLE numbers (n INTEGER PRIMARY KEY)")
    made.executemany("INSERT INTO numbers VALUES (?)", [(n,) for n in range(30_000)])
    yield made
    made.close()


def statements(wanted):
    return list(with_list(SqliteDialect().query(QUERY), "wanted", {"wanted": wanted}))


@pytest.mark.parametrize(
    ("count", "expected"), [(0, 0), (1, 1), (3, 1), (1_000, 1), (8_192, 1), (8_193, 2), (20_000, 3)]
)
def test_every_value_is_found_once_in_few_statements(connection, count, expected):
    made = statements(range(count))
    assert len(made) == expected
    assert sorted(n for sql, params in made for (n,) in connection.execute(sql, params)) == list(range(count))


def test_a_value_given_twice_is_found_once(connection):
    ((sql, params),) = statements([7, 7, 8])
    assert connection.execute(sql, params).fetchall() == [(7,), (8,)]


def test_lists_of_similar_length_share_their_text():
    assert len({statements(range(count))[0][0] for count in range(1, 1_025)}) == 11
