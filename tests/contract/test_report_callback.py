import dataclasses

import pytest

from runtime_persist.commands.mark_lost import MarkLost
from runtime_persist.commands.request_stop import RequestStop
from runtime_persist.errors import CallbackRefused, ReportIgnored, RunNotFound
from runtime_persist.model.retry import RetryPolicy
from tests.fixtures.contracts import Receipt, changed
from tests.fixtures.remote import TOKEN_TTL_US, report, started
from tests.fixtures.world import TTL_US

LATE = "attempt.late_callback_ignored"


@pytest.fixture
def begun(world):
    """(lease, hash of the token) of a run that its runtime reported as running."""
    held, token_hash = started(world)
    world.commit(report(world, held, token_hash, "running", 1))
    return held, token_hash


def lose(world, held):
    world.expire(held)
    world.commit(MarkLost(run_id=held.run_id, **world.base()))
    assert world.run(held.run_id)["status"] == "lost"


def late(world, held):
    return [event for event in world.events(held.run_id) if event == LATE]


class TestReceipt(Receipt):
    def make(self, world):
        return report(world, *started(world), "running", 1)

    def other(self, world, command):
        return changed(command, sequence=2)


def test_it_is_the_same_report_whatever_was_drawn_for_it(world, begun):
    command = report(world, *begun, "failed", 2, error_code="E", chance=0.1)
    world.commit(command)
    assert world.commit(changed(command, chance=0.9, ttl_us=5)).replayed


def test_a_report_of_running_needs_no_lease_and_keeps_it(world):
    held, token_hash = started(world)
    world.set_run(held.run_id, expires_us=world.run(held.run_id)["expires_us"] - TTL_US + 5_000_000)
    before = world.run(held.run_id)["expires_us"]
    command = report(world, held, token_hash, "running", 3, ttl_us=TTL_US, callback_ttl_us=2 * TOKEN_TTL_US)
    answer = world.commit(command).result
    assert answer == {"accepted": True, "status": "running", "last_sequence": 3}
    run, attempt = world.run(held.run_id), world.attempt(held.attempt_id)
    assert (run["phase"], run["epoch"]) == ("active", held.epoch)
    assert run["expires_us"] > before
    assert attempt["callback_expires_us"] > attempt["claimed_us"] + TOKEN_TTL_US * 3 // 2
    assert (attempt["status"], attempt["observed_state"], attempt["last_event_seq"]) == ("running", "running", 3)
    assert world.events(held.run_id)[-2:] == ["attempt.running", "run.running"]


@pytest.mark.parametrize("observed", ["succeeded", "cancelled"])
@pytest.mark.parametrize("first", [[], ["accepted"], ["running"]])
def test_an_end_counts_whatever_was_reported_before(world, observed, first):
    held, token_hash = started(world)
    for sequence, state in enumerate(first, 1):
        world.commit(report(world, held, token_hash, state, sequence))
    data, blobs = world.payload() if observed == "succeeded" else (None, ())
    world.commit(report(world, held, token_hash, observed, 9, result=data, blobs=blobs))
    run, attempt = world.run(held.run_id), world.attempt(held.attempt_id)
    assert (run["status"], run["phase"], run["result"]) == (observed, "released", data)
    assert (attempt["status"], attempt["observed_state"], attempt["sync_state"]) == (observed, observed, "in_sync")
    assert world.thread_row()["owner_run_id"] is None


def test_a_failure_consumes_an_attempt_of_the_policy(world):
    policy = RetryPolicy(max_attempts=2, backoff=60).encoded()
    held, token_hash = started(world, retry_policy=policy)
    command = report(world, held, token_hash, "failed", 1, error_code="OUT_OF_MEMORY", error_summary="no luck")
    assert world.commit(command).result["status"] == "retry_wait"
    run, attempt = world.run(held.run_id), world.attempt(held.attempt_id)
    assert (run["failures"], run["phase"], attempt["status"]) == (1, "released", "failed")
    assert (attempt["error_code"], attempt["error_summary"]) == ("OUT_OF_MEMORY", "no luck")


def test_a_failure_that_would_repeat_is_final(world):
    held, token_hash = started(world, retry_policy=RetryPolicy(max_attempts=5).encoded())
    command = report(world, held, token_hash, "failed", 1, error_code="BAD", repeatable=False)
    assert world.commit(command).result["status"] == "failed"


def test_a_stopped_run_ends_as_it_was_stopped_and_keeps_what_its_code_returned(world, begun):
    held, token_hash = begun
    world.commit(RequestStop(run_id=held.run_id, **world.base()))
    data, blobs = world.payload()
    world.commit(report(world, held, token_hash, "succeeded", 2, result=data, blobs=blobs))
    run, attempt = world.run(held.run_id), world.attempt(held.attempt_id)
    assert (run["status"], run["observed_state"], run["result"]) == ("cancelled", "succeeded", data)
    assert (attempt["status"], attempt["sync_state"]) == ("cancelled", "diverged")


@pytest.mark.parametrize("sequence", [1, 4, 5])
def test_a_duplicate_or_overtaken_report_changes_nothing_anywhere(world, begun, sequence):
    held, token_hash = begun
    world.commit(report(world, held, token_hash, "running", 5))
    world.refused(report(world, held, token_hash, "succeeded", sequence), ReportIgnored)


def test_one_small_event_tells_of_reports_that_came_too_late(world, begun):
    held, token_hash = begun
    world.commit(report(world, held, token_hash, "succeeded", 2))
    before = {key: world.run(held.run_id)[key] for key in ("status", "result", "finished_us", "observed_state")}
    attempt = world.attempt(held.attempt_id)
    answer = world.commit(report(world, held, token_hash, "failed", 3, error_code="E")).result
    assert (answer["accepted"], answer["status"]) == (False, "succeeded")
    assert late(world, held) == [LATE]
    assert world.attempt(held.attempt_id) == attempt
    assert {key: world.run(held.run_id)[key] for key in before} == before
    error = world.refused(report(world, held, token_hash, "cancelled", 4), ReportIgnored)
    assert error.details["reason"] == "late"


@pytest.mark.parametrize("observed", ["accepted", "running"])
def test_a_lost_attempt_stays_lost_and_what_is_seen_of_it_is_kept(world, begun, observed):
    held, token_hash = begun
    lose(world, held)
    assert world.attempt(held.attempt_id)["sync_state"] == "stale"
    world.commit(report(world, held, token_hash, observed, 2, ttl_us=TTL_US))
    run, attempt = world.run(held.run_id), world.attempt(held.attempt_id)
    assert (attempt["status"], attempt["last_event_seq"], attempt["sync_state"]) == ("lost", 2, "in_sync")
    assert run["status"] == ("running" if observed == "running" else "lost")


def test_a_lost_run_that_is_seen_running_runs_under_its_old_epoch_again(world, begun):
    held, token_hash = begun
    lose(world, held)
    world.commit(report(world, held, token_hash, "running", 2, ttl_us=TTL_US))
    run = world.run(held.run_id)
    assert (run["status"], run["phase"], run["epoch"]) == ("running", "active", held.epoch)
    assert world.events(held.run_id)[-2:] == ["run.reconciled", "run.running"]
    world.commit(world.renew(held))


@pytest.mark.parametrize("observed", ["succeeded", "failed", "cancelled"])
def test_a_lost_run_of_which_the_end_is_reported_ends(world, begun, observed):
    held, token_hash = begun
    lose(world, held)
    world.commit(report(world, held, token_hash, observed, 2, error_code="E"))
    assert world.run(held.run_id)["status"] == observed
    assert world.attempt(held.attempt_id)["status"] == "lost"
    assert world.thread_row()["owner_run_id"] is None


def test_a_lost_run_that_somebody_took_over_is_not_given_back(world, begun):
    held, token_hash = begun
    lose(world, held)
    claim = world.claim_run(held.run_id, held.thread_id)
    world.commit(claim)
    answer = world.commit(report(world, held, token_hash, "succeeded", 2)).result
    assert (answer["accepted"], answer["status"]) == (False, "lost")
    assert world.run(held.run_id)["epoch"] == held.epoch + 1
    assert late(world, held) == [LATE]


def test_a_run_that_came_back_and_fell_silent_is_taken_over_as_lost(world, begun):
    held, token_hash = begun
    lose(world, held)
    world.commit(report(world, held, token_hash, "running", 2, ttl_us=TTL_US))
    world.expire(held)
    world.commit(MarkLost(run_id=held.run_id, **world.base()))
    assert world.run(held.run_id)["status"] == "lost"
    world.commit(report(world, held, token_hash, "running", 3, ttl_us=TTL_US))
    world.expire(held)
    claim = world.claim_run(held.run_id, held.thread_id)
    assert world.commit(claim).result["takeover"] is True
    assert world.run(held.run_id)["status"] == "lost"


@pytest.mark.parametrize(
    "wrong",
    [{"token_hash": b"x" * 32}, {"token_hash": b""}, {"attempt_id": "another"}],
    ids=["hash", "none", "attempt"],
)
def test_a_token_that_is_not_the_attempts_is_refused(world, begun, wrong):
    world.refused(changed(report(world, *begun, "succeeded", 2), **wrong), CallbackRefused)


def test_a_token_of_another_run_is_refused(world, begun):
    _, token_hash = begun
    other, _ = started(world, thread_id="other")
    command = report(world, other, token_hash, "succeeded", 2)
    world.refused(command, CallbackRefused)
    mixed = dataclasses.replace(command, attempt_id=begun[0].attempt_id)
    world.refused(mixed, CallbackRefused)


def test_an_expired_token_is_refused(world, begun):
    held, token_hash = begun
    world.raw.rows("UPDATE rp_attempts SET callback_expires_us = 1")
    world.refused(report(world, held, token_hash, "succeeded", 2), CallbackRefused)


def test_an_attempt_without_a_token_takes_no_report(world):
    held = world.owned()
    world.refused(report(world, held, b"", "succeeded", 2), CallbackRefused)


def test_an_unknown_run_is_refused(world, begun):
    world.refused(changed(report(world, *begun, "succeeded", 2), run_id="nobody"), RunNotFound)
