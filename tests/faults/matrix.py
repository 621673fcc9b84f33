"""The rows of the kill matrix: every scenario, and the commands that have none, with the reason."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from runtime_persist.commands.continue_owned_run import ContinueOwnedRun
from runtime_persist.commands.fail_attempt import FailAttempt
from runtime_persist.commands.finalize_run import FinalizeRun
from runtime_persist.commands.parts.receipts import WRITE_RECEIPT
from runtime_persist.commands.put_thread_writes import PutThreadWrites
from runtime_persist.commands.start_run import StartRun
from runtime_persist.engine import ownership, payloads, run
from runtime_persist.model.ids import new_id
from runtime_persist.model.retry import NO_RETRY, RetryPolicy
from runtime_persist.plan import Query
from runtime_persist.testing.cuts import Cut, queries_of
from tests.faults import acts, scenarios
from tests.faults.budgets import BUDGETS, retries_nothing
from tests.faults.claims import CLAIM, NOT_PAST_FENCE, PLACES_HELD, left, taken_and_left
from tests.faults.control import CONTROL, waiting
from tests.faults.domains import DOMAINS, DOMAINS_ALIKE, without_domains
from tests.faults.journal import JOURNAL
from tests.faults.kit import Stage
from tests.faults.protocol import PROTOCOL
from tests.faults.requests import ALIKE, NOTHING_ASKED, REQUESTS, as_it_is
from tests.faults.scenarios import Prepared, Scenario

__all__ = ["NOT_KILLED", "SCENARIOS", "marks"]

FRESH_THREAD = "the thread has no other run"


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
    Scenario(
        "put_thread_checkpoint:next",
        a_later_put,
        scenarios.same_put,
        scenarios.checkpoints,
        {"new_head": "the namespace has a head"},
    ),
    Scenario("put_thread_writes", some_put_writes, scenarios.same_put, scenarios.writes),
)


# --- the run's beginning and end ------------------------------------------------------------------------------------


def an_end(stage: Stage) -> Prepared:
    owned = acts.own(stage)
    data, blobs = payloads.encode(stage.engine, acts.SERDE, acts.large(stage, "result"))
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
    data, blobs = payloads.encode(stage.engine, acts.SERDE, acts.large(stage, "answer"))
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


def an_answered_question(stage: Stage) -> Prepared:
    waiting(stage)
    return continuation(stage)


def continues(name: str, prepare: Any, never: dict[str, str]) -> Scenario:
    said = {"read_last_run": "read only to explain the refusal that there is no open run"} | never
    return Scenario(f"continue_owned_run:{name}", prepare, scenarios.started_again, scenarios.receipts, said)


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
    continues("started", a_continuation, PLACES_HELD),
    continues("activated", a_continued_takeover, PLACES_HELD),
    continues(
        "waiting",
        an_answered_question,
        {"save_attempt": "the attempt that asked has ended", "read_progress": NOT_PAST_FENCE},
    ),
    Scenario(
        "start_run:fresh",
        a_request,
        scenarios.queued_again,
        scenarios.receipts,
        {"lock_run": FRESH_THREAD, **NOTHING_ASKED},
    ),
    Scenario("start_run:behind", behind_another, scenarios.queued_again, scenarios.receipts, NOTHING_ASKED),
)

REQUIRED = (*HOT, *CLAIM)
SCENARIOS = tuple(
    without_domains(as_it_is(retries_nothing(one)))
    for one in (*REQUIRED, *LIFE, *JOURNAL, *BUDGETS, *PROTOCOL, *CONTROL, *REQUESTS, *DOMAINS)
)
NOT_KILLED = {
    "import_bundle": "its rows are of a space of their own, which nobody can open before its last page; an importing "
    "process is killed between pages, and a page is one transaction (tests/bundles/test_import.py)",
    "renumber_events": "no kill reaches it: positions of another server come out of a restored dump only; it is one "
    "transaction, and sent again it finds nothing (tests/contract/test_renumber_events.py)",
    "report_instance": "its row is its receipt, nothing else is written, and the next report replaces it",
    "ack_events": "it is one statement on one row, which is its receipt; consumers are killed between delivery and "
    "acknowledgement (tests/events/test_outbox.py)",
    "renew_lease": "it leaves no receipt, and sending it again only extends the lease again",
    "note_attempt": "it leaves no receipt, it is one statement on one row, and sending it again writes the same",
    "store_content": "it leaves no receipt, no row refers to what it stores, and sending it again stores the rest; its "
    "caller is killed between two of them (tests/saver/test_large_content.py)",
}


# Statements are shared by the scenarios of a command: who reaches each of them first.
_REACHED_BY: dict[tuple[str, str], Scenario] = {}
for _one in SCENARIOS:
    for _query in () if _one.hot else queries_of(_one.spec):
        if _query.name not in _one.never:
            _REACHED_BY.setdefault((_one.spec.name, _query.name), _one)


def _goes_with_the_receipt(scenario: Scenario, cut: Cut) -> bool:
    """Whether the statement is a part of the exchange that has the receipt: there is nothing between the two."""
    return cut.statement != WRITE_RECEIPT.name and any(
        query.name == cut.statement and isinstance(query, Query) and query.row is not None
        for query in queries_of(scenario.spec)
    )


def marks(scenario: Scenario, cut: Cut) -> list[pytest.MarkDecorator]:
    """What only the full run does on PostgreSQL, beside claim and takeover, which are always killed everywhere.

    The replies lost in the middle of a transaction are all alike: it is rolled back. So are the statements that are
    not sent there: each is killed in one of its command's scenarios (on SQLite, in all of them). And what goes with
    the receipt in one exchange is killed with it.
    """
    if scenario.name in ALIKE | DOMAINS_ALIKE or (not scenario.hot and _goes_with_the_receipt(scenario, cut)):
        return [pytest.mark.exhaustive]
    if scenario.hot or cut.statement in {"begin", "commit"} or scenario in REQUIRED:
        return []
    elsewhere = _REACHED_BY[scenario.spec.name, cut.statement] is not scenario
    return [pytest.mark.exhaustive] if cut.how == "reply_lost" or elsewhere else []
