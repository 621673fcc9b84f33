"""A claim is committed and its answer is late, or never comes: what it started is executed under a lease or not at all.

Real processes, killed and stopped right behind the commit of what lets them execute a run.
"""

import signal
import time

import pytest

from runtime_persist import Runtime
from tests.fixtures.raw import wait_until
from tests.support import programs
from tests.support.graphs import chain, config, says
from tests.support.leases import run_out
from tests.worker import programs_late

SHORT, LONG = 0.5, 30.0
LOST = {"LEASE_LOST", "LEASE_EXPIRED"}


@pytest.fixture
def runtime(open_runtime):
    made = open_runtime()
    made.bind(chain({"node": says("x"), "after": says("after")}), name="g")
    return made


def attempts(raw):
    rows = raw.rows("SELECT cause, status, epoch, start_requested_us FROM rp_attempts ORDER BY attempt_no")
    return [(row["cause"], row["status"], row["epoch"], row["start_requested_us"] is not None) for row in rows]


def stopped_for_longer_than_its_lease(child, runtime):
    """It hears of its commit when nobody holds the lease any more."""
    child.until("committed")
    child.send(signal.SIGSTOP)
    wait_until(lambda: runtime.runs.list()[0].shown == "unknown", "its lease ran out")


def goes_on(child):
    """Let it hear of its commit; return what it says until it returns."""
    child.send(signal.SIGCONT)
    child.give_the_word()
    said = []
    while (heard := child.hears())[0] != "returned":
        said.append(heard[0])
    return said, heard[1]


def test_a_worker_killed_right_behind_its_claim_may_have_started_it(runtime, shared_url, fork, raw):
    """The start fence came with the claim: nothing is queued again, and a takeover gives the run its input."""
    run = runtime.runs.start("g", {"log": ["given"]}, thread_id="t")
    first = fork(programs_late.works, shared_url, "first", LONG)
    first.until("committed")
    first.kill()
    assert attempts(raw) == [("initial", "running", 1, True)]
    run_out(raw)
    assert run.record().shown == "unknown"
    second = fork(programs.worker, shared_url)
    second.until("in node")
    second.give_the_word("second")
    assert run.result(timeout=30)["log"] == ["given", "second", "after"]
    assert attempts(raw) == [("initial", "lost", 1, True), ("takeover", "succeeded", 2, True)]
    assert raw.value("SELECT takeovers FROM rp_runs") == 1


def test_a_claim_whose_answer_comes_after_the_lease_ran_out_executes_nothing(runtime, shared_url, fork, raw):
    run = runtime.runs.start("g", {"log": []}, thread_id="t")
    first = fork(programs_late.works, shared_url, "first", SHORT)
    stopped_for_longer_than_its_lease(first, runtime)
    said, reports = goes_on(first)
    assert "in node" not in said
    assert [what for what, _ in reports] == ["claimed", "stopped"]
    assert reports[-1][1] in LOST
    second = fork(programs.worker, shared_url)
    second.until("in node")
    second.give_the_word("second")
    assert run.result(timeout=30)["log"] == ["second", "after"]


def test_a_late_claim_of_a_run_that_was_cancelled_meanwhile_ends_it(runtime, shared_url, fork, raw):
    """Its lease is still good: it is renewed before the first node, and the renewal says that the run is to stop."""
    run = runtime.runs.start("g", {"log": []}, thread_id="t")
    first = fork(programs_late.works, shared_url, "first", SHORT)
    first.until("committed")
    committed_at = time.monotonic()
    raw.rows("UPDATE rp_runs SET expires_us = expires_us + 60000000")  # longer than any machine is slow
    assert run.cancel() == "running"
    wait_until(lambda: time.monotonic() - committed_at > SHORT, "its answer is late")
    said, reports = goes_on(first)
    assert ("in node" not in said, reports) == (True, [("claimed", None), ("finished", None)])
    assert run.record().status == "cancelled"


def test_a_worker_that_is_stopped_inside_its_claim_keeps_nobody_from_the_run_and_its_graph(postgres_url, fork, opened):
    """Else everybody who serves the graph in its turn would wait for as long as it is stopped."""
    runtime = opened(Runtime.open(postgres_url))
    runtime.bind(chain({"node": says("x"), "after": says("after")}), name="g", max_concurrency=1)
    run = runtime.runs.start("g", {"log": []}, thread_id="t")
    first = fork(programs_late.is_stopped_in_its_claim, postgres_url)
    first.until("inside")
    first.send(signal.SIGSTOP)
    second = fork(programs.worker, postgres_url)
    second.until("in node")
    second.give_the_word("second")
    assert run.result(timeout=30)["log"] == ["second", "after"]
    second.kill()
    again = runtime.runs.start("g", {"log": []}, thread_id="u")
    said, reports = goes_on(first)
    assert (said.count("in node"), reports) == (1, [("claimed", None), ("finished", None)])
    assert again.result(timeout=30)["log"] == ["first", "after"]


def test_an_owned_call_whose_answer_comes_after_the_lease_ran_out_executes_nothing(runtime, shared_url, fork):
    first = fork(programs_late.invokes, shared_url, "first", SHORT)
    stopped_for_longer_than_its_lease(first, runtime)
    said, code = goes_on(first)
    assert ("in node" not in said, code in LOST) == (True, True)
    second = fork(programs_late.invokes, shared_url, "second", SHORT, goes_on=True)
    stopped_for_longer_than_its_lease(second, runtime)
    said, code = goes_on(second)
    assert ("in node" not in said, code in LOST) == (True, True)
    graph = runtime.bind(chain({"node": says("third"), "after": says("after")}), name="g")
    assert graph.invoke(None, config())["log"] == ["third", "after"]
