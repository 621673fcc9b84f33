"""One SQLite file for many processes, under everything that blocks it at once (F7), on any SQLite (F11)."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest

from runtime_persist import Runtime
from runtime_persist.dialects import parse_url
from runtime_persist.dialects.sqlite import has_wal_reset_fault
from runtime_persist.engine import run
from runtime_persist.inspector import load_bundle
from tests.connections import programs
from tests.fixtures.raw import wait_until
from tests.support.graphs import chain, config, says
from tests.support.sqlite_files import checkpoint_ids, integrity

WRITERS, PUTS, BYTES = 16, 119, 20_000
LOCKED_SECONDS = 8
WAIT = "?timeout=30"  # the documented wait; a machine with fewer cores than writers needs more than the default
WAL_BYTES_MAX = 10_000_000


@pytest.fixture
def path(sqlite_url):
    return parse_url(sqlite_url).location


def acknowledged_by(children, path, total):
    """What the writers say is stored, once all of it is (each twentieth of it may take its time)."""
    connection = sqlite3.connect(path, timeout=20)
    for twentieth in range(1, 21):
        wait_until(
            lambda: connection.execute("SELECT count(*) FROM rp_checkpoints").fetchone()[0] >= total * twentieth // 20,  # noqa: B023 (asked at once)
            f"{twentieth} twentieths are stored",
        )
    connection.close()
    return [checkpoint_id for child in children for checkpoint_id in child.result()]


def test_f7_sixteen_writers_beside_a_long_reader_and_a_long_lock_see_no_lock_error(sqlite_url, path, fork):
    """The reader stays until the last put, the lock is held for eight seconds."""
    reading = fork(programs.reader, path)
    reading.until("reading")
    writing = [fork(programs.writer, sqlite_url + WAIT, f"t{n}", PUTS, BYTES) for n in range(WRITERS)]
    for child in writing:
        child.until("ready")
    holder = fork(programs.locker, path)
    holder.until("locked")
    for child in writing:
        child.give_the_word()
    time.sleep(LOCKED_SECONDS)  # how long it is held is what the row is about
    holder.give_the_word()
    acknowledged = acknowledged_by(writing, path, WRITERS * PUTS)
    assert len(acknowledged) == WRITERS * PUTS
    assert Path(f"{path}-wal").stat().st_size > WAL_BYTES_MAX, "the reader kept the log from being written back"
    reading.give_the_word()
    assert reading.result() == 0, "it saw what there was when it began"
    assert checkpoint_ids(path) == sorted(acknowledged)
    assert integrity(path) == "ok"
    with Runtime.open(sqlite_url) as runtime:  # the next that uses the file begins the log anew
        graph = runtime.bind(chain({"a": says("a")}), name="g")
        assert graph.invoke({"log": []}, config())["log"] == ["a"]
        assert Path(f"{path}-wal").stat().st_size < WAL_BYTES_MAX
    wal = Path(f"{path}-wal")
    assert not wal.exists() or wal.stat().st_size < WAL_BYTES_MAX


@pytest.mark.parametrize("puts", [30, pytest.param(1_500, marks=[pytest.mark.exhaustive, pytest.mark.timeout(600)])])
def test_f11_eight_writers_beside_a_process_that_cuts_the_log_damage_nothing(sqlite_url, path, fork, puts):
    """The long one works for more than a minute."""
    truncating = fork(programs.checkpointer, path)
    truncating.until("ready")
    writing = [fork(programs.writer, sqlite_url + WAIT, f"t{n}", puts, BYTES) for n in range(8)]
    for child in writing:
        child.until("ready")
    for child in writing:
        child.give_the_word()
    acknowledged = acknowledged_by(writing, path, 8 * puts)
    truncating.give_the_word()
    assert truncating.result() > 0
    assert len(acknowledged) == 8 * puts
    assert checkpoint_ids(path) == sorted(acknowledged)
    assert integrity(path) == "ok"


def test_f11_the_inspector_shows_the_version_of_the_database_and_what_is_wrong_with_it(runtime, cli, shared_url):
    runtime.bind(chain({"a": says("a")}), name="g").invoke({"log": []}, config())
    (record,) = runtime.runs.list()
    found = run(load_bundle(runtime.engine, runtime.checkpointer.serde, record.run_id)).database
    shown = cli("inspect", record.run_id).stdout
    assert found.version in shown
    if found.dialect == "sqlite":
        assert found.version == sqlite3.sqlite_version
        faulty = has_wal_reset_fault(sqlite3.sqlite_version_info[:3])
        assert ("WAL-reset" in (found.warning or "")) is ("WAL-reset" in shown) is faulty
    else:
        assert found.warning is None
        assert int(found.version.split(".")[0]) >= 12
