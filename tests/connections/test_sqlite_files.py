"""One SQLite file: many processes, long locks, no room, no rights (user pains F7 and F11)."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest

from runtime_persist.dialects import parse_url
from runtime_persist.drivers import sqlite_wal
from runtime_persist.engine import ownership, requests, run, settling
from runtime_persist.errors import DatabaseUnavailable, StoreBusy, StoreFailed
from runtime_persist.queries import spaces
from tests.connections import programs
from tests.fixtures.raw import DEADLINE_SECONDS, wait_until
from tests.fixtures.world import SERDE
from tests.support.sqlite_files import checkpoint_ids, integrity

PROCESSES, EACH, BYTES = 6, 20, 20_000


@pytest.fixture
def path(sqlite_url):
    return parse_url(sqlite_url).location


def wal_bytes(path):
    wal = Path(f"{path}-wal")
    return wal.stat().st_size if wal.exists() else 0


def test_f7_many_processes_write_one_file_and_all_that_was_acknowledged_is_there(sqlite_url, path, fork):
    """Beside a process that writes the log back all the time (F11)."""
    truncating = fork(programs.checkpointer, path)
    truncating.until("ready")
    writing = [fork(programs.writer, sqlite_url, f"t{n}", EACH, BYTES) for n in range(PROCESSES)]
    for child in writing:
        child.until("ready")
    for child in writing:
        child.give_the_word()
    acknowledged = [checkpoint_id for child in writing for checkpoint_id in child.result()]
    truncating.give_the_word()
    assert truncating.result() > 0
    assert len(acknowledged) == PROCESSES * EACH
    assert checkpoint_ids(path) == sorted(acknowledged)
    assert integrity(path) == "ok"


def test_f7_a_write_lock_of_another_process_fails_no_command_and_loses_no_lease(sqlite_url, path, fork, worlds):
    """It is held for longer than the time between two heartbeats: they are sent, wait, and arrive in time."""
    world = worlds(sqlite_url, lease_ttl=6)
    engine = world.engine
    owned = run(ownership.start(engine, SERDE, requests.request(engine, SERDE, "g", 1, thread_id="t"), "t"))
    sent, renewed = [], owned.renewed_at
    send = owned.send_renewal
    owned.send_renewal = lambda: sent.append(1) or send()
    holder = fork(programs.locker, path)
    holder.until("locked")
    futures = [engine.coordinator.commit(world.put_checkpoint(f"t{n}", expects=None)) for n in range(20)]
    wait_until(lambda: sent, "a heartbeat was sent while the file is locked")
    assert not any(future.done() for future in futures)
    holder.give_the_word()
    assert not any(future.result(DEADLINE_SECONDS).replayed for future in futures)
    wait_until(lambda: owned.renewed_at > renewed, "the renewal arrived")
    owned.check()
    assert world.count("rp_checkpoints") == 20
    assert run(settling.finish(engine, owned, 2)) == "succeeded"


def test_f7_reads_do_not_wait_for_a_writer(sqlite_url, path, fork, worlds):
    world = worlds(sqlite_url)
    world.commit(world.put_checkpoint(expects=None))
    holder = fork(programs.locker, path)
    holder.until("locked")
    secret = world.engine.coordinator.read("read_space", lambda: spaces.secret(world.space)).result(DEADLINE_SECONDS)
    assert secret == world.keys.secret
    holder.give_the_word()


def test_f7_opening_does_not_wait_for_a_writer(sqlite_url, path, fork, open_engine):
    holder = fork(programs.locker, path)
    holder.until("locked")
    assert open_engine(sqlite_url).coordinator.keys.secret
    holder.give_the_word()


def test_f7_a_lock_that_outlasts_the_timeout_is_a_typed_refusal_for_everyone_who_waits(sqlite_url, path, fork, worlds):
    world = worlds(f"{sqlite_url}?timeout=0.2")
    holder = fork(programs.locker, path)
    holder.until("locked")
    futures = [world.engine.coordinator.commit(world.put_checkpoint(f"t{n}", expects=None)) for n in range(3)]
    for future in futures:
        error = future.exception(DEADLINE_SECONDS)
        assert type(error) is StoreBusy
        assert "0.2 s" in error.message
        assert "timeout=" in error.message
    holder.give_the_word()
    holder.result()
    assert world.count("rp_checkpoints") == 0
    world.commit(world.put_checkpoint(expects=None))


def test_f7_the_log_is_small_again_after_a_reader_that_stayed_for_long(sqlite_url, path, fork, worlds):
    world = worlds(sqlite_url)
    staying = fork(programs.reader, path)
    staying.until("reading")
    for number in range(40):
        blob = f"{number}".encode() * 200_000
        world.commit(world.put_checkpoint(f"t{number}", expects=None, body=blob))
    assert wal_bytes(path) > 10_000_000
    staying.give_the_word()
    assert staying.result() == 0, "it saw what there was when it began"
    for number in range(3):  # the first writes the log back, the next begins it anew
        world.commit(world.put_checkpoint(f"u{number}", expects=None))
    assert wal_bytes(path) < 10_000_000


def test_nobody_holds_a_lock_between_commands(sqlite_url, path, worlds):
    world = worlds(sqlite_url)
    world.commit(world.put_checkpoint(expects=None))
    other = sqlite3.connect(path, isolation_level=None, timeout=0)
    other.execute("BEGIN IMMEDIATE")
    other.execute("ROLLBACK")
    (busy, *_) = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    other.close()
    assert not busy, "no read transaction either"


# --- no room, no rights ---------------------------------------------------------------------------------------------


def test_a_full_disk_is_a_typed_error_and_leaves_nothing_half_written(sqlite_url, path, worlds):
    world = worlds(sqlite_url)
    world.commit(world.put_checkpoint(expects=None))
    (pages,) = world.engine._driver._writer.execute("PRAGMA page_count").fetchone()
    world.engine._driver._writer.execute(f"PRAGMA max_page_count={pages + 2}")
    before = world.dump()
    error = world.engine.coordinator.commit(
        world.put_checkpoint(checkpoint_id="c2", parent_id="c1", expects="c1", body=b"x" * 200_000)
    ).exception(DEADLINE_SECONDS)
    assert isinstance(error, DatabaseUnavailable | StoreFailed)
    assert "full" in error.message
    assert world.dump() == before
    world.engine._driver._writer.execute("PRAGMA max_page_count=1000000")
    assert not world.commit(world.put_checkpoint(checkpoint_id="c2", parent_id="c1", expects="c1")).replayed
    assert integrity(path) == "ok"


def test_a_file_that_may_not_grow_keeps_what_was_acknowledged(sqlite_url, path, fork):
    """The write itself fails, in the middle of a transaction."""
    *acknowledged, code = fork(programs.limited, sqlite_url, 1_500_000).result()
    assert code in {"DATABASE_UNAVAILABLE", "STORE_FAILED"}
    assert acknowledged
    assert checkpoint_ids(path) == sorted(acknowledged)
    assert integrity(path) == "ok"


@pytest.fixture
def open_folder():
    """A folder that others can pass through (pytest's own are closed)."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("what", ["read-only file", "read-only folder", "no file in a read-only folder"])
def test_a_place_without_rights_is_a_typed_error_and_stays_untouched(open_folder, sqlite_template, fork, what):
    database = open_folder / "agents.db"
    if what != "no file in a read-only folder":
        shutil.copy(sqlite_template, database)
        database.chmod(0o444 if what == "read-only file" else 0o666)
    before = database.read_bytes() if database.exists() else None
    open_folder.chmod(0o777 if what == "read-only file" else 0o555)
    assert fork(programs.as_nobody, f"sqlite:///{database}").result() == "DATABASE_UNAVAILABLE"
    open_folder.chmod(0o755)
    assert (database.read_bytes() if database.exists() else None) == before


# --- the WAL-reset fault --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "has"),
    [
        ((3, 6, 23), False),
        ((3, 7, 0), True),
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 0), True),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 52, 0), False),
        ((3, 53, 0), False),
    ],
)
def test_f11_the_versions_with_the_fault_are_known(version, has):
    assert sqlite_wal.has_wal_reset_fault(version) is has


def test_f11_a_process_that_shares_a_file_warns_once_if_its_sqlite_has_the_fault(sqlite_url, path, fork, worlds):
    has = sqlite_wal.has_wal_reset_fault(sqlite3.sqlite_version_info[:3])
    assert fork(programs.opener, sqlite_url).result() == [], "alone there is nothing to warn of"
    world = worlds(sqlite_url)
    world.commit(world.put_checkpoint(expects=None))
    said = fork(programs.opener, sqlite_url).result()
    assert len(said) == has
    assert all(path in text and sqlite3.sqlite_version in text and "3.51.3" in text for text in said)


def test_f11_whoever_waits_for_a_file_learns_that_it_is_shared(sqlite_url, path, monkeypatch, caplog, fork, worlds):
    """Where the system has no list of locks, too."""
    monkeypatch.setattr(sqlite_wal, "used_by_others", lambda _: False)
    monkeypatch.setattr(sqlite_wal.sqlite3, "sqlite_version_info", (3, 51, 2))
    world = worlds(sqlite_url)
    holder = fork(programs.locker, path)
    holder.until("locked")
    future = world.engine.coordinator.commit(world.put_checkpoint(expects=None))
    wait_until(lambda: "WAL-reset" in caplog.text, "the warning")
    holder.give_the_word()
    future.result(DEADLINE_SECONDS)
    assert [record.levelname for record in caplog.records if record.name == "runtime_persist.sqlite"] == ["WARNING"]


def test_f11_a_fixed_sqlite_warns_of_nothing(sqlite_url, monkeypatch, caplog, worlds):
    monkeypatch.setattr(sqlite_wal, "used_by_others", lambda _: True)
    monkeypatch.setattr(sqlite_wal.sqlite3, "sqlite_version_info", (3, 51, 3))
    worlds(sqlite_url)
    assert caplog.records == []


def test_f11_the_file_is_not_mapped_and_syncs_every_commit(sqlite_url, worlds):
    writer = worlds(sqlite_url).engine._driver._writer
    found = {
        name: writer.execute(f"PRAGMA {name}").fetchone()[0] for name in ("mmap_size", "journal_mode", "synchronous")
    }
    assert found == {"mmap_size": 0, "journal_mode": "wal", "synchronous": 2}
