"""Attempts in child processes: isolation, stopping, and what a crash of the child, its worker or both leaves behind."""

import os
import signal
import subprocess
import sys

import pytest

from runtime_persist import Runtime
from runtime_persist.errors import InvalidInput, RunFailed
from runtime_persist.worker import SubprocessRuntime, Worker
from runtime_persist.worker.runtimes.spawning import Spawner
from tests.fixtures.fix_engine import FILE
from tests.fixtures.raw import wait_until
from tests.support import child_graphs, subprocesses
from tests.support.graphs import chain, says
from tests.support.leases import run_out
from tests.support.station import Station
from tests.support.subprocesses import REGISTRY, working


@pytest.fixture(scope="module")
def children():
    """One spawner for all tests of this file."""
    with SubprocessRuntime(REGISTRY) as runtime:
        yield runtime


@pytest.fixture
def station():
    with Station() as made:
        yield made


@pytest.fixture
def start(runtime, station):
    def started(graph="g", **options):
        given = child_graphs.registry[graph]
        runtime.bind(getattr(given, "graph", given), name=graph, retry=getattr(given, "retry", None))
        return runtime.runs.start(graph, {"log": [station.address]}, **{"thread_id": "t"} | options)

    return started


def attempts(raw):
    rows = raw.rows("SELECT cause, status, runtime FROM rp_attempts ORDER BY attempt_no")
    return [(row["cause"], row["status"], row["runtime"]) for row in rows]


def nothing_is_open(raw):
    rows = raw.rows("SELECT state, attempt_id FROM rp_domains")
    return bool(rows) and all(row["state"] == "revoked" and row["attempt_id"] for row in rows)


def log(run):
    return run.result(timeout=60)["log"][1:]


def test_a_graph_runs_in_a_process_of_its_own_that_is_gone_before_the_run_has_ended(
    runtime, start, station, children, raw
):
    run = start()
    with working(runtime, children):
        node = station.next()
        assert node.pid != os.getpid()
        node.tell("return", value="x")
        assert log(run) == ["x", "after"]
        node.until_gone()
    assert attempts(raw) == [("initial", "succeeded", "subprocess")]
    assert nothing_is_open(raw)
    kinds = [event.type for event in run.events()]
    order = ["domain.opened", "attempt.start_requested", "attempt.running", "domain.revoked", "run.succeeded"]
    assert [kind for kind in kinds if kind in order] == order


def test_a_node_that_blocks_its_interpreter_keeps_the_lease(open_runtime, runtime, start, station, children, raw):
    run = start()
    with working(open_runtime(lease_ttl=1.0), children):
        node = station.next()
        node.tell("charge", what="5 EUR")
        assert node.hears() == "charged"
        expires = run.record().expires_us
        node.tell("block", seconds=1.5)
        assert node.hears() == "blocked"
        assert run.record().expires_us > expires
        node.tell("return", value="x")
        assert log(run) == ["x", "after"]
    assert attempts(raw) == [("initial", "succeeded", "subprocess")]


def test_a_worker_whose_own_node_blocks_it_notices_the_loss_before_its_next_write(
    open_runtime, runtime, start, station, children, raw, fork, shared_url
):
    run = start()
    worker = fork(subprocesses.worker, shared_url, lease_ttl=0.6, default_runtime="inprocess")
    worker.until("ready")
    node = station.next()
    node.tell("charge", what="5 EUR")
    assert node.hears() == "charged"
    node.tell("block", seconds=1.2)
    worker.send(signal.SIGTERM)  # it claims nothing more
    node.tell("return", value="late")
    worker.result()
    assert run.record().shown == "unknown"
    with working(runtime, children):
        station.next().tell("return", value="second")
        assert log(run) == ["second", "after"]
    causes = [(cause, name) for cause, _, name in attempts(raw)]
    assert causes == [("initial", "inprocess"), ("takeover", "subprocess")]
    assert len(raw.rows("SELECT * FROM rp_operations")) == 1


def test_a_question_is_asked_and_answered_across_children(runtime, start, children, raw):
    run = start("asking")
    with working(runtime, children):
        wait_until(lambda: run.record().status == "waiting_approval", "it asks")
        assert nothing_is_open(raw)
        runtime.runs.resume(run.run_id, "because")
        assert log(run) == ["because", "after"]
    assert [status for _, status, _ in attempts(raw)] == ["yielded", "succeeded"]


def test_an_exception_of_a_node_is_a_proved_failure_with_its_code(runtime, start, station, children):
    run = start(retry=None)
    with working(runtime, children):
        for _ in range(2):
            station.next().tell("raise", says="no luck, password=hunter2")
        with pytest.raises(RunFailed, match="ValueError"):
            run.result(timeout=60)
    record = run.record()
    assert (record.error_code, record.failures) == ("ValueError", 2)
    assert "hunter2" not in record.error_summary


def test_a_child_that_exits_has_failed_and_the_policy_decides(runtime, start, station, children, raw):
    run = start()
    with working(runtime, children):
        station.next().tell("exit", code=7, says="Segmentation of things, api_key=hunter2\n")
        station.next().tell("return", value="second")
        assert log(run) == ["second", "after"]
    assert attempts(raw) == [("initial", "failed", "subprocess"), ("retry", "succeeded", "subprocess")]
    (said,) = raw.rows("SELECT error_code, error_summary FROM rp_attempts WHERE attempt_no = 1")
    assert said["error_code"] == "process_exit_error"
    assert "exit code 7" in said["error_summary"]
    assert "Segmentation of things" in said["error_summary"]
    assert "hunter2" not in said["error_summary"]


def test_a_node_that_leaves_its_interpreter_has_failed_with_that(runtime, start, station, children, raw):
    run = start()
    with working(runtime, children):
        station.next().tell("leave", says="enough")
        station.next().tell("return", value="second")
        assert log(run) == ["second", "after"]
    assert attempts(raw) == [("initial", "failed", "subprocess"), ("retry", "succeeded", "subprocess")]
    (said,) = raw.rows("SELECT error_code, error_summary FROM rp_attempts WHERE attempt_no = 1")
    assert (said["error_code"], said["error_summary"]) == ("SystemExit", "enough")


class Broken(Spawner):
    """A machine that can start no process."""

    def _start(self, theirs):
        return subprocess.Popen([sys.executable, "-c", "raise SystemExit(1)"])


def test_a_runtime_that_can_start_nothing_is_left_alone_for_a_while_and_its_runs_as_they_were(
    runtime, start, station, children, raw
):
    run, reports = start(), []
    with SubprocessRuntime(REGISTRY, spawner=Broken()) as broken:
        worker = Worker(
            runtime,
            child_graphs.registry,
            poll_seconds=0.01,
            runtimes=[broken],
            default_runtime=broken.name,
            report=lambda what, facts: reports.append((what, facts.get("code"))),
        )
        assert worker.run(until_idle=True)
    assert reports == [("claimed", None), ("stopped", "RUNTIME_FAILED")]
    assert (run.record().status, run.record().failures) == ("queued", 0)
    with working(runtime, children):
        station.next().tell("return", value="first")
        assert log(run) == ["first", "after"]
    assert attempts(raw) == [("initial", "succeeded", "subprocess")]


def test_a_killed_child_takes_with_it_what_it_had_started(runtime, start, station, children, raw):
    run = start()
    with working(runtime, children):
        node = station.next()
        node.tell("start")
        node.send(signal.SIGKILL)
        node.until_gone()  # the process that the node had started had its connection, too
        station.next().tell("return", value="second")
        assert log(run) == ["second", "after"]
    (said,) = raw.rows("SELECT error_summary FROM rp_attempts WHERE attempt_no = 1")
    assert "SIGKILL" in said["error_summary"]


@pytest.mark.parametrize("reason", ["cancel", "deadline"])
def test_a_stopped_child_is_killed_after_a_while_and_the_run_ends_behind_the_proof(
    open_runtime, runtime, start, station, children, raw, reason
):
    run = start()
    with working(open_runtime(lease_ttl=1.0), children, stop_grace_seconds=0.2):
        node = station.next()
        node.send(signal.SIGSTOP)
        if reason == "cancel":
            run.cancel()
        else:
            raw.rows("UPDATE rp_runs SET deadline_us = 1")
        status = "cancelled" if reason == "cancel" else "timed_out"
        wait_until(lambda: run.record().status == status, "it ended")
        node.until_gone()
    kinds = [event.type for event in run.events()]
    assert kinds.index("domain.revoked") < kinds.index(f"run.{status}")
    assert nothing_is_open(raw)


def test_a_worker_that_drains_lets_the_child_reach_its_next_step(runtime, start, station, children, raw):
    run = start()
    with working(runtime, children) as worker:
        node = station.next()
        worker.stop()
        node.tell("drain")
        assert node.hears() == "drained"
        node.tell("return", value="first")
        wait_until(lambda: run.record().status == "queued", "it is queued again")
        node.until_gone()
    assert nothing_is_open(raw)
    with working(runtime, children):
        assert log(run) == ["first", "after"]
    assert [status for _, status, _ in attempts(raw)] == ["yielded", "succeeded"]


def test_a_worker_that_is_told_to_end_at_once_ends_its_child(runtime, start, station, children, raw):
    run = start()
    with working(runtime, children) as worker:
        node = station.next()
        worker.stop()
        worker.stop()
        node.until_gone()
    assert run.record().status == "running"
    run_out(raw)
    with working(runtime, children):
        station.next().tell("return", value="second")
        assert log(run) == ["second", "after"]


@pytest.mark.parametrize("shared_url", [FILE], indirect=True)  # it knows no database
def test_a_spawner_that_dies_takes_the_children_along_and_the_next_one_goes_on(runtime, start, station, raw):
    run = start()
    spawner = Spawner()
    with SubprocessRuntime(REGISTRY, spawner=spawner) as children, working(runtime, children):
        node = station.next()
        assert spawner._process is not None
        os.kill(spawner._process.pid, signal.SIGKILL)
        node.until_gone()
        station.next().tell("return", value="second")
        assert log(run) == ["second", "after"]
    assert [status for _, status, _ in attempts(raw)] == ["failed", "succeeded"]


# --- the worker is killed ---------------------------------------------------------------------------------------------


def finished_by_another(runtime, children, station, run, raw):
    run_out(raw)
    with working(runtime, children):
        station.next().tell("return", value="second")
        assert log(run) == ["second", "after"]
    assert nothing_is_open(raw)
    assert station.nobody_waits()


@pytest.mark.parametrize("how", ["working", "stopped", "blocked", "with its spawner"])
def test_a_child_does_not_outlive_its_killed_worker(runtime, start, station, children, fork, shared_url, raw, how):
    run = start()
    worker = fork(subprocesses.worker, shared_url)
    (spawner,) = worker.until("ready")
    node = station.next()
    node.tell("start")
    if how == "stopped":
        node.send(signal.SIGSTOP)
    elif how == "blocked":
        node.tell("block", seconds=60)
    elif how == "with its spawner":
        os.kill(spawner, signal.SIGKILL)
    worker.kill()
    if how == "with its spawner":  # nobody is left to end what the child had started, but the one who takes over
        with pytest.raises(ProcessLookupError):
            wait_until(lambda: node.send(0), "the child is gone")
    else:
        node.until_gone()
    finished_by_another(runtime, children, station, run, raw)
    node.until_gone()
    assert [cause for cause, _, _ in attempts(raw)] == ["initial", "takeover"]


def test_a_stopped_workers_child_is_ended_by_who_takes_over_and_the_worker_writes_nothing_more(
    runtime, start, station, children, fork, shared_url, raw
):
    run = start()
    worker = fork(subprocesses.worker, shared_url)
    worker.until("ready")
    node = station.next()
    worker.stop_outside_transactions(raw)
    run_out(raw)
    with working(runtime, children):
        second = station.next()
        node.until_gone()
        second.tell("return", value="second")
        assert log(run) == ["second", "after"]
    before = [row["status"] for row in raw.rows("SELECT status FROM rp_attempts ORDER BY attempt_no")]
    worker.send(signal.SIGTERM)
    worker.send(signal.SIGCONT)
    worker.result()
    assert [row["status"] for row in raw.rows("SELECT status FROM rp_attempts ORDER BY attempt_no")] == before
    assert [event.type for event in run.events()][-1] == "run.succeeded"


STEPS = {
    "claimed": ("activate_lease:before:begin", False),
    "activated": ("open_domain:before:begin", False),
    "domain opened": ("request_start:before:begin", False),
    "start fence": ("request_start:after:commit", True),
    "ordered": ("report_attempt_event:before:begin", True),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_worker_killed_between_two_steps_leaves_nothing_unproved(
    runtime, start, station, children, fork, shared_url, raw, step
):
    cut, started = STEPS[step]
    run = start()
    worker = fork(subprocesses.worker, shared_url, kill_at=cut)
    assert worker.ended() == -signal.SIGKILL
    run_out(raw)
    with working(runtime, children):
        node = station.next()
        if step == "ordered" and attempts(raw)[-1][0] == "initial":
            node = station.next()  # the first child had come as far as that before it was ended
        node.tell("return", value="done")
        assert log(run) == ["done", "after"]
    assert nothing_is_open(raw)
    causes = [cause for cause, _, _ in attempts(raw)]
    assert causes == (["initial", "takeover"] if started else ["initial"])
    assert run.record().failures == 0


# --- what is refused --------------------------------------------------------------------------------------------------


def test_a_runtime_that_the_worker_has_not_is_named(runtime):
    with pytest.raises(InvalidInput, match=r"no runtime .subprocess. .it has: inprocess"):
        Worker(runtime, child_graphs.registry, default_runtime="subprocess")


def test_what_a_child_cannot_open_is_refused_before_anything_is_claimed(children):
    with Runtime.open("sqlite:///:memory:") as runtime, pytest.raises(InvalidInput, match="in memory"):
        Worker(runtime, {"g": chain({"a": says("a")})}, runtimes=[children], default_runtime="subprocess")


def test_a_child_that_is_killed_in_a_directory_has_let_go_of_it_before_its_attempt_has_failed(
    runtime, start, station, children, raw, tmp_path
):
    run = start()
    with working(runtime, children):
        node = station.next()
        node.tell("work", path=str(tmp_path))
        assert node.hears() == "works"
        node.send(signal.SIGKILL)
        station.next().tell("return", value="second")
        assert log(run) == ["second", "after"]
    assert attempts(raw) == [("initial", "failed", "subprocess"), ("retry", "succeeded", "subprocess")]
    assert nothing_is_open(raw)
    assert [one.kind for one in runtime.runs.domains(run.run_id)] == ["process", "workspace", "process"]
