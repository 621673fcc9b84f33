"""Runtimes of one's own: what they report by token, and what is made of an attempt whose worker is gone."""

import json
import signal

import pytest

from runtime_persist.errors import CallbackRefused, InvalidInput
from runtime_persist.worker import Life, RegisteredGraph, Sighting, Worker
from tests.support import subprocesses
from tests.support.graphs import chain, says
from tests.support.leases import run_out
from tests.support.subprocesses import Elsewhere

GRAPH = chain({"never": says("never")})
REGISTRY = {"g": RegisteredGraph(GRAPH, runtime="elsewhere")}


@pytest.fixture
def started(runtime):
    runtime.bind(GRAPH, name="g")
    return runtime.runs.start("g", {"log": []}, thread_id="t")


@pytest.fixture
def token(runtime, started, works):
    """Of an attempt that is executed elsewhere: its worker has gone, its lease is live."""
    sent = Elsewhere()
    works(REGISTRY, runtimes=[sent])
    return sent.token


async def test_reports_count_by_their_sequence_from_any_process(runtime, started, token, way):
    async def report(state, **fields):
        outcome = await way(runtime.attempts, "report", token, state, **fields)
        return outcome.accepted, outcome.reason

    assert await report("accepted", sequence=1) == (True, "")
    assert started.record().shown == "waiting_runtime"
    assert await report("running", sequence=3) == (True, "")
    assert started.record().shown == "running"
    assert await report("failed", sequence=2) == (False, "reordered")
    assert await report("failed", sequence=3, dedupe_key="another") == (False, "duplicate")
    assert await report("failed", sequence=None) == (False, "missing_sequence")
    assert await report("succeeded", sequence=4, result={"n": 1}) == (True, "")
    assert await report("succeeded", sequence=4, result={"n": 1}) == (True, "")  # the same one, sent again
    assert await report("failed", sequence=5) == (False, "late")
    assert await report("failed", sequence=6) == (False, "late")
    assert await way(started, "result", timeout=0) == {"n": 1}
    assert [event.type for event in started.events()].count("attempt.late_callback_ignored") == 1


def test_a_report_with_a_key_is_committed_once_whatever_its_sequence(runtime, started, token):
    report = runtime.attempts.report
    first = report(token, "running", sequence=1, dedupe_key="began")
    assert first == report(token, "running", sequence=1, dedupe_key="began")
    assert [event.type for event in started.events()].count("run.running") == 1


def test_a_failure_keeps_no_secret(runtime, started, token):
    runtime.attempts.report(token, "failed", sequence=1, error_code="BOOM", error="login failed: password=hunter2")
    record = started.record()
    assert (record.status, record.error_code) == ("failed", "BOOM")
    assert "hunter2" not in record.error_summary


def test_a_token_is_stored_nowhere_and_can_be_revoked(runtime, started, token, raw):
    secret = token.rpartition(".")[2]
    assert secret.encode() not in repr(raw.dump()).encode()
    (attempt,) = raw.rows("SELECT attempt_id FROM rp_attempts")
    assert runtime.attempts.revoke(started.run_id, attempt["attempt_id"])
    with pytest.raises(CallbackRefused):
        runtime.attempts.report(token, "succeeded", sequence=1)
    assert started.record().shown == "starting"


@pytest.mark.parametrize("change", ["secret", "run", "attempt", "shape"])
def test_what_is_not_the_token_is_refused(runtime, started, token, change):
    parts = token.split(".")
    made = {
        "secret": [*parts[:3], "x" * len(parts[3])],
        "run": [parts[0], "nothing", *parts[2:]],
        "attempt": [*parts[:2], "nothing", parts[3]],
        "shape": parts[:3],
    }
    with pytest.raises(CallbackRefused) as refused:
        runtime.attempts.report(".".join(made[change]), "succeeded", sequence=1)
    assert parts[3] not in str(refused.value)
    assert started.record().status == "dispatching"


@pytest.mark.parametrize(("state", "sequence"), [("done", 1), ("unconfirmed", 1), ("running", 0), ("running", True)])
def test_what_cannot_be_reported_is_refused_by_name(runtime, token, state, sequence):
    with pytest.raises(InvalidInput, match=r"state must be|sequence must be"):
        runtime.attempts.report(token, state, sequence=sequence)


def test_a_lost_run_comes_back_with_a_report_and_falls_to_another_when_it_is_silent(
    runtime, started, token, raw, works
):
    run_out(raw)
    assert runtime.attempts.report(token, "running", sequence=1).status == "running"
    assert started.record().shown == "running"
    run_out(raw)
    assert works({"g": GRAPH}) != []
    assert started.result(timeout=0)["log"] == ["never"]
    assert runtime.attempts.report(token, "succeeded", sequence=2).reason == "late"


class Finished(Elsewhere):
    """Knows what became of the attempts that somebody else sent."""

    def inspect(self, handle):
        return Sighting(Life.GONE, "it is in its list", finished=True, result={"list": handle["queue"]})


class Alive(Elsewhere):
    """Knows an attempt that still works, and can end it."""

    def stop(self, handle):
        self.stopped = handle
        return Sighting(Life.GONE, "it was told to stop")

    def inspect(self, handle):
        return Sighting(Life.ALIVE, "it works")


def left(fork, shared_url, raw):
    """An attempt whose worker was killed behind its start fence."""
    worker = fork(subprocesses.dies_behind_its_start_fence, shared_url)
    assert worker.ended() == -signal.SIGKILL
    run_out(raw)


def test_what_a_lost_attempt_had_returned_counts_and_is_not_executed_again(
    runtime, started, fork, shared_url, raw, works
):
    left(fork, shared_url, raw)
    again = Finished()
    works(REGISTRY, runtimes=[again])
    assert started.result(timeout=0) == {"list": "jobs"}
    assert again.token is None
    assert [row["status"] for row in raw.rows("SELECT status FROM rp_attempts")] == ["lost"]


def test_a_lost_attempt_that_still_works_is_ended_before_the_next_begins(
    runtime, started, fork, shared_url, raw, works
):
    left(fork, shared_url, raw)
    again = Alive()
    works(REGISTRY, runtimes=[again])
    assert again.stopped == {"queue": "jobs"}
    assert again.token is not None
    causes = [row["cause"] for row in raw.rows("SELECT cause FROM rp_attempts ORDER BY attempt_no")]
    assert causes == ["initial", "takeover"]


def test_two_runtimes_of_one_name_are_refused(runtime):
    with pytest.raises(InvalidInput, match="two called 'elsewhere'"):
        Worker(runtime, REGISTRY, runtimes=[Elsewhere(), Elsewhere()])


def test_a_handle_is_stored_as_it_was_given(started, token, raw):
    (attempt,) = raw.rows("SELECT runtime, handle, sync_state FROM rp_attempts")
    assert (attempt["runtime"], json.loads(attempt["handle"])) == ("elsewhere", {"queue": "jobs"})
    assert attempt["sync_state"] == "pending"
