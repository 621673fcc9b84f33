"""What a long history costs (F10): statements of a listing, rows that the latest checkpoint is found by."""

from __future__ import annotations

import os
import re
import sqlite3
from typing import Any

import pytest

from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from runtime_persist.dialects import parse_url
from runtime_persist.drivers.sqlite import SqliteDriver
from tests.fixtures.raw import PostgresRaw
from tests.support.checkpoints import at, new_checkpoint

LISTED, STATEMENTS_MAX = 200, 5
LONG = 10_000
STEPS_MAX = 2_000  # of SQLite's machine: a walk over the checkpoints would take more than ten thousand
OLD_FORMAT = 3  # its pending sends lie among the writes of the parents: one more read, not one more for each
NOT_COUNTED = ("BEGIN", "COMMIT", "PRAGMA")


def history(saver: Any, count: int, v: int = 4) -> None:
    """Checkpoints with a value and a write each, both too large to lie in their rows."""
    place = at()
    for number in range(count):
        version = f"{number + 1:04}"
        made = new_checkpoint({"n": number, "text": os.urandom(600).hex()}, {"n": version, "text": version}, v=v)
        place = saver.put(place, made, {"step": number}, {"n": version, "text": version})
        saver.put_writes(place, [("n", number), ("big", os.urandom(9_000).hex())], "task")


def looked_at(saver: Any) -> None:
    found = list(saver.list(at()))
    assert [item.checkpoint["channel_values"]["n"] for item in found] == [*reversed(range(LISTED))]
    assert all(len(item.pending_writes) == 2 for item in found)


@pytest.fixture
def traced(monkeypatch):
    """What every connection of the SQLite driver is asked for, transactions and settings apart."""
    seen: list[str] = []
    connect = SqliteDriver._connect

    def connects(driver: SqliteDriver) -> sqlite3.Connection:
        connection = connect(driver)
        connection.set_trace_callback(lambda sql: None if sql.startswith(NOT_COUNTED) else seen.append(sql))
        return connection

    monkeypatch.setattr(SqliteDriver, "_connect", connects)
    return seen


@pytest.mark.parametrize("v", [4, OLD_FORMAT])
def test_f10_a_listing_of_two_hundred_with_writes_is_five_statements_at_most_on_sqlite(sqlite_url, traced, opened, v):
    saver = opened(WorkflowCheckpointAdapter.from_conn_string(sqlite_url))
    history(saver, LISTED, v)
    traced.clear()
    looked_at(saver)
    assert 1 <= len(traced) <= STATEMENTS_MAX
    traced.clear()
    saver.get_tuple(at())
    assert 1 <= len(traced) <= STATEMENTS_MAX


@pytest.mark.parametrize("v", [4, OLD_FORMAT])
def test_f10_a_listing_of_two_hundred_with_writes_is_five_statements_at_most_on_postgresql(
    postgres_url, proxy, opened, v
):
    saver = opened(WorkflowCheckpointAdapter.from_conn_string(proxy.dsn(postgres_url)))
    history(saver, LISTED, v)
    looked_at(saver)
    proxy.reset()
    looked_at(saver)
    assert 1 <= len([one for one in proxy.statements if not one.sql.startswith(NOT_COUNTED)]) <= STATEMENTS_MAX
    proxy.reset()
    saver.get_tuple(at())
    assert 1 <= len(proxy.statements) <= STATEMENTS_MAX


# --- the latest of ten thousand -------------------------------------------------------------------------------------

COPIES = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {0}) "
    "INSERT INTO rp_checkpoints SELECT {1} FROM rp_checkpoints, n",
    "postgresql": "INSERT INTO rp_checkpoints SELECT {1} FROM rp_checkpoints, generate_series(1, {0}) AS n(i)",
}


def made_long(saver: Any, raw: Any, dialect: str) -> str:
    """A thread of ten thousand checkpoints, all older than the head; returns its id."""
    place = saver.put(at(), new_checkpoint({"n": 1}), {}, {"n": "1"})
    row = raw.one("SELECT * FROM rp_checkpoints")
    columns = ", ".join("'0-' || i" if column == "checkpoint_id" else column for column in row)
    raw.rows(COPIES[dialect].format(LONG - 1, columns))
    assert raw.value("SELECT count(*) FROM rp_checkpoints") == LONG
    return place["configurable"]["checkpoint_id"]


def test_f10_the_latest_of_ten_thousand_is_found_without_walking_over_them_on_sqlite(sqlite_url, opened, monkeypatch):
    steps: list[int] = []
    connect = SqliteDriver._connect

    def counted(driver: SqliteDriver) -> sqlite3.Connection:
        connection = connect(driver)
        connection.set_progress_handler(lambda: steps.append(10) and 0, 10)
        return connection

    monkeypatch.setattr(SqliteDriver, "_connect", counted)
    saver = opened(WorkflowCheckpointAdapter.from_conn_string(sqlite_url))
    raw = sqlite3.connect(parse_url(sqlite_url).location, isolation_level=None)
    raw.row_factory = sqlite3.Row
    head = made_long(saver, _Rows(raw), "sqlite")
    raw.close()
    saver.get_tuple(at())
    steps.clear()
    assert saver.get_tuple(at()).checkpoint["id"] == head
    assert sum(steps) < STEPS_MAX
    steps.clear()
    assert len(list(saver.list(at(), limit=10))) == 10
    assert sum(steps) < STEPS_MAX


class _Rows:
    """The test's own connection, with the calls of the other one."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.rows = lambda sql: [dict(row) for row in connection.execute(sql)]

    def one(self, sql: str) -> dict[str, Any]:
        (row,) = self.rows(sql)
        return row

    def value(self, sql: str) -> Any:
        (found,) = self.one(sql).values()
        return found


def test_f10_the_latest_of_ten_thousand_is_found_without_walking_over_them_on_postgresql(postgres_url, proxy, opened):
    saver = opened(WorkflowCheckpointAdapter.from_conn_string(proxy.dsn(postgres_url)))
    raw = PostgresRaw(postgres_url)
    head = made_long(saver, raw, "postgresql")
    raw.rows("ANALYZE rp_checkpoints")
    proxy.reset()
    assert saver.get_tuple(at()).checkpoint["id"] == head
    assert len(list(saver.list(at(), limit=10))) == 10
    asked = [one.sql for one in proxy.statements if "rp_checkpoints" in one.sql]
    assert asked
    for number, sql in enumerate(asked):
        plan = generic_plan(raw, f"asked_{number}", sql)
        assert "Seq Scan on rp_checkpoints" not in plan, plan
        assert re.search(r"Index (Only )?Scan.* on rp_checkpoints", plan), plan
    raw.close()


def generic_plan(raw: PostgresRaw, name: str, sql: str) -> str:
    """How the server runs a statement, whatever its parameters are."""
    count = max(map(int, re.findall(r"\$(\d+)", sql)))
    for statement in (f"PREPARE {name} AS {sql}", "SET plan_cache_mode = force_generic_plan"):
        raw._runner.run(raw.connection.execute(statement))
    explained = raw.rows(f"EXPLAIN EXECUTE {name} ({', '.join(['NULL'] * count)})")
    return "\n".join(line for row in explained for line in row.values())
