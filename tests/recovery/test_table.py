"""The recovery dispatch table as pure code: which row a situation is, by its rows alone."""

import pytest

from runtime_persist.model.states import AttemptStatus, OperationPhase, OperationStatus, RunStatus, TryStatus
from runtime_persist.recovery import Act, Found, Outside, plan_of
from runtime_persist.recovery import runs as run_rules
from runtime_persist.recovery.calls import rule_of
from runtime_persist.recovery.rules import Subject
from runtime_persist.recovery.table import RULES
from tests.recovery.sources import LATER, SHOWN, SOURCES
from tests.support.rows_listed import check_they_exist

NOW = 1_000
RUN = {
    "run_id": "r",
    "graph": "g",
    "thread_id": "t",
    "status": "queued",
    "phase": "released",
    "expires_us": 0,
    "now_us": NOW,
    "control": "open",
    "stop_reason": None,
    "deadline_us": None,
    "epoch": 1,
    "attempt_id": "a1",
    "attempt_no": 1,
    "takeovers": 0,
    "retry_policy": None,
    "retry_of_run_id": None,
    "next_attempt_us": None,
    "event_seq": 7,
    "observed_state": None,
}
FENCED = {
    "attempt_id": "a1",
    "start_requested_us": 1,
    "ended_us": None,
    "handle": None,
    "status": AttemptStatus.RUNNING,
}
CLAIMED = FENCED | {"start_requested_us": None, "status": AttemptStatus.CLAIMED}
ENDED = FENCED | {"ended_us": 2, "status": AttemptStatus.YIELDED}
LEFT = {"status": "running", "phase": "active", "expires_us": NOW}
CALL = {
    "operation_id": "o",
    "checkpoint_ns": "pay:task-1",
    "name": "charge",
    "ordinal": "#0",
    "status": OperationStatus.PENDING,
    "phase": OperationPhase.EXECUTING,
    "on_unknown": "ask",
    "run_id": "r",
    "node_attempt": 1,
    "try_no": 1,
    "error_type": None,
    "created_us": 50,
    "try_status": TryStatus.UNKNOWN,
    "try_epoch": 1,
    "try_attempt_status": AttemptStatus.LOST,
}
HEAD = {"checkpoint_ns": "", "checkpoint_id": "c1", "created_us": 40}


def found(run=(), attempts=(FENCED,), **rows):
    empty = dict.fromkeys(("domains", "operations", "tickets", "heads", "writes"), ())
    given = {"progressed": False, "began": bool(rows.get("heads")), **empty, **rows}
    return Found(run=RUN | dict(run), attempts=attempts, **given)


def planned(*args, **rows):
    return [(item.rule, item.subject) for item in plan_of(found(*args, **rows)).items]


# --- runs -------------------------------------------------------------------------------------------------------------

SITUATIONS = {
    "run_final": [({"status": status}, (ENDED,)) for status in ("succeeded", "failed", "cancelled", "timed_out")],
    "run_held": [
        ({**LEFT, "expires_us": NOW + 1}, (FENCED,)),
        ({"status": "lost", "phase": "recovering", "expires_us": NOW + 1}, (FENCED,)),
        ({"status": "dispatching", "phase": "active", "expires_us": NOW + 1, "deadline_us": 1}, (CLAIMED,)),
    ],
    "run_stopping_held": [({**LEFT, "expires_us": NOW + 1, "control": "stopping"}, (FENCED,))],
    "run_to_end": [
        ({**LEFT, "control": "stopping"}, (FENCED,)),
        ({**LEFT, "deadline_us": NOW}, (FENCED,)),
        ({"status": "queued", "deadline_us": NOW}, ()),
        ({"status": "waiting_approval", "deadline_us": NOW - 1}, (ENDED,)),
        ({"status": "dispatching", "phase": "recovering", "control": "stopping"}, (CLAIMED,)),
    ],
    "run_manual_left": [({**LEFT, "graph": "lease"}, (FENCED,))],
    "run_not_started": [
        ({"status": "dispatching", "phase": "recovering", "expires_us": 1}, (CLAIMED,)),
        ({"status": "dispatching", "phase": "active", "expires_us": 1}, (CLAIMED,)),
    ],
    "run_not_started_again": [
        ({"status": "dispatching", "phase": "active", "expires_us": 1, "attempt_id": "a2"},
         (ENDED, CLAIMED | {"attempt_id": "a2"})),
    ],
    "run_crash_loop": [({**LEFT, "takeovers": 3}, (FENCED,)), ({**LEFT, "takeovers": 3, "status": "lost"}, (FENCED,))],
    "run_left_with_runtime": [
        (LEFT, (FENCED | {"handle": "{}"},)),
        ({"status": "lost"}, (FENCED | {"handle": "{}", "ended_us": 2, "status": AttemptStatus.LOST},)),
        ({"status": "lost", "attempt_id": "a2"},  # a takeover died before it started anything
         (FENCED | {"handle": "{}", "ended_us": 2, "status": AttemptStatus.LOST}, CLAIMED | {"attempt_id": "a2"})),
    ],
    "run_left": [
        (LEFT, (FENCED,)),
        ({"status": "dispatching", "phase": "active", "expires_us": 1}, (FENCED,)),
        ({"status": "lost"}, (FENCED,)),
        ({**LEFT, "takeovers": 2}, (FENCED,)),
        (LEFT, (ENDED | {"status": AttemptStatus.LOST},)),  # evidence brought it back, and it fell silent again
    ],
    "run_queued": [({"status": "queued"}, ()), ({"status": "queued"}, (CLAIMED,))],
    "run_resumes": [({"status": "queued"}, (ENDED,))],
    "run_retry_due": [({"status": "retry_wait", "next_attempt_us": NOW}, (ENDED,))],
    "run_retry_later": [({"status": "retry_wait", "next_attempt_us": NOW + 1}, (ENDED,))],
    "run_asks": [({"status": "waiting_approval"}, (ENDED,))],
    "run_created": [({"status": "created"}, ())],
}  # fmt: skip


@pytest.mark.parametrize("rule", SITUATIONS)
def test_each_situation_of_a_run_is_its_row(rule):
    for run, attempts in SITUATIONS[rule]:
        assert planned(run, attempts)[0] == (rule, "r"), (run, attempts)


def test_progress_begins_the_count_of_takeovers_anew():
    assert planned(LEFT | {"takeovers": 3}, progressed=True)[0][0] == "run_left"


def test_every_status_of_a_run_is_in_some_situation():
    assert {RUN["status"], *(run.get("status") for rows in SITUATIONS.values() for run, _ in rows)} == set(RunStatus)


@pytest.mark.parametrize(
    ("taken", "steps"),
    [
        ({}, [Act.CLAIM]),
        ({"takeover": True}, [Act.ASK_RUNTIME, Act.TAKE_OVER]),
        ({"takeover": True, "domains_open": 2}, [Act.REVOKE, Act.ASK_RUNTIME, Act.TAKE_OVER]),
        ({"takeover": True, "crash_loop": True}, [Act.ASK_RUNTIME, Act.GIVE_UP]),
        ({"takeover": True, "control": "stopping", "domains_open": 1}, [Act.REVOKE, Act.END]),
        ({"control": "stopping"}, [Act.END]),
    ],
)
def test_whoever_has_claimed_revokes_first_and_starts_last(taken, steps):
    claim = {"takeover": False, "crash_loop": False, "domains_open": 0, "control": "open"}
    assert list(run_rules.steps(claim | taken)) == steps


# --- calls ------------------------------------------------------------------------------------------------------------

FAILED = {"status": OperationStatus.FAILED, "phase": OperationPhase.COMPLETED, "try_status": TryStatus.FAILED}
CALLS = {
    "call_stored": [{"status": OperationStatus.SUCCEEDED, "phase": OperationPhase.COMPLETED}],
    "call_answer_saved": [{"phase": OperationPhase.RAW_SAVED}, {"phase": OperationPhase.RESPONSE_HOOKS}],
    "call_not_sent": [
        {"phase": phase, "try_no": 0, "try_status": None}
        for phase in (OperationPhase.PREPARED, OperationPhase.REQUEST_HOOKS, OperationPhase.READY)
    ],
    "call_try_failed": [{"try_status": TryStatus.FAILED}],
    "call_failed": [FAILED | {"error_type": "ValueError"}],
    "call_failed_before": [
        FAILED | {"error_type": "ValueError", "run_id": "an earlier one"},
        FAILED | {"error_type": "ValueError", "try_attempt_status": AttemptStatus.FAILED},
        FAILED | {"error_type": "ValueError", "node_attempt": 0},
    ],
    "call_stated_not": [FAILED | {"error_type": "DidNotHappen"}, FAILED | {"error_type": "Interrupted"}],
    "call_given_up": [
        FAILED | {"error_type": "OutcomeUnknown"},
        FAILED | {"error_type": "OutcomeUnknown", "run_id": "an earlier one"},
    ],
    "call_unknown_retry": [{"on_unknown": "retry"}, {"on_unknown": "retry", "try_status": TryStatus.STARTED}],
    "call_unknown_fail": [{"on_unknown": "fail"}, {"on_unknown": "fail", "try_status": TryStatus.STARTED}],
    "call_unknown_ask": [{}, {"try_status": TryStatus.STARTED}, {"name": "hook:x"}],
    "call_unknown_reconcile": [{"on_unknown": "reconcile"}],
    "hook_fetch": [{"name": "hook:guard", "on_unknown": "reconcile"}],
    "hook_indeterminate": [{"name": "hook:guard", "on_unknown": "fail"}],
}
OUTSIDE = {
    Act.RETURN: {Outside.NONE},
    Act.RAISE: {Outside.NONE},
    Act.ACCEPT: {Outside.NONE},
    Act.FAIL: {Outside.NONE},
    Act.START: {Outside.AT_MOST_ONCE},
    Act.CALL_AGAIN: {Outside.MAY_REPEAT},
    Act.ASK_OUTSIDE: {Outside.ASKS},
    Act.ASK_PERSON: {Outside.ASKS},
}


@pytest.mark.parametrize("rule", CALLS)
def test_each_situation_of_a_call_is_its_row(rule):
    for changes in CALLS[rule]:
        row = CALL | changes
        assert rule_of(row, row["on_unknown"], "r").name == rule, changes
        assert planned(LEFT, operations=(row,), heads=(HEAD,)) == [("run_left", "r"), (rule, "o")], changes


def test_what_an_action_on_a_call_does_outside_follows_from_the_action():
    """Only what was certainly not sent is sent at most once; a call that may have arrived is never called harmless."""
    for rule in RULES.values():
        if rule.subject is Subject.CALL and rule.act is not Act.NOTHING:
            assert rule.outside in OUTSIDE[rule.act], rule.name


def test_a_call_of_a_live_run_is_in_flight_and_one_of_a_run_that_ends_is_left_open():
    started = CALL | {"try_status": TryStatus.STARTED}
    live = LEFT | {"expires_us": NOW + 1}
    assert planned(live, operations=(started,)) == [("run_held", "r"), ("call_in_flight", "o")]
    assert planned(live, operations=(started | {"try_epoch": 0},))[1:] == [("call_unknown_ask", "o")]
    for run in ({"status": "cancelled"}, LEFT | {"control": "stopping"}):
        assert planned(run, operations=(started,))[1:] == [("call_left_open", "o")]
        assert planned(run, operations=(CALL | {"status": OperationStatus.SUCCEEDED},))[1:] == []


def test_a_call_whose_task_is_behind_the_last_checkpoint_is_passed():
    assert planned(LEFT, operations=(CALL | {"created_us": 39},), heads=(HEAD,))[1:] == [("call_passed", "o")]
    done = {"status": OperationStatus.SUCCEEDED, "created_us": 39}
    assert planned(LEFT, operations=(CALL | done,), heads=(HEAD,))[1:] == []


def test_a_call_whose_task_has_its_result_is_consumed():
    wrote = {"checkpoint_ns": "", "checkpoint_id": "c1", "task_id": "task-1", "task_path": "~__pregel_pull, pay",
             "idx": 0, "channel": "log"}  # fmt: skip
    for where in ("pay:task-1", "pay:task-1|inner:task-2", "pay:task-1@branch"):
        row = CALL | {"checkpoint_ns": where, "status": OperationStatus.SUCCEEDED}
        assert planned(LEFT, operations=(row,), heads=(HEAD,), writes=(wrote,))[1:] == [("task_done", "task-1")]


# --- domains, tasks, tickets ------------------------------------------------------------------------------------------


def test_domains_tasks_and_tickets_have_their_rows():
    domain = {"domain_id": "d", "kind": "process", "epoch": 1}
    assert planned(LEFT, domains=(domain,))[1:] == [("domain_left", "d")]
    assert planned(LEFT | {"expires_us": NOW + 1}, domains=(domain,))[1:] == [("domain_used", "d")]
    wrote = {"checkpoint_ns": "", "checkpoint_id": "c1", "task_path": "~__pregel_pull, node"}
    writes = [
        wrote | {"task_id": task, "idx": idx, "channel": channel}
        for task, idx, channel in [
            ("done", 0, "log"),
            ("done", -3, "__interrupt__"),
            ("failed", -1, "__error__"),
            ("asked", -3, "__interrupt__"),
            ("answered", -4, "__resume__"),
            ("00000000-0000-0000-0000-000000000000", 0, "log"),
        ]
    ]
    assert planned(LEFT, heads=(HEAD,), writes=writes)[1:] == [
        ("task_asked", "asked"),
        ("task_done", "done"),
        ("task_failed", "failed"),
    ]
    for status, rule in ((OperationStatus.PENDING, "ticket_held"), (OperationStatus.FAILED, "ticket_owed")):
        ticket = {"operation_id": "o", "name": "charge", "epoch": 1, "operation_status": status}
        assert planned(LEFT, tickets=(ticket,))[1:] == [(rule, "o")]


# --- the hash ---------------------------------------------------------------------------------------------------------

SAME = {
    "the clock": {"now_us": NOW + 500},
    "a renewal that ran out later": {"expires_us": NOW - 5},
    "who held it": {"worker_id": "another"},
    "a worker stated it lost": {"status": "lost"},
}
OTHER = {
    "its epoch": ({"epoch": 2}, ["run"]),
    "its attempt": ({"attempt_no": 2}, ["run"]),
    "it is to stop": ({"control": "stopping", "stop_reason": "cancel"}, ["run", "calls"]),
    "somebody holds it": ({"expires_us": NOW + 1}, ["run"]),
}


def test_the_hash_covers_what_decides_and_nothing_else():
    rows = {"operations": (CALL,), "heads": (HEAD,)}
    plan = plan_of(found(LEFT, **rows))
    for changes in SAME.values():
        again = plan_of(found(LEFT | changes, **rows))
        assert (again.hash, again.changed_from(plan.hash)) == (plan.hash, [])
    for changes, parts in OTHER.values():
        assert plan_of(found(LEFT | changes, **rows)).changed_from(plan.hash) == parts
    assert plan_of(found(LEFT, **rows | {"operations": (CALL | {"try_no": 2},)})).changed_from(plan.hash) == ["calls"]
    moved = (HEAD | {"checkpoint_id": "c2"},)
    assert plan_of(found(LEFT, **rows | {"heads": moved})).changed_from(plan.hash) == ["run"]
    started = CALL | {"try_status": TryStatus.STARTED}  # nobody has stated yet that it is unknown
    assert plan_of(found(LEFT, **rows | {"operations": (started,)})).hash == plan.hash
    seen = plan_of(found(LEFT | {"event_seq": 9}, **rows))
    assert (seen.hash[:2], seen.changed_from(plan.hash)) == ("9-", [])


@pytest.mark.parametrize("text", ["", "7", "7-", "x-" + "0" * 48, "7-" + "0" * 47, "7-" + "g" * 48, "٣-" + "0" * 47])
def test_what_is_no_hash_of_a_plan_is_told_apart(text):
    assert plan_of(found(LEFT)).changed_from(text) is None


# --- where it comes from, and who shows it ----------------------------------------------------------------------------


def test_every_row_of_the_specification_is_a_row_of_the_table_or_says_why_not():
    assert [source.where for source in SOURCES].count("004") == 14
    assert [source.where for source in SOURCES].count("domain") == 6
    for source in SOURCES:
        assert set(source.rules) <= set(RULES), source.found
        assert bool(source.rules) != (source.here == f"Not here: it is part of {LATER}."), source.found


def test_every_row_of_the_table_is_shown_by_tests():
    assert set(SHOWN) == set(RULES)
    for tests in SHOWN.values():
        assert tests
        check_they_exist(tests)


def test_every_row_of_the_table_is_in_a_case_above():
    shown = {*SITUATIONS, *CALLS, "domain_left", "domain_used", "task_asked", "task_done", "task_failed", "ticket_held",
             "ticket_owed", "call_in_flight", "call_left_open", "call_passed"}  # fmt: skip
    assert shown == set(RULES)
