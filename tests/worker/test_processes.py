"""Real worker processes: killed, stopped, told to end, and crashing again and again."""

import signal
import subprocess
import sys

import pytest

from runtime_persist.engine import run as flow
from runtime_persist.errors import RunFailed
from runtime_persist.inspector import load_bundle
from tests.fixtures.raw import wait_until
from tests.support import programs
from tests.support.capacity import written
from tests.support.graphs import chain, says
from tests.support.leases import run_out


@pytest.fixture
def runtime(open_runtime):
    made = open_runtime()
    made.bind(chain({"node": says("x"), "after": says("y")}), name="g")
    return made


@pytest.fixture
def run(runtime):
    return runtime.runs.start("g", {"log": []}, thread_id="t")


def in_node(worker):
    worker.until("in node")
    return worker


def attempts(raw):
    rows = raw.rows("SELECT cause, status, epoch FROM rp_attempts ORDER BY attempt_no")
    return [(row["cause"], row["status"], row["epoch"]) for row in rows]


def test_a_killed_workers_run_is_finished_by_another(runtime, run, shared_url, fork, raw):
    in_node(fork(programs.worker, shared_url)).kill()
    run_out(raw)
    assert run.record().shown == "unknown"
    in_node(fork(programs.worker, shared_url)).give_the_word("second")
    assert run.result(timeout=30)["log"] == ["second", "after"]
    assert attempts(raw) == [("initial", "lost", 1), ("takeover", "succeeded", 2)]


def test_a_stopped_worker_that_wakes_after_the_takeover_writes_nothing(runtime, run, shared_url, fork, raw):
    first = in_node(fork(programs.worker, shared_url, on_sigterm=True))
    first.stop_outside_transactions(raw)
    run_out(raw)
    in_node(fork(programs.worker, shared_url)).give_the_word("second")
    assert run.result(timeout=30)["log"] == ["second", "after"]
    before = written(raw)
    first.send(signal.SIGTERM)
    first.send(signal.SIGCONT)
    first.give_the_word("first")
    reports = first.result()
    assert reports[-1][0] == "stopped"
    assert reports[-1][1]["code"] in {"LEASE_LOST", "LEASE_EXPIRED"}
    assert written(raw) == before


def test_sigterm_drains_and_queues_the_run_again_at_its_last_step(runtime, run, shared_url, fork, raw):
    first = in_node(fork(programs.worker, shared_url, on_sigterm=True))
    first.send(signal.SIGTERM)
    first.until("stopping")
    first.give_the_word("first")
    assert [what for what, _ in first.result()] == ["claimed", "stopped"]
    assert first.ended() == 0
    record = run.record()
    assert (record.status, record.phase) == ("queued", "released")
    fork(programs.worker, shared_url)
    assert run.result(timeout=30)["log"] == ["first", "after"]  # the node that had ended did not run again
    assert attempts(raw) == [("initial", "yielded", 1), ("resume", "succeeded", 2)]


def test_a_second_sigterm_waits_for_nobody_and_leaves_the_lease_to_run_out(runtime, run, shared_url, fork, raw):
    first = in_node(fork(programs.worker, shared_url, on_sigterm=True))
    for _ in range(2):
        first.send(signal.SIGTERM)
        first.until("stopping")
    assert [what for what, _ in first.result_only()] == ["claimed", "abandoned"]
    before = written(raw)
    assert (run.record().status, run.record().phase) == ("running", "active")
    first.give_the_word("late")  # the node returns at last: nothing of it is stored
    assert first.ended() == 0
    assert written(raw) == before
    run_out(raw)
    in_node(fork(programs.worker, shared_url)).give_the_word("second")
    assert run.result(timeout=30)["log"] == ["second", "after"]
    assert attempts(raw) == [("initial", "lost", 1), ("takeover", "succeeded", 2)]


def test_a_drain_that_takes_too_long_ends_the_command_with_success(runtime, shared_url):
    runtime.bind(chain({"hangs": says("x")}), name="hanging")
    run = runtime.runs.start("hanging", {"log": []}, thread_id="t")
    command = [sys.executable, "-m", "runtime_persist.cli", "worker", "tests.support.graphs_registry:hanging"]
    command += ["--poll", "0.02", "--drain-timeout", "0.1", "--url", shared_url]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as worker:
        for line in worker.stderr:
            if "in node" in line:
                break
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0
        assert "abandoned" in worker.stderr.read()
    record = run.record()
    assert (record.status, record.phase, record.attempt_no) == ("running", "active", 1)


def test_a_run_that_kills_its_workers_ends_as_a_crash_loop(runtime, run, shared_url, fork, raw):
    """User pain A6: after three takeovers without progress it fails, and the thread is free again."""
    for _ in range(4):
        child = fork(programs.dies_at_once, shared_url)
        assert child.ended() == 9
        run_out(raw)
    ended = fork(programs.worker, shared_url)
    ended.until("ready")
    with pytest.raises(RunFailed, match="crash_loop"):
        run.result(timeout=30)
    assert [row[0] for row in attempts(raw)] == ["initial", *["takeover"] * 3]
    bundle = flow(load_bundle(runtime.engine, runtime.checkpointer.serde, run.run_id))
    assert len({attempt.worker_id for attempt in bundle.attempts}) == 4
    assert (bundle.run.phase, bundle.run.error_code) == ("released", "crash_loop")
    again = runtime.runs.start("g", {"log": ["other"]}, thread_id="t")
    in_node(ended).give_the_word("works")
    assert again.result(timeout=30)["log"] == ["other", "works", "after"]


def test_two_workers_share_the_runs_and_none_is_executed_twice(runtime, shared_url, fork, raw):
    runs = [runtime.runs.start("g", {"log": []}, thread_id=f"t{n}") for n in range(2)]
    workers = [fork(programs.worker, shared_url) for _ in range(2)]
    threads = {worker.until("in node")[0] for worker in workers}
    assert threads == {"t0", "t1"}
    for worker in workers:
        worker.give_the_word("x")
    assert [run.result(timeout=30)["log"] for run in runs] == [["x", "after"]] * 2
    assert len(attempts(raw)) == 2


def test_a_running_run_is_cancelled_through_the_heartbeat(runtime, run, shared_url, fork):
    child = in_node(fork(programs.worker, shared_url, often=True))
    assert run.cancel() == "running"
    assert run.record().shown == "cancelling"
    expires = run.record().expires_us
    wait_until(lambda: run.record().expires_us > expires, "a heartbeat after the cancel")
    child.give_the_word("x")
    wait_until(lambda: run.record().status == "cancelled", "it ended cancelled")
    assert run.record().stop_reason == "cancel"
