"""The six rules of the fence (design: architecture §3): the holder changes one thing while our statement waits.

Each test locks with a connection of its own, sends a command, and goes on only when PostgreSQL itself says that the
statement waits for a lock.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from runtime_persist.commands.finalize_run import FinalizeRun
from runtime_persist.errors import (
    LeaseExpired,
    LeaseLost,
    LeaseReleased,
    RunStopping,
    StaleWriter,
    ThreadMismatch,
    ThreadOwned,
)
from runtime_persist.testing.proxy import PostgresProxy
from tests.fixtures.raw import DEADLINE_SECONDS, wait_until
from tests.fixtures.world import THREAD, Held, World

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCK_RUN = "SELECT 1 FROM rp_runs WHERE run_id = ? FOR UPDATE"
DATABASE_NOW = "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
LOCK_THREAD = "SELECT 1 FROM rp_threads WHERE thread_id = ? FOR UPDATE"


class Race:
    """A world whose statements wait for a holder; what is sent ``elsewhere`` comes from another worker."""

    def __init__(self, world: World, raw, elsewhere=None) -> None:
        self.world = world
        self.raw = raw
        self.holder = raw()
        self.elsewhere = elsewhere

    @contextmanager
    def waiting(self, command, lock: str, *params: object) -> Iterator[list]:
        """Lock, send the command, wait until it waits; the holder commits at the end of the block."""
        outcome: list = []
        self.holder.rows("BEGIN")
        self.holder.rows(lock, *params)
        outcome.append(self.world.engine.coordinator.commit(command))
        self.world.raw.wait_for_lock_wait()
        yield outcome
        assert not outcome[0].done()
        self.holder.rows("COMMIT")

    def refused(self, outcome, error):
        found = outcome[0].exception(DEADLINE_SECONDS)
        assert type(found) is error
        return found


@pytest.fixture
def race(postgres_world, postgres_raw, open_engine) -> Race:
    engine = open_engine(postgres_world.engine.url.location)
    return Race(postgres_world, postgres_raw, engine.coordinator)


@pytest.fixture
def world(postgres_world) -> World:
    return postgres_world


LEASED = ["commit_checkpoint", "commit_writes", "begin", "renew", "complete", "next_try"]


def leased(world: World, kind: str, held: Held):
    if kind in {"complete", "next_try"}:
        return getattr(world, kind)(held, world.begun(held))
    if kind == "commit_writes":
        return world.commit_writes(held, "a")
    return getattr(world, kind)(held)


# --- 1: tested above the lock, against the clock that is read behind it ---------------------------------------------


@pytest.mark.parametrize("kind", LEASED)
def test_1_a_lease_that_runs_out_while_waiting_for_a_holder_that_changes_nothing_is_refused(world, race, kind):
    held = world.owned()
    command = leased(world, kind, held)
    sent_in_time = False
    for milliseconds in (300, 1_000, 4_000, 16_000):  # longer ones only for a machine that is too slow
        world.raw.rows("UPDATE rp_runs SET expires_us = " + DATABASE_NOW + " + ?", milliseconds * 1_000)
        before = world.dump()
        with race.waiting(command, LOCK_RUN, held.run_id) as outcome:
            sent_in_time = time_left(world) > 0  # it waits already, and the lease is still good
            wait_until(lambda: time_left(world) < 0, "the lease ran out")
        race.refused(outcome, LeaseExpired)
        assert world.dump() == before
        if sent_in_time:
            break
    assert sent_in_time


def time_left(world: World) -> int:
    left: int = world.raw.value("SELECT expires_us - " + DATABASE_NOW + " FROM rp_runs")
    return left


@pytest.mark.parametrize("kind", LEASED)
def test_1_an_epoch_that_moves_while_waiting_is_refused(world, race, kind):
    held = world.owned()
    command = leased(world, kind, held)
    with race.waiting(command, LOCK_RUN, held.run_id) as outcome:
        race.holder.rows("UPDATE rp_runs SET epoch = epoch + 1")
        before = race.holder.dump()
    assert race.refused(outcome, LeaseLost).details["current_epoch"] == held.epoch + 1
    assert world.dump() == before


def test_1_a_cold_command_reads_the_clock_behind_its_lock_too(world, race):
    held = world.owned()
    command = world.claim_run(held.run_id)
    with race.waiting(command, LOCK_THREAD, THREAD) as outcome:
        race.holder.rows("UPDATE rp_runs SET expires_us = " + DATABASE_NOW)
    assert outcome[0].result(DEADLINE_SECONDS).result["takeover"]


# --- 2: what is decided on is read from a locked row ----------------------------------------------------------------


def test_2_a_head_that_moves_while_waiting_is_refused(world, race):
    world.commit(world.put_checkpoint(expects=None))
    command = world.put_checkpoint(expects="c1", checkpoint_id="c2")
    with race.waiting(command, LOCK_THREAD, THREAD) as outcome:
        race.holder.rows("UPDATE rp_heads SET checkpoint_id = 'x'")
    assert race.refused(outcome, StaleWriter).details["head"] == "x"
    assert (world.head(), world.count("rp_checkpoints")) == ("x", 1)


def test_2_a_head_row_that_is_locked_by_itself_is_waited_for(world, race):
    world.commit(world.put_checkpoint(expects=None))
    command = world.put_checkpoint(expects="c1", checkpoint_id="c2")
    with race.waiting(command, "SELECT 1 FROM rp_heads FOR UPDATE") as outcome:
        race.holder.rows("UPDATE rp_heads SET checkpoint_id = 'x'")
    race.refused(outcome, StaleWriter)
    assert world.count("rp_checkpoints") == 1


@pytest.mark.parametrize("kind", ["begin", "complete", "next_try"])
def test_2_the_number_of_an_event_follows_what_the_holder_wrote(world, race, kind):
    held = world.owned()
    command = leased(world, kind, held)
    with race.waiting(command, LOCK_RUN, held.run_id) as outcome:
        race.holder.rows("UPDATE rp_runs SET event_seq = event_seq + 1")
        race.holder.rows(
            "INSERT INTO rp_events (space, run_id, seq, type, actor, created_us) "
            "SELECT space, run_id, event_seq, 'holder.wrote', 'holder', 1 FROM rp_runs"
        )
    assert not outcome[0].result(DEADLINE_SECONDS).replayed
    assert world.events(held.run_id)[-2] == "holder.wrote"  # consecutive, and counted by the run


def test_2_the_version_a_cold_command_expects_is_read_behind_the_lock(world, race):
    held = world.owned()
    command = finalize(world, held)
    with race.waiting(command, LOCK_RUN, held.run_id) as outcome:
        race.holder.rows("UPDATE rp_runs SET version = version + 5")
    assert outcome[0].result(DEADLINE_SECONDS).result == {"status": "succeeded"}
    assert world.run(held.run_id)["version"] == 7


def finalize(world, held):
    fields = world.of_thread() | world.of_lease(held)
    return FinalizeRun.succeeded(result=b"r", owner="space", blobs=(), **fields)


# --- 3: the receipt is the first row, and the effects come from it --------------------------------------------------


@pytest.mark.parametrize("kind", ["commit_checkpoint", "begin", "complete", "next_try"])
def test_3_the_same_command_committed_while_waiting_has_one_effect(world, race, kind):
    held = world.owned()
    command = leased(world, kind, held)
    once = one_effect(world, race, command, LOCK_RUN, held.run_id)
    events = world.events(held.run_id)
    assert events.count("operation.started") == {"commit_checkpoint": 0, "next_try": 2}.get(kind, 1)
    assert events.count("operation.completed") == (kind == "complete")
    assert once == [False, True]


def test_3_the_same_put_without_a_lease_has_one_effect(world, race):
    world.commit(world.put_checkpoint())
    command = world.put_checkpoint(expects="c1", checkpoint_id="c2")
    assert one_effect(world, race, command, LOCK_THREAD, THREAD) == [False, True]
    assert (world.head(), world.count("rp_checkpoints")) == ("c2", 2)


def test_3_the_same_cold_command_has_one_effect(world, race):
    held = world.owned()
    assert one_effect(world, race, finalize(world, held), LOCK_THREAD, THREAD) == [False, True]
    assert world.events(held.run_id).count("run.succeeded") == 1


def one_effect(world, race, command, lock, *params):
    """Send a command twice behind one holder; return who was answered from the receipt."""
    with race.waiting(command, lock, *params) as outcome:
        outcome.append(race.elsewhere.commit(command))
        world.raw.wait_for_lock_wait(2)
    return sorted(future.result(DEADLINE_SECONDS).replayed for future in outcome)


def test_3_another_request_under_the_identity_is_told_so_behind_the_wait(world, race):
    held = world.owned()
    first, second = world.commit_checkpoint(held), world.commit_checkpoint(held, body=b"other")
    with race.waiting(first, LOCK_RUN, held.run_id) as outcome:
        outcome.append(race.elsewhere.commit(second))
        world.raw.wait_for_lock_wait(2)
    errors = [future.exception(DEADLINE_SECONDS) for future in outcome]
    assert sorted(type(error).__name__ for error in errors) == ["CheckpointConflict", "NoneType"]
    assert world.count("rp_checkpoints") == 1


# --- 4: a refusal knows its reason without another trip -------------------------------------------------------------

REASONS = {
    "lost": ({"epoch": 9}, LeaseLost),
    "recovering": ({"phase": "recovering"}, LeaseLost),
    "released": ({"phase": "released"}, LeaseReleased),
    "stopping": ({"control": "stopping", "stop_reason": "cancel"}, RunStopping),
    "expired": ({"expires_us": 0}, LeaseExpired),
    "another thread": ({"thread_id": "another"}, ThreadMismatch),
}


@pytest.mark.parametrize("reason", REASONS)
def test_4_a_refusal_costs_the_statement_and_the_receipts_look_up(
    postgres_server, postgres_url, postgres_raw, open_engine, reason
):
    values, error = REASONS[reason]
    with PostgresProxy("127.0.0.1", postgres_server.port) as proxy:
        with World(open_engine(proxy.dsn(postgres_url))) as world:
            held = world.owned()
            world.commit(world.begin(held))
            world.commit(world.begin(held))  # replayed: the look-up is prepared too
            race = Race(world, postgres_raw)
            world.raw.close()
            world.raw = postgres_raw()  # beside the proxy
            world.engine.notifications.flush()
            proxy.reset()
            command = world.begin(held, "#2")
            with race.waiting(command, LOCK_RUN, held.run_id) as outcome:
                pairs = ", ".join(f"{name} = ?" for name in values)
                race.holder.rows(f"UPDATE rp_runs SET {pairs}", *values.values())
            race.refused(outcome, error)
            assert proxy.round_trips == 2
        world.engine.close()


# --- 5: run, lease and control are one row --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["begin", "next_try"])
def test_5_new_work_is_refused_when_the_run_is_stopped_while_waiting(world, race, kind):
    held = world.owned()
    command = leased(world, kind, held)
    operations = world.count("rp_operation_tries")
    with race.waiting(command, LOCK_RUN, held.run_id) as outcome:
        race.holder.rows("UPDATE rp_runs SET control = 'stopping', stop_reason = 'cancel'")
    assert "cancel" in race.refused(outcome, RunStopping).message
    assert world.count("rp_operation_tries") == operations


@pytest.mark.parametrize("kind", ["complete", "commit_checkpoint", "commit_writes", "renew"])
def test_5_results_are_accepted_when_the_run_is_stopped_while_waiting(world, race, kind):
    held = world.owned()
    command = leased(world, kind, held)
    with race.waiting(command, LOCK_RUN, held.run_id) as outcome:
        race.holder.rows("UPDATE rp_runs SET control = 'stopping', stop_reason = 'cancel'")
    receipt = outcome[0].result(DEADLINE_SECONDS)
    assert kind != "renew" or receipt.result["stop_reason"] == "cancel"


# --- 6: rows that do not exist in the statement's snapshot ----------------------------------------------------------


def test_6_of_two_first_puts_of_a_new_thread_one_is_stale(world, race):
    first = world.put_checkpoint(expects=None, checkpoint_id="c1")
    second = world.put_checkpoint(expects=None, checkpoint_id="c2")
    with race.waiting(first, *new_thread(world)) as outcome:
        outcome.append(race.elsewhere.commit(second))
        world.raw.wait_for_lock_wait(2)
    errors = [future.exception(DEADLINE_SECONDS) for future in outcome]
    assert sorted(type(error).__name__ for error in errors) == ["NoneType", "StaleWriter"]
    assert world.count("rp_checkpoints") == world.count("rp_heads") == 1
    assert world.head() == ["c1", "c2"][errors.index(None)]


def new_thread(world, owner=None):
    """What a holder inserts: a thread that no snapshot knows yet."""
    sql = (
        "INSERT INTO rp_threads (space, thread_hash, thread_id, generation, owner_run_id, run_no, created_us) "
        "VALUES (?, ?, ?, 1, ?, 0, 1)"
    )
    return sql, world.space, world.keys.thread_hash(THREAD), THREAD, owner


def test_6_a_head_that_appears_while_waiting_is_seen(world, race):
    command = world.put_checkpoint(expects=None, checkpoint_id="c2")
    with race.waiting(command, *new_thread(world)) as outcome:
        race.holder.rows("INSERT INTO rp_heads VALUES (?, ?, '', 'c1')", world.space, THREAD)
    assert race.refused(outcome, StaleWriter).details["head"] == "c1"
    assert (world.head(), world.count("rp_checkpoints")) == ("c1", 0)


def test_6_a_direct_write_finds_the_head_that_appears_while_waiting(world, race):
    command = world.put_checkpoint(checkpoint_id="c2")
    with race.waiting(command, *new_thread(world)) as outcome:
        race.holder.rows("INSERT INTO rp_heads VALUES (?, ?, '', 'c1')", world.space, THREAD)
    assert not outcome[0].result(DEADLINE_SECONDS).replayed
    assert (world.head(), world.count("rp_heads")) == ("c2", 1)


@pytest.mark.parametrize("knew", [False, True], ids=["new thread", "known thread"])
@pytest.mark.parametrize("kind", ["put_checkpoint", "put_writes"])
def test_6_an_owner_that_appears_while_waiting_is_seen(world, race, postgres_raw, kind, knew):
    """Another engine starts an owned run while the put waits; its row is younger than the put's snapshot."""
    if knew:
        world.commit(world.put_checkpoint(checkpoint_id="c0"))
    command = getattr(world, kind)(*(["a"] if kind == "put_writes" else []))
    lock = (LOCK_THREAD, THREAD) if knew else new_thread(world)
    before = world.count("rp_checkpoints"), world.count("rp_writes"), world.count("rp_blobs")
    with race.waiting(command, *lock) as outcome:
        race.holder.rows("UPDATE rp_threads SET owner_run_id = 'young'")
        insert_run(race, world, "young")
    assert race.refused(outcome, ThreadOwned).details["run_id"] == "young"
    assert (world.count("rp_checkpoints"), world.count("rp_writes"), world.count("rp_blobs")) == before


def insert_run(race, world, run_id, expires_us=2**62):
    race.holder.rows(
        "INSERT INTO rp_runs (space, run_id, graph, thread_id, thread_run_no, status, version, event_seq, control, "
        "epoch, phase, expires_us, request_fingerprint, input, attempt_no, takeovers, failures, created_us, "
        "updated_us) VALUES (?, ?, 'g', ?, 1, 'running', 1, 0, 'open', 1, 'active', ?, '', '', 1, 0, 0, 1, 1)",
        world.space, run_id, THREAD, expires_us,
    )  # fmt: skip


def test_6_an_owner_that_appears_and_has_ended_is_no_hindrance(world, race):
    command = world.put_checkpoint(expects=None)
    with race.waiting(command, *new_thread(world)) as outcome:
        race.holder.rows("UPDATE rp_threads SET owner_run_id = 'young'")
        insert_run(race, world, "young", expires_us=0)
    assert not outcome[0].result(DEADLINE_SECONDS).replayed
    assert world.head() == "c1"


def test_6_an_owned_start_and_a_put_behind_one_holder_never_both_win(world, race):
    put, start = world.put_checkpoint(expects=None), world.start_owned_run()
    with race.waiting(put, *new_thread(world)) as outcome:
        outcome.append(world.engine.coordinator.commit(start))
        world.raw.wait_for_lock_wait(2)
    assert not outcome[1].result(DEADLINE_SECONDS).replayed
    error = outcome[0].exception(DEADLINE_SECONDS)
    assert world.count("rp_checkpoints") == (error is None)
    assert error is None or type(error) is ThreadOwned


def test_6_the_owner_that_lets_go_while_waiting_is_let_go(world, race):
    held = world.owned()
    command = world.put_checkpoint(expects=None)
    with race.waiting(command, LOCK_THREAD, THREAD) as outcome:
        race.holder.rows("UPDATE rp_runs SET phase = 'released', expires_us = 0 WHERE run_id = ?", held.run_id)
    outcome[0].result(DEADLINE_SECONDS)
    assert world.head() == "c1"
