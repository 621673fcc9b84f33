"""The rows of the kill matrix: every scenario, and the commands that have none, with the reason."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from runtime_persist.commands.activate_lease import ActivateLease
from runtime_persist.commands.continue_owned_run import ContinueOwnedRun
from runtime_persist.commands.fail_attempt import FailAttempt
from runtime_persist.commands.finalize_run import FinalizeRun
from runtime_persist.commands.mark_lost import MarkLost
from runtime_persist.commands.put_thread_writes import PutThreadWrites
from runtime_persist.commands.release_claim import ReleaseClaim
from runtime_persist.commands.report_attempt_event import ReportAttemptEvent
from runtime_persist.commands.request_start import RequestStart
from runtime_persist.commands.start_run import StartRun
from runtime_persist.engine import OwnedRun, ownership, run
from runtime_persist.model.ids import new_id
from runtime_persist.model.lease import EMPTY_DOMAIN_SET
from runtime_persist.model.retry import NO_RETRY, RetryPolicy
from runtime_persist.testing.faults import Cut
from tests.faults import acts, scenarios
from tests.faults.control import CONTROL
from tests.faults.kit import Stage
from tests.faults.scenarios import Prepared, Scenario

__all__ = ["NOT_KILLED", "SCENARIOS", "marks"]

NO_ATTEMPT = "a run that was never dispatched has no attempt"
FIRST_ATTEMPT = "this situation makes the attempt, it does not change one"
FRESH_THREAD = "the thread has no other run"
NOT_PAST_FENCE = "only a run past its start fence is taken over"


# --- hot ------------------------------------------------------------------------------------------------------------


def a_checkpoint(stage: Stage) -> Prepared:
    owned = acts.own(stage)
    first = acts.checkpoint(stage, owned, None)
    acts.commit(stage, first)
    return Prepared(acts.checkpoint(stage, owned, first.row.checkpoint_id))


def a_first_checkpoint(stage: Stage) -> Prepared:
    return Prepared(acts.checkpoint(stage, acts.own(stage), None))


def some_writes(stage: Stage) -> Prepared:
    return Prepared(acts.task_writes(stage, acts.own(stage)))


def an_operation(stage: Stage) -> Prepared:
    return Prepared(acts.begin(stage, acts.own(stage)))


def an_outcome(stage: Stage) -> Prepared:
    owned = acts.own(stage)
    begin = acts.begin(stage, owned)
    acts.commit(stage, begin)
    return Prepared(acts.complete(stage, owned, begin.operation_id), {"begin": begin})


def a_second_try(stage: Stage) -> Prepared:
    owned = acts.own(stage)
    begin = acts.begin(stage, owned)
    acts.commit(stage, begin)
    return Prepared(acts.start_try(stage, owned, begin.operation_id, 2))


def a_first_put(stage: Stage) -> Prepared:
    acts.finish(stage, acts.own(stage))  # there is a thread, without a checkpoint
    return Prepared(acts.put(stage, None))


def a_later_put(stage: Stage) -> Prepared:
    first = acts.put(stage, None)
    acts.commit(stage, first)
    return Prepared(acts.put(stage, first.row.checkpoint_id))


def some_put_writes(stage: Stage) -> Prepared:
    acts.commit(stage, acts.put(stage, None))
    return Prepared(PutThreadWrites(given=acts.given(stage), **acts.thread(stage)))


HOT = (
    Scenario("commit_workflow_checkpoint:next", a_checkpoint, scenarios.same_checkpoint, scenarios.checkpoints),
    Scenario("commit_workflow_checkpoint:first", a_first_checkpoint, scenarios.same_checkpoint, scenarios.checkpoints),
    Scenario("commit_workflow_task_writes", some_writes, scenarios.same_writes, scenarios.writes),
    Scenario("begin_operation", an_operation, scenarios.same_operation, scenarios.begun),
    Scenario("complete_operation", an_outcome, scenarios.same_outcome, scenarios.completed),
    Scenario("start_attempt", a_second_try, scenarios.same_try, scenarios.second_try),
    Scenario("put_thread_checkpoint:first", a_first_put, scenarios.same_put, scenarios.checkpoints),
    Scenario("put_thread_checkpoint:next", a_later_put, scenarios.same_put, scenarios.checkpoints),
    Scenario("put_thread_writes", some_put_writes, scenarios.same_put, scenarios.writes),
)


# --- claim and takeover ---------------------------------------------------------------------------------------------


def a_claim(stage: Stage, run_id: str, epoch: int, *, takeover: bool) -> Prepared:
    facts = {"run_id": run_id, "epoch": epoch, "takeover": takeover}
    return Prepared(acts.claim_command(stage, run_id), facts)


def of_a_queued_run(stage: Stage) -> Prepared:
    return a_claim(stage, acts.queue(stage), 0, takeover=False)


def of_a_claimed_run(stage: Stage) -> Prepared:
    """Its worker died before the start fence."""
    run_id = acts.queue(stage)
    acts.claim(stage, run_id)
    stage.expire(run_id)
    return a_claim(stage, run_id, 1, takeover=False)


def left(stage: Stage) -> str:
    """A run whose worker died in the middle of an operation, behind a checkpoint."""
    owned = acts.own(stage)
    acts.commit(stage, acts.checkpoint(stage, owned, None))
    acts.commit(stage, acts.begin(stage, owned))
    stage.expire(owned.lease.run_id)
    return owned.lease.run_id


def of_a_started_run(stage: Stage) -> Prepared:
    return a_claim(stage, left(stage), 1, takeover=True)


def taken_and_left(stage: Stage) -> str:
    """A run whose takeover died between its activation and its start fence."""
    run_id = left(stage)
    owned = acts.claim(stage, run_id)
    fields = {"revocation": EMPTY_DOMAIN_SET, "attempt_id": new_id()}
    acts.commit(stage, ActivateLease(**fields, **acts.leased(stage, owned)))
    stage.expire(run_id)
    return run_id


def of_an_activated_run(stage: Stage) -> Prepared:
    return a_claim(stage, taken_and_left(stage), 2, takeover=True)


def a_step(stage: Stage, owned: OwnedRun, command: type[Any], **fields: Any) -> Prepared:
    facts = {"run_id": owned.lease.run_id}
    return Prepared(command(**fields, **acts.leased(stage, owned)), facts)


def activation(stage: Stage, run_id: str) -> Prepared:
    owned = acts.claim(stage, run_id)
    return a_step(stage, owned, ActivateLease, revocation=EMPTY_DOMAIN_SET, attempt_id=new_id())


def activated(stage: Stage) -> OwnedRun:
    owned = acts.claim(stage, acts.queue(stage))
    fields = {"revocation": EMPTY_DOMAIN_SET, "attempt_id": new_id()}
    acts.commit(stage, ActivateLease(**fields, **acts.leased(stage, owned)))
    return owned


def a_start(stage: Stage) -> Prepared:
    owned = activated(stage)
    return a_step(stage, owned, RequestStart, attempt_id=owned.lease.attempt_id)


def a_release(stage: Stage) -> Prepared:
    return a_step(stage, acts.claim(stage, acts.queue(stage)), ReleaseClaim)


def a_loss(stage: Stage) -> Prepared:
    run_id = left(stage)
    return Prepared(MarkLost(run_id=run_id, space=stage.engine.space, command_id=new_id()), {"run_id": run_id})


def a_report(stage: Stage) -> Prepared:
    owned = activated(stage)
    attempt = {"attempt_id": owned.lease.attempt_id}
    acts.commit(stage, RequestStart(**attempt, **acts.leased(stage, owned)))
    return a_step(stage, owned, ReportAttemptEvent, **attempt)


def claims(name: str, prepare: Any, never: dict[str, str]) -> Scenario:
    return Scenario(f"claim_run:{name}", prepare, scenarios.claimed_again, scenarios.receipts, never)


def step(name: str, prepare: Any, never: dict[str, str] | None = None) -> Scenario:
    return Scenario(name, prepare, scenarios.step_again, scenarios.receipts, never or {})


CLAIM = (
    claims(
        "queued",
        of_a_queued_run,
        {"read_attempt": NO_ATTEMPT, "save_attempt": FIRST_ATTEMPT, "read_progress": NOT_PAST_FENCE},
    ),
    claims(
        "claimed",
        of_a_claimed_run,
        {"insert_attempt": "the attempt that was never started is claimed again", "read_progress": NOT_PAST_FENCE},
    ),
    claims(
        "started",
        of_a_started_run,
        {"insert_attempt": "the takeover's attempt is made when the lease is activated"},
    ),
    claims(
        "activated",
        of_an_activated_run,
        {"insert_attempt": "the takeover's attempt, which was never started, is claimed again"},
    ),
    step(
        "activate_lease:queued",
        lambda stage: activation(stage, acts.queue(stage)),
        {"insert_attempt": "the claim of a queued run has made the attempt"},
    ),
    step("activate_lease:started", lambda stage: activation(stage, left(stage))),
    step("request_start", a_start),
    step("report_attempt_event", a_report),
    step("release_claim", a_release),
    step("mark_lost", a_loss),
)


# --- the run's beginning and end ------------------------------------------------------------------------------------


def an_end(stage: Stage) -> Prepared:
    owned = acts.own(stage)
    data, blobs = ownership.encode(stage.engine, acts.SERDE, acts.large(stage, "result"))
    fields = {"run_id": owned.lease.run_id, "epoch": owned.lease.epoch}
    command = FinalizeRun.succeeded(result=data, owner=stage.engine.owner, blobs=blobs, **fields, **acts.thread(stage))
    return Prepared(command, {"status": "succeeded"})


def a_failure(policy: RetryPolicy) -> Callable[[Stage], Prepared]:
    """The attempt of a run with this policy failed."""

    def prepare(stage: Stage) -> Prepared:
        asked = replace(acts.request(stage), retry_policy=policy.encoded())
        owned = run(ownership.start(stage.engine, acts.SERDE, asked, stage.thread_id))
        stage.engine.heartbeats.remove(owned)
        command = FailAttempt(
            run_id=owned.lease.run_id,
            epoch=owned.lease.epoch,
            error_code="ValueError",
            error_summary="no luck",
            **acts.thread(stage),
        )
        return Prepared(command, {"run_id": owned.lease.run_id})

    return prepare


def a_fresh_start(stage: Stage) -> Prepared:
    return Prepared(acts.start_owned(stage))


def a_superseding_start(stage: Stage) -> Prepared:
    left(stage)
    return Prepared(acts.start_owned(stage))


def a_start_behind_a_takeover(stage: Stage) -> Prepared:
    taken_and_left(stage)
    return Prepared(acts.start_owned(stage))


def a_continuation(stage: Stage) -> Prepared:
    left(stage)
    return continuation(stage)


def a_continued_takeover(stage: Stage) -> Prepared:
    taken_and_left(stage)
    return continuation(stage)


def continuation(stage: Stage) -> Prepared:
    data, blobs = ownership.encode(stage.engine, acts.SERDE, acts.large(stage, "answer"))
    command = ContinueOwnedRun(
        graph=acts.GRAPH,
        worker_id="victim",
        attempt_id=new_id(),
        ttl_us=stage.engine.ttl_us,
        answer=data,
        owner=stage.engine.owner,
        blobs=blobs,
        **acts.thread(stage),
    )
    return Prepared(command)


def a_request(stage: Stage, **facts: Any) -> Prepared:
    asked = acts.request(stage, acts.large(stage, "input"))
    return Prepared(StartRun(request=asked, **acts.thread(stage)), facts)


def behind_another(stage: Stage) -> Prepared:
    return a_request(stage, behind=[acts.own(stage).lease.run_id])


def continues(name: str, prepare: Any) -> Scenario:
    never = {"read_last_run": "read only to explain the refusal that there is no open run"}
    return Scenario(f"continue_owned_run:{name}", prepare, scenarios.started_again, scenarios.receipts, never)


def is_tried_again(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """The next attempt is due at once; it takes over nothing, and one retry was consumed."""
    assert scenarios.again(stage, prepared, committed).result["status"] == "retry_wait"
    owned = acts.claim(stage, prepared.facts["run_id"])
    acts.activate(owned)
    acts.finish(stage, owned)
    causes = [row["cause"] for row in sorted(acts.rows(stage)["attempts"], key=lambda row: row["attempt_no"])]
    assert causes == ["initial", "retry"]
    assert [(row["failures"], row["takeovers"]) for row in acts.rows(stage)["runs"]] == [(1, 0)]


def has_failed(stage: Stage, prepared: Prepared, committed: bool) -> None:
    assert scenarios.again(stage, prepared, committed).result["status"] == "failed"
    assert [row["owner_run_id"] for row in acts.check(stage)["threads"]] == [None]


LIFE = (
    Scenario(
        "fail_attempt:again",
        a_failure(RetryPolicy(backoff=0)),
        is_tried_again,
        scenarios.receipts,
        {"save_thread": "a run that is tried again keeps its thread"},
    ),
    Scenario("fail_attempt:final", a_failure(NO_RETRY), has_failed, scenarios.receipts),
    Scenario("finalize_run", an_end, scenarios.ended_again, scenarios.receipts),
    Scenario(
        "start_owned_run:fresh",
        a_fresh_start,
        scenarios.started_again,
        scenarios.receipts,
        {
            "lock_run": FRESH_THREAD,
            "read_attempt": FRESH_THREAD,
            "save_run": FRESH_THREAD,
            "save_attempt": FRESH_THREAD,
            "mark_tries_unknown": FRESH_THREAD,
        },
    ),
    Scenario("start_owned_run:superseding", a_superseding_start, scenarios.started_again, scenarios.receipts),
    Scenario(
        "start_owned_run:takeover",
        a_start_behind_a_takeover,
        scenarios.started_again,
        scenarios.receipts,
    ),
    continues("started", a_continuation),
    continues("activated", a_continued_takeover),
    Scenario("start_run:fresh", a_request, scenarios.queued_again, scenarios.receipts, {"lock_run": FRESH_THREAD}),
    Scenario("start_run:behind", behind_another, scenarios.queued_again, scenarios.receipts),
)

REQUIRED = (*HOT, *CLAIM)
SCENARIOS = (*REQUIRED, *LIFE, *CONTROL)
NOT_KILLED = {
    "renew_lease": "it leaves no receipt, and sending it again only extends the lease again",
    "store_content": "it leaves no receipt, no row refers to what it stores, and sending it again stores the rest; its "
    "caller is killed between two of them (tests/saver/test_large_content.py)",
}


def marks(scenario: Scenario, cut: Cut) -> list[pytest.MarkDecorator]:
    """The replies lost in the middle of a transaction are all alike: beside claim and takeover, only the full run."""
    in_the_middle = cut.how == "reply_lost" and not scenario.hot and cut.statement != "commit"
    return [pytest.mark.exhaustive] if in_the_middle and scenario not in REQUIRED else []
