"""Plans of runs in a database: the same everywhere, applied exactly, or refused with what changed."""

import asyncio
import json

import pytest

from runtime_persist import Budget, RetryPolicy
from runtime_persist.cli.main import EXIT_CODES
from runtime_persist.engine import domains, ownership, settling
from runtime_persist.engine import run as flow
from runtime_persist.errors import DomainsOpen, InvalidInput, RecoveryPlanChanged, RunNotFound, UnknownGraph
from runtime_persist.recovery import calls
from runtime_persist.recovery import runs as run_rules
from runtime_persist.runtime import recovering
from runtime_persist.testing.faults import check_invariants, read_rows
from runtime_persist.worker import Worker, recover
from tests.recovery.shop import CHARGED, ONCE, registry
from tests.support import command_line
from tests.support.capacity import reported
from tests.support.graphs import config
from tests.support.leases import run_out

UNDISTURBED = ["first", "charged 7", "after"]


def rules(plan):
    return [item.rule for item in plan.items]


def edit(runtime):
    """A person writes to the thread of a run that nobody holds, as the node that had not returned."""
    graph = registry["shop"].copy(update={"checkpointer": runtime.checkpointer})
    graph.update_state(config("t"), {"log": ["edited"]}, as_node="pay")


def whole(runtime):
    rows = read_rows(runtime.engine)
    assert check_invariants(rows) == []
    return rows


# --- looking and doing ------------------------------------------------------------------------------------------------


def test_another_process_sees_the_same_plan_and_applies_it_to_the_end_of_an_undisturbed_run(
    runtime, left, shared_url, tmp_path, fork
):
    def command(*arguments):
        return command_line.says(fork, *arguments)

    run_id = left()
    plan = runtime.runs.recovery_plan(run_id)
    assert rules(plan) == ["run_left", "call_unknown_ask"]
    file = str(tmp_path / "run.zip")
    assert command("bundle", "export", run_id, file, "--url", shared_url).exit_code == 0
    assert json.loads(command("recover", "plan", run_id, "--bundle", file, "--json").output)["hash"] == plan.hash
    shown = command("recover", "plan", run_id, "--url", shared_url).output
    assert f"runtime-persist recover apply {run_id} --plan {plan.hash}" in shown.splitlines()
    assert "Not covered: times" in " ".join(shown.split())
    apply = ("recover", "apply", run_id, "--url", shared_url, "--json", "--app", "tests.recovery.shop:registry")
    done = command(*apply, "--plan", plan.hash)
    assert (done.exit_code, json.loads(done.output)["status"]) == (0, "waiting_approval")
    again = command(*apply, "--plan", plan.hash)
    assert (again.exit_code, again.output) == (EXIT_CODES["conflict"], "")
    assert again.errors.splitlines()[-1].startswith("RECOVERY_PLAN_CHANGED: ")
    assert "lease.claimed (" in again.errors
    asked = runtime.runs.recovery_plan(run_id)
    assert rules(asked) == ["run_asks", "call_unknown_ask"]
    runtime.runs.resolve(asked.items[1].subject, happened=True, result="charged 7")
    answered = runtime.runs.recovery_plan(run_id)
    assert rules(answered) == ["run_resumes", "call_stored"]
    found = recover(runtime, run_id, plan=answered, graphs=registry)
    assert (found.status, found.did) == ("succeeded", ("claimed", "executed"))
    assert runtime.runs.result(run_id, timeout=0)["log"] == UNDISTURBED
    assert CHARGED == []
    whole(runtime)
    assert rules(runtime.runs.recovery_plan(run_id)) == ["run_final"]


def test_without_a_graph_a_left_run_is_fenced_and_handed_to_workers(runtime, left):
    run_id = left()
    found = asyncio.run(_recovered(runtime, run_id))
    assert (found.status, found.epoch, found.did) == ("lost", 2, ("claimed", "queued"))
    assert runtime.runs.get(run_id).takeovers == 0, "nothing came of it yet that could be counted"
    Worker(runtime, registry).run(until_idle=True)
    assert runtime.runs.get(run_id).status == "waiting_approval"
    whole(runtime)


async def _recovered(runtime, run_id):
    return await runtime.runs.arecover(run_id, plan=await runtime.runs.arecovery_plan(run_id))


def test_what_changed_is_named_and_nothing_is_done(runtime, left, raw):
    run_id = left()
    plan = runtime.runs.recovery_plan(run_id)

    def refused(parts, said):
        before = runtime.runs.get(run_id)
        with pytest.raises(RecoveryPlanChanged, match=said) as changed:
            recover(runtime, run_id, plan=plan.hash, graphs=registry)
        assert changed.value.details["changed"] == parts
        assert runtime.runs.get(run_id) == before
        assert changed.value.details["plan"] == runtime.runs.recovery_plan(run_id).hash
        return runtime.runs.recovery_plan(run_id)

    edit(runtime)
    plan = refused(["run", "calls"], "No event was committed since")
    assert rules(plan) == ["run_left", "call_passed"], "the run goes on behind the task that had made it"
    engine = runtime.engine
    candidate = {"run_id": run_id, "thread_id": "t", "graph": "shop"}
    owned, _ = flow(ownership.claim(engine, runtime.checkpointer.serde, candidate, instance_id=reported(engine)))
    engine.heartbeats.remove(owned)
    plan = refused(["run", "calls"], r"lease.claimed \(\d+\)")
    assert rules(plan) == ["run_held", "call_unknown_ask"]
    run_out(raw)
    plan = refused(["run", "calls"], "No event was committed since")  # the time did it
    runtime.runs.cancel(run_id)
    refused(["run", "calls"], r"run.cancelled \(\d+\)")
    whole(runtime)


def test_what_changes_between_the_look_and_the_claim_is_seen_under_the_claim(runtime, left, monkeypatch):
    run_id = left()
    plan = runtime.runs.recovery_plan(run_id)
    claims = ownership.claim

    def late(*args, **options):
        edit(runtime)
        return claims(*args, **options)

    monkeypatch.setattr(recovering.ownership, "claim", late)
    with pytest.raises(RecoveryPlanChanged, match=r"lease\.released"):
        recover(runtime, run_id, plan=plan, graphs=registry)
    monkeypatch.undo()
    record = runtime.runs.get(run_id)
    assert (record.status, record.phase, record.attempt_no) == ("lost", "released", 1)
    now = runtime.runs.recovery_plan(run_id)
    assert rules(now) == ["run_left", "call_passed"]
    assert recover(runtime, run_id, plan=now, graphs=registry).status == "succeeded"
    assert runtime.runs.result(run_id)["log"] == ["first", "edited", "after"]
    assert CHARGED == []
    whole(runtime)


def test_what_cannot_be_meant_is_refused_before_anything_is_claimed(runtime, start):
    run_id = start()
    plan = runtime.runs.recovery_plan(run_id)
    with pytest.raises(InvalidInput, match="is no hash of a plan"):
        runtime.runs.recover(run_id, plan="yes")
    with pytest.raises(UnknownGraph):
        recover(runtime, run_id, plan=plan, graphs={"another": registry["shop"]})
    with pytest.raises(RunNotFound):
        runtime.runs.recover("nobody", plan=plan)
    assert runtime.runs.recover(run_id, plan=plan).did == (), "it is queued, so workers have it already"
    assert runtime.runs.recovery_plan(run_id).hash == plan.hash


# --- row by row -------------------------------------------------------------------------------------------------------


def test_a_run_that_is_held_is_left_alone(runtime, taken):
    owned = taken()
    plan = runtime.runs.recovery_plan(owned.lease.run_id)
    assert rules(plan) == ["run_held"]
    for found in (
        runtime.runs.recover(owned.lease.run_id, plan=plan),
        recover(runtime, owned.lease.run_id, plan=plan, graphs=registry),
    ):
        assert (found.status, found.epoch, found.did) == ("running", 1, ())
    flow(settling.finish(runtime.engine, owned, "mine"))


def test_a_stopped_run_that_nobody_holds_is_ended_and_no_node_runs(runtime, taken, start, raw):
    owned = taken()
    runtime.runs.cancel(owned.lease.run_id)
    run_out(raw)
    plan = runtime.runs.recovery_plan(owned.lease.run_id)
    assert rules(plan) == ["run_to_end"]
    found = recover(runtime, owned.lease.run_id, plan=plan, graphs=registry)
    assert (found.status, found.did) == ("cancelled", ("claimed", "ended"))
    late = start(deadline=3600)
    raw.rows("UPDATE rp_runs SET deadline_us = 1 WHERE run_id = ?", late)
    plan = runtime.runs.recovery_plan(late)
    assert rules(plan) == ["run_to_end"]
    assert runtime.runs.recover(late, plan=plan).status == "timed_out"
    assert CHARGED == []
    whole(runtime)


def test_a_run_that_crashed_its_workers_too_often_is_given_up(runtime, taken, raw):
    run_id = taken().lease.run_id
    run_out(raw)
    raw.rows("UPDATE rp_runs SET takeovers = 3")
    plan = runtime.runs.recovery_plan(run_id)
    assert rules(plan) == ["run_crash_loop"]
    assert runtime.runs.recover(run_id, plan=plan).did == ("claimed", "given_up")
    record = runtime.runs.get(run_id)
    assert (record.status, record.error_code) == ("failed", "crash_loop")


def test_nothing_starts_before_the_older_writer_is_proved_revoked(runtime, taken, raw):
    owned = taken()
    run_id = owned.lease.run_id
    domain_id = flow(domains.open_domain(owned, "sandbox", {"box": 7}))
    run_out(raw)
    plan = runtime.runs.recovery_plan(run_id)
    assert rules(plan) == ["run_left", "domain_left"]
    with pytest.raises(DomainsOpen, match=domain_id):
        recover(runtime, run_id, plan=plan, graphs=registry)
    record = runtime.runs.get(run_id)
    assert (record.status, record.attempt_no, record.phase) == ("lost", 1, "recovering")
    assert CHARGED == []
    runtime.runs.confirm_revoked(run_id, domain_id, by="ann")
    plan = runtime.runs.recovery_plan(run_id)
    assert rules(plan) == ["run_left"]
    assert recover(runtime, run_id, plan=plan, graphs=registry).status == "succeeded"
    whole(runtime)


def test_of_parallel_tasks_those_with_a_result_do_not_run_again(runtime, start, raw):
    ONCE.append("2")
    policy = RetryPolicy(max_attempts=2, backoff=3600)
    run_id = start("many", {"log": [], "items": [1, 2, 3]}, retry=policy)
    Worker(runtime, registry).run(until_idle=True)
    raw.rows("UPDATE rp_runs SET next_attempt_us = 1")
    plan = runtime.runs.recovery_plan(run_id)
    kept = [item.rule for item in plan.items if item.kind == "task"].count("task_done")
    assert plan.run.rule == "run_retry_due"
    assert "task_failed" in rules(plan)
    began = len(CHARGED)  # the failure may come before the last of them was begun
    assert recover(runtime, run_id, plan=plan, graphs=registry).status == "succeeded"
    assert sorted(runtime.runs.result(run_id)["log"][:3]) == ["1", "2", "3"]
    assert len(CHARGED) == began + 3 - kept
    assert CHARGED.count("2") == 2
    whole(runtime)


def test_a_due_retry_is_executed_and_one_to_come_is_left_alone(runtime, start, raw):
    run_id = start("many", {"log": [], "items": [2]}, retry=RetryPolicy(max_attempts=2, backoff=3600))
    ONCE.append("2")
    Worker(runtime, registry).run(until_idle=True)
    plan = runtime.runs.recovery_plan(run_id)
    assert plan.run.rule == "run_retry_later"
    assert recover(runtime, run_id, plan=plan, graphs=registry).did == ()
    raw.rows("UPDATE rp_runs SET next_attempt_us = 1")
    plan = runtime.runs.recovery_plan(run_id)
    assert plan.run.rule == "run_retry_due"
    assert recover(runtime, run_id, plan=plan, graphs=registry).status == "succeeded"


def test_a_call_that_was_never_sent_is_made_once_and_takes_no_second_ticket(runtime, left, raw):
    """Its request is frozen and its ticket reserved, and no try was started: no command here leaves a call so yet."""
    run_id = left(budget=Budget(tool_calls=1))
    raw.rows("UPDATE rp_operations SET phase = 'ready', try_no = 0")
    raw.rows("DELETE FROM rp_operation_tries")
    plan = runtime.runs.recovery_plan(run_id)
    assert rules(plan) == ["run_left", "call_not_sent", "ticket_held"]
    assert recover(runtime, run_id, plan=plan, graphs=registry).status == "succeeded"
    assert CHARGED == ["7"]
    record = runtime.runs.get(run_id)
    assert tuple(record.budget["tool_calls"]) == (1, 0, 1)
    assert runtime.runs.result(run_id)["log"] == UNDISTURBED


# --- one table --------------------------------------------------------------------------------------------------------


def test_another_row_of_the_table_is_another_deed_of_the_journal(runtime, left, monkeypatch):
    """With the row for ``ask`` exchanged for that of ``fail`` nobody is asked, as the plan says."""
    run_id = left()
    monkeypatch.setitem(calls._UNKNOWN, "ask", calls.UNKNOWN_FAIL)
    plan = runtime.runs.recovery_plan(run_id)
    assert rules(plan) == ["run_left", "call_unknown_fail"]
    assert recover(runtime, run_id, plan=plan, graphs=registry).status == "failed"
    assert runtime.runs.get(run_id).error_code == "OPERATION_FAILED"
    assert rules(runtime.runs.recovery_plan(run_id)) == ["run_final"], "the call has failed, so nothing of it is open"


def test_another_row_of_the_table_is_another_deed_of_workers_and_claims(runtime, taken, raw, monkeypatch):
    run_id = taken().lease.run_id
    run_out(raw)
    monkeypatch.setattr(run_rules, "is_crash_loop", lambda *_: True)
    assert rules(runtime.runs.recovery_plan(run_id)) == ["run_crash_loop"]
    Worker(runtime, registry).run(until_idle=True)
    assert runtime.runs.get(run_id).error_code == "crash_loop"
    assert CHARGED == []


def test_the_ticket_of_a_call_whose_failure_was_stored_last_is_settled(runtime, left, raw):
    """Its process died between the commit of the failure and that of the ticket's settlement."""
    run_id = left(budget=Budget(tool_calls=1))
    failed = "status = 'failed', error_type = 'ValueError', error_text = 'no luck', ended_us = 1"
    raw.rows(f"UPDATE rp_operations SET {failed}, phase = 'completed'")
    raw.rows(f"UPDATE rp_operation_tries SET {failed}")
    plan = runtime.runs.recovery_plan(run_id)
    assert rules(plan) == ["run_left", "call_failed", "ticket_owed"]
    assert recover(runtime, run_id, plan=plan, graphs=registry).status == "failed"
    record = runtime.runs.get(run_id)
    assert record.error_code == "OPERATION_FAILED"
    assert tuple(record.budget["tool_calls"]) == (1, 0, 1)
    assert CHARGED == []
    whole(runtime)
