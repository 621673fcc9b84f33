"""The rows of the kill matrix for runs that replace, fork or retry others."""

from dataclasses import replace
from typing import Any

from runtime_persist.commands.fail_attempt import FailAttempt
from runtime_persist.commands.finalize_run import FinalizeRun
from runtime_persist.commands.fork_run import ForkRun
from runtime_persist.commands.parts import rolling_back
from runtime_persist.commands.parts.spec import ColdCommand
from runtime_persist.commands.request_stop import RequestStop
from runtime_persist.commands.retry_run import RetryRun
from runtime_persist.commands.start_run import StartRun
from runtime_persist.engine import OwnedRun, payloads, run, settling
from runtime_persist.model.ids import new_id
from runtime_persist.model.states import OnBusy
from tests.faults import acts, scenarios
from tests.faults.kit import Stage
from tests.faults.scenarios import Prepared, Scenario

ROLLS_BACK = "rolled_back"
NOT_ROLLED_BACK = "the run is not one that is rolled back"


def as_it_is(scenario: Scenario) -> Scenario:
    """A scenario whose run is not rolled back says so: four commands can roll one back."""
    spec = scenario.spec
    if (
        not isinstance(spec, ColdCommand)
        or rolling_back.READ_BEGINNING not in spec.statements
        or ROLLS_BACK in scenario.name
    ):
        return scenario
    never = {query.name: NOT_ROLLED_BACK for query in rolling_back.STATEMENTS}
    return replace(scenario, never=never | scenario.never)


# --- before the kill ------------------------------------------------------------------------------------------------


def begun(stage: Stage) -> tuple[str, OwnedRun]:
    """A thread with a checkpoint, and a run that has stored another one on top of it, and writes."""
    first = acts.put(stage, None)
    acts.commit(stage, first)
    owned = acts.own(stage)
    acts.commit(stage, acts.checkpoint(stage, owned, first.row.checkpoint_id))
    acts.commit(stage, acts.task_writes(stage, owned))
    return first.row.checkpoint_id, owned


def replacing(stage: Stage, begins_at: str | None = None) -> StartRun:
    asked = acts.request(stage, acts.large(stage, "input"))
    return StartRun(request=asked, on_busy=OnBusy.ROLLBACK, begins_at=begins_at, **acts.thread(stage))


def a_rollback_of_a_claimed_run(stage: Stage) -> Prepared:
    """It had stored something, was drained, and is claimed again: nothing of it runs."""
    first, owned = begun(stage)
    run(settling.drain(stage.engine, owned))
    acts.claim(stage, owned.lease.run_id)
    return Prepared(replacing(stage, first), {"first": first, "old": owned.lease.run_id})


def asked_to_be_rolled_back(stage: Stage) -> tuple[OwnedRun, dict[str, Any]]:
    first, owned = begun(stage)
    new = acts.commit(stage, replacing(stage)).result["run_id"]
    return owned, {"first": first, "old": owned.lease.run_id, "new": new}


def of_run(stage: Stage, owned: OwnedRun) -> dict[str, Any]:
    return acts.thread(stage) | {"run_id": owned.lease.run_id, "epoch": owned.lease.epoch}


def an_end_that_rolls_back(stage: Stage) -> Prepared:
    owned, facts = asked_to_be_rolled_back(stage)
    data, blobs = payloads.encode(stage.engine, acts.SERDE, acts.large(stage, "result"))
    end = FinalizeRun.succeeded(result=data, owner=stage.engine.owner, blobs=blobs, **of_run(stage, owned))
    return Prepared(end, facts)


def a_failure_that_rolls_back(stage: Stage) -> Prepared:
    owned, facts = asked_to_be_rolled_back(stage)
    said = {"error_code": "ValueError", "error_summary": "no luck"}
    return Prepared(FailAttempt(**said, **of_run(stage, owned)), facts)


def a_start_that_rolls_back(stage: Stage) -> Prepared:
    """The run's process died before it stopped, the one that replaces it is not wanted any more: a caller comes."""
    owned, facts = asked_to_be_rolled_back(stage)
    stage.expire(owned.lease.run_id)
    acts.commit(stage, RequestStop(run_id=facts.pop("new"), space=stage.engine.space, command_id=new_id()))
    return Prepared(acts.start_owned(stage), facts)


def a_fork(stage: Stage) -> Prepared:
    """Of a run that died in the middle of an operation, in another thread."""
    source = replace(stage, thread_id=f"{stage.thread_id} source")
    owned = acts.own(source)
    first = acts.checkpoint(source, owned, None)
    acts.commit(source, first)
    acts.commit(source, acts.task_writes(source, owned))
    acts.commit(source, acts.begin(source, owned))
    stage.expire(owned.lease.run_id)
    command = ForkRun(
        request=acts.request(stage, acts.large(stage, "input")),
        of_run_id=owned.lease.run_id,
        source_id=source.thread_id,
        source_hash=acts.thread(source)["thread_hash"],
        checkpoint_id=first.row.checkpoint_id,
        **acts.thread(stage),
    )
    return Prepared(command, {"first": first.row.checkpoint_id})


def a_retry(stage: Stage) -> Prepared:
    _, owned = begun(stage)
    run(settling.fail(stage.engine, owned, "ValueError", "no luck"))
    asked = acts.request(stage, acts.large(stage, "input"))
    command = RetryRun(request=asked, run_id=owned.lease.run_id, **acts.thread(stage))
    return Prepared(command, {"run_id": owned.lease.run_id})


# --- after it -------------------------------------------------------------------------------------------------------


def is_rolled_back(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """The thread is where the run began, all at once with its end; the run that replaces it goes on from there."""
    new = scenarios.again(stage, prepared, committed).result.get("run_id", prepared.facts.get("new"))
    rows = acts.check(stage)
    assert [row["checkpoint_id"] for row in rows["checkpoints"]] == [prepared.facts["first"]]
    assert [row["checkpoint_id"] for row in rows["heads"]] == [prepared.facts["first"]]
    assert rows["writes"] == []
    (old,) = (row for row in rows["runs"] if row["run_id"] == prepared.facts["old"])
    assert (old["status"], old["stop_reason"]) == ("cancelled", "superseded")
    told = [event["type"] for event in rows["events"] if event["run_id"] == old["run_id"]]
    assert told.count("run.rolled_back") == 1
    (row,) = (row for row in rows["runs"] if row["run_id"] == new)
    if row["status"] == "running":  # a caller's own
        acts.take_over_and_finish(stage, new)
        return
    owned = acts.claim(stage, new)
    acts.activate(owned)
    acts.finish(stage, owned)


def is_forked(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """The fork's operation is unknown: an effect of the source never fires again there."""
    run_id = scenarios.again(stage, prepared, committed).result["run_id"]
    rows = acts.check(stage)
    assert [row["checkpoint_id"] for row in rows["heads"]] == [prepared.facts["first"]]
    assert [row["status"] for row in rows["operation_tries"]] == ["unknown"]
    owned = acts.claim(stage, run_id)
    acts.activate(owned)
    acts.finish(stage, owned)


def is_retried(stage: Stage, prepared: Prepared, committed: bool) -> None:
    run_id = scenarios.again(stage, prepared, committed).result["run_id"]
    (row,) = (row for row in acts.rows(stage)["runs"] if row["run_id"] == run_id)
    assert row["retry_of_run_id"] == prepared.facts["run_id"]
    owned = acts.claim(stage, run_id)
    acts.activate(owned)
    acts.finish(stage, owned)


NOTHING_ASKED = {
    "find_checkpoint": "it begins at the latest state",
    "lock_open_runs": "it waits for the open runs, whatever they are",
    "read_attempt": "it waits for the open runs",
    "save_run": "it changes no other run",
    "save_attempt": "it changes no other run",
}
"""What an ordinary start does not do."""

ALIKE = {"fail_attempt:rolled_back", "start_owned_run:rolled_back"}
"""Killed in the full run only: they send the statements of ``finalize_run:rolled_back`` in the same place."""

REQUESTS = (
    Scenario("start_run:rolled_back", a_rollback_of_a_claimed_run, is_rolled_back, scenarios.receipts),
    Scenario("finalize_run:rolled_back", an_end_that_rolls_back, is_rolled_back, scenarios.receipts),
    Scenario("fail_attempt:rolled_back", a_failure_that_rolls_back, is_rolled_back, scenarios.receipts),
    Scenario("start_owned_run:rolled_back", a_start_that_rolls_back, is_rolled_back, scenarios.receipts),
    Scenario("fork_run", a_fork, is_forked, scenarios.receipts),
    Scenario("retry_run", a_retry, is_retried, scenarios.receipts),
)
