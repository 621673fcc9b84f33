"""Rows A1 to A19: what is shown of a run, and what changes it, is what was proved."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from runtime_persist.cli.main import main
from runtime_persist.commands.mark_lost import MarkLost
from runtime_persist.commands.release_claim import ReleaseClaim
from runtime_persist.commands.report_attempt_event import ReportAttemptEvent
from runtime_persist.commands.request_start import RequestStart
from runtime_persist.commands.request_stop import RequestStop
from runtime_persist.engine import run as flow
from runtime_persist.errors import IllegalTransition, LeaseReleased, NothingToClaim, RunStopping
from runtime_persist.inspector import load_bundle
from runtime_persist.model.evidence import Observed
from runtime_persist.model.shown import shown_status
from runtime_persist.testing.live_invariants import look
from tests.support import programs
from tests.support.graphs import chain, says


def shown(world, run_id):
    run = world.run(run_id)
    return shown_status(run, run["updated_us"])


def started(world):
    """A run past its start fence, of which nothing was seen yet."""
    held = world.activated(world.claimed())
    world.commit(RequestStart(attempt_id=held.attempt_id, **world.of_lease(held)))
    return held


def report(world, held, observed=Observed.RUNNING, **fields):
    made = {"attempt_id": held.attempt_id, "observed": observed}
    return ReportAttemptEvent(**(made | world.of_lease(held) | fields))


def stop(world, held):
    return RequestStop(run_id=held.run_id, **world.base())


def left(world, held):
    """Its lease runs out, as when its worker died."""
    world.set_run(held.run_id, expires_us=1)


def test_a1_claimed_and_start_not_sent_is_starting(world):
    held = world.claimed()
    assert shown(world, held.run_id) == "starting"
    assert shown(world, world.activated(held).run_id) == "starting"
    assert world.attempt(held.attempt_id)["start_requested_us"] is None
    world.commit(world.renew(held))  # a heartbeat is no proof
    assert shown(world, held.run_id) == "starting"


def test_a2_accepted_without_activity_is_waiting_for_its_runtime(world):
    held = started(world)
    world.commit(report(world, held, Observed.ACCEPTED))
    assert (shown(world, held.run_id), world.run(held.run_id)["status"]) == ("waiting_runtime", "dispatching")
    world.commit(world.renew(held))
    assert shown(world, held.run_id) == "waiting_runtime"


def test_a3_when_the_answer_to_the_start_is_lost_it_is_unknown_and_never_delivered_again(world):
    held = started(world)
    with world.nothing_written(), pytest.raises(IllegalTransition):
        world.commit(ReleaseClaim(**world.of_lease(held)))  # it cannot be put back
    left(world, held)
    assert shown(world, held.run_id) == "unknown"  # also before anybody has looked after it
    world.commit(MarkLost(run_id=held.run_id, **world.base()))
    assert (shown(world, held.run_id), world.run(held.run_id)["status"]) == ("unknown", "lost")
    behind = world.queued()
    world.refused(world.claim_run(behind), NothingToClaim)  # it holds its thread
    assert look(world.engine) == []
    world.commit(world.claim_run(held.run_id))
    assert world.attempt(held.attempt_id)["status"] == "lost"  # what follows is another attempt


def test_a4_the_first_report_makes_it_running_with_time_and_sequence(world):
    held = started(world)
    world.commit(world.renew(held))
    assert shown(world, held.run_id) == "starting"
    world.commit(report(world, held))
    attempt = world.attempt(held.attempt_id)
    assert (shown(world, held.run_id), attempt["observed_state"], attempt["last_event_seq"]) == (
        "running",
        "running",
        1,
    )
    assert attempt["observed_us"] >= attempt["start_requested_us"]


def test_a6_cancelled_before_its_start_it_is_cancelled_at_once(world):
    queued = world.queued("one")
    claimed = world.claimed("two")
    for run_id in (queued, claimed.run_id):
        world.commit(RequestStop(run_id=run_id, **world.base()))
        assert (shown(world, run_id), world.run(run_id)["phase"]) == ("cancelled", "released")
    world.refused(RequestStart(attempt_id=claimed.attempt_id, **world.of_lease(claimed)), LeaseReleased)


def test_a7_cancelled_after_its_start_it_is_cancelling_until_it_is_proved_to_have_stopped(world):
    held = started(world)
    world.commit(stop(world, held))
    assert shown(world, held.run_id) == "cancelling"
    world.commit(report(world, held))  # it runs: still no proof that it stopped
    assert shown(world, held.run_id) == "cancelling"
    world.refused(world.begin(held), RunStopping)
    assert "run.cancelled" not in world.events(held.run_id)


def test_a8_left_before_its_start_it_is_queued_with_the_same_attempt_and_no_retry_counted(world):
    held = world.claimed()
    left(world, held)
    assert shown(world, held.run_id) == "queued"
    taken = world.commit(world.claim_run(held.run_id)).result
    run = world.run(held.run_id)
    assert (taken["attempt_id"], taken["takeover"]) == (held.attempt_id, False)
    assert (run["attempt_no"], run["failures"], run["takeovers"]) == (1, 0, 0)
    assert world.count("rp_attempts") == 1


def test_a9_left_after_its_start_it_is_unknown_and_neither_failed_nor_queued(world):
    for held in (started(world), world.owned("other")):
        left(world, held)
        assert shown(world, held.run_id) == "unknown"
        world.commit(MarkLost(run_id=held.run_id, **world.base()))
        run = world.run(held.run_id)
        assert (run["status"], run["failures"], run["finished_us"]) == ("lost", 0, None)
        assert world.events(held.run_id)[-2:] == ["attempt.lost", "run.lost"]


def test_a10_a_proved_failure_ends_its_attempt_and_the_next_one_is_another_row(world):
    policy = '{"backoff":0.0,"backoff_max":300.0,"factor":2.0,"jitter":0.0,"max_attempts":2,"max_takeovers":3}'
    held = world.activated(world.claimed(retry_policy=policy))
    world.commit(RequestStart(attempt_id=held.attempt_id, **world.of_lease(held)))
    world.commit(report(world, held))
    world.commit(world.fail_attempt(held))
    before = world.attempt(held.attempt_id)
    assert (before["status"], world.run(held.run_id)["status"]) == ("failed", "retry_wait")
    taken = world.commit(world.claim_run(held.run_id)).result
    assert taken["attempt_id"] != held.attempt_id
    assert world.attempt(taken["attempt_id"])["previous_attempt_id"] == held.attempt_id
    assert world.attempt(held.attempt_id) == before


@pytest.fixture
def bound(runtime):
    runtime.bind(chain({"node": says("x"), "after": says("y")}), name="g")
    return runtime


@pytest.fixture
def cli(shared_url):
    def runs(*arguments):
        environment = {"RUNTIME_PERSIST_URL": shared_url, "COLUMNS": "250"}
        done = CliRunner().invoke(main, arguments, env=environment, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    return runs


def test_a11_reading_changes_nothing_whatever_is_read(bound, shared_url, fork, raw, cli):
    child = fork(programs.worker, shared_url)
    run = bound.runs.start("g", {"log": []}, thread_id="t")
    child.until("in node")
    child.kill()
    bound.runs.start("g", {"log": []}, thread_id="t")
    raw.rows("UPDATE rp_runs SET expires_us = 1 WHERE phase <> 'released'")
    before = raw.dump()
    for _ in range(2):
        assert run.record().shown == "unknown"
        bound.runs.list()
        bound.runs.question(run.run_id)
        with pytest.raises(RuntimeError):
            run.result(timeout=0)
        list(run.events())
        flow(load_bundle(bound.engine, bound.checkpointer.serde, run.run_id))
        for command in (("run", "list"), ("run", "show", run.run_id), ("run", "why", run.run_id)):
            cli(*command)
        cli("inspect", run.run_id)
    assert raw.dump() == before


def test_a12_every_view_shows_the_same_state(bound, shared_url, fork, raw, cli):
    child = fork(programs.worker, shared_url)
    first = bound.runs.start("g", {"log": []}, thread_id="t")
    child.until("in node")
    second = bound.runs.start("g", {"log": []}, thread_id="t")

    def everywhere(run, expected):
        assert run.record().shown == expected
        assert {one.run_id: one.shown for one in bound.runs.list()}[run.run_id] == expected
        listed = json.loads(cli("run", "list", "--json"))
        assert {one["run_id"]: one["shown"] for one in listed}[run.run_id] == expected
        assert json.loads(cli("run", "show", run.run_id, "--json"))["shown"] == expected
        assert json.loads(cli("run", "why", run.run_id, "--json"))["shown"] == expected
        assert flow(load_bundle(bound.engine, bound.checkpointer.serde, run.run_id)).run.shown == expected

    everywhere(first, "running")
    everywhere(second, "queued")
    first.cancel()
    everywhere(first, "cancelling")
    child.kill()
    raw.rows("UPDATE rp_runs SET expires_us = 1 WHERE phase <> 'released'")
    everywhere(first, "unknown")
    first.cancel()  # nobody holds it: it is taken over, only to end it
    everywhere(first, "cancelled")
