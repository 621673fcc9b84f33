"""Rows DB-05 to DB-09 with real processes that are stopped and killed; others are shown where they belong."""

from __future__ import annotations

import collections
import signal

import pytest

from runtime_persist.testing.faults import check_invariants, read_rows
from runtime_persist.testing.live_invariants import look
from tests.acceptance import programs
from tests.fixtures.raw import wait_until
from tests.soak.programs import Outside
from tests.support import programs as common
from tests.support.graphs import chain, fanned, says
from tests.support.leases import run_out

RACERS = 4


@pytest.fixture
def runtime(open_runtime):
    made = open_runtime()
    made.bind(chain({"node": says("x"), "after": says("y")}), name="g")
    return made


def attempts(raw):
    rows = raw.rows("SELECT cause, status, epoch FROM rp_attempts ORDER BY attempt_no")
    return [(row["cause"], row["status"], row["epoch"]) for row in rows]


@pytest.mark.parametrize("waits", ["join", "work3"])
def test_db05_db06_tasks_whose_results_are_stored_are_not_run_again_and_join_once(
    runtime, shared_url, fork, raw, tmp_path, waits
):
    """DB-05: all tasks of a step have ended when it dies in the next one. DB-06: two of three have when it dies."""
    outside = Outside(tmp_path / "outside")
    runtime.bind(fanned(lambda _: {}), name="fan")
    run = runtime.runs.start("fan", {"log": [], "items": [1, 2, 3]}, thread_id="t")
    child = fork(programs.fan, shared_url, str(outside.path), waits)
    child.until("in node")
    # A result counts with the checkpoint of its task, which may be stored later: LangGraph sends a checkpoint when the
    # one before it is stored, and its tasks run meanwhile.
    ended = (
        "SELECT count(DISTINCT task_id) FROM rp_writes JOIN rp_checkpoints USING (thread_id, checkpoint_ns, "
        "checkpoint_id) WHERE channel = 'log' AND parent_id IS NOT NULL"
    )
    wait_until(lambda: raw.value(ended) >= (3 if waits == "join" else 2), "the results are stored")
    child.kill()
    fork(programs.fan, shared_url, str(outside.path), "nowhere")
    assert run.result(timeout=60)["log"] == ["did 1", "did 2", "did 3", "joined"]
    entered = collections.Counter(name for (name,) in outside.lines())
    assert entered == {"work1": 1, "work2": 1, "work3": 1, "join": 1} | {waits: 2}
    assert check_invariants(read_rows(runtime.engine)) == []


def test_db07_of_workers_that_race_for_a_run_one_has_an_active_epoch_and_the_old_one_is_refused(
    runtime, shared_url, fork, raw
):
    run = runtime.runs.start("g", {"log": []}, thread_id="t")
    old = fork(common.worker, shared_url, on_sigterm=True)
    old.until("in node")
    racers = [fork(common.worker, shared_url) for _ in range(RACERS)]
    for racer in racers:
        racer.until("ready")
    old.stop_outside_transactions(raw)
    run_out(raw)  # all of them see it at once
    wait_until(lambda: run.record().epoch == 2 and run.record().status == "running", "one has taken it over")
    winner = run.record().worker_id
    assert attempts(raw) == [("initial", "lost", 1), ("takeover", "running", 2)]
    active = raw.rows("SELECT epoch, phase FROM rp_runs")
    assert [(row["epoch"], row["phase"]) for row in active] == [(2, "active")]

    before = raw.rows("SELECT version, event_seq, status, worker_id FROM rp_runs")
    stored = raw.value("SELECT count(*) FROM rp_checkpoints")
    old.send(signal.SIGTERM)
    old.send(signal.SIGCONT)
    old.give_the_word("old")
    reports = old.result()
    assert reports[-1][1]["code"] in {"LEASE_LOST", "LEASE_EXPIRED"}
    assert raw.rows("SELECT version, event_seq, status, worker_id FROM rp_runs") == before
    assert raw.value("SELECT count(*) FROM rp_checkpoints") == stored

    for racer in racers:
        racer.give_the_word("winner")  # only one of them waits for it
    assert run.result(timeout=30)["log"] == ["winner", "after"]
    assert raw.value("SELECT count(DISTINCT worker_id) FROM rp_attempts") == 2
    assert run.record().worker_id == winner
    assert check_invariants(read_rows(runtime.engine)) == []


def test_db09_ends_and_new_inputs_of_one_thread_at_once_lose_no_input_and_never_run_together(
    runtime, shared_url, fork, raw
):
    """Workers finish runs of a thread while processes queue more on it; one worker is killed on the way."""
    workers = [fork(programs.worker, shared_url) for _ in range(3)]
    starters = [fork(programs.starter, shared_url, f"caller {n}", 6) for n in range(3)]
    for child in (*workers, *starters):
        child.until("ready")
    for starter in starters:
        starter.give_the_word()
    started = [run_id for starter in starters for run_id in starter.result()]
    ended = "SELECT count(*) FROM rp_runs WHERE finished_us IS NOT NULL"
    wait_until(lambda: (look(runtime.engine) == [] or pytest.fail("broken")) and raw.value(ended) >= 4, "some ended")
    workers[0].kill()
    for run_id in started:
        assert runtime.runs.result(run_id, timeout=60)["log"]
        assert look(runtime.engine) == []
    order = raw.rows("SELECT run_id FROM rp_runs ORDER BY thread_run_no")
    log = runtime.runs.result(order[-1]["run_id"], timeout=0)["log"]
    inputs = [word for word in log if word.startswith("caller")]
    assert sorted(inputs) == sorted(f"caller {n} {m}" for n in range(3) for m in range(6))
    assert log == [word for given in inputs for word in (given, "x", "y")]
    assert check_invariants(read_rows(runtime.engine)) == []
