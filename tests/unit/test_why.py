"""Why a run is where it is: one case for each situation, from rows alone."""

import json

import pytest

from runtime_persist.commands.parts import run_rows
from runtime_persist.inspector.situations import SITUATIONS
from runtime_persist.inspector.spelling import ago, spelled
from runtime_persist.inspector.why import explain
from runtime_persist.model.states import FINAL_RUN, AttemptCause, AttemptStatus, LeasePhase, RunStatus
from runtime_persist.queries.why import Standing

NOW = 1_764_547_200_000_000
SECOND = 1_000_000


def run_of(status, **fields):
    row = run_rows.new_run(
        {"space": "default", "run_id": "run-1", "graph": "shop", "thread_id": "t"}, NOW - 60 * SECOND
    )
    given = {"thread_run_no": 1, "queued_us": NOW - 50 * SECOND, "updated_us": NOW - 5 * SECOND}
    return {**row, **given, "status": status, "now_us": NOW, **fields}


def held(status, left=20 * SECOND, **fields):
    lease = {"phase": "active", "epoch": 3, "worker_id": "w1", "expires_us": NOW + left, "attempt_no": 2}
    return run_of(status, **{**lease, **fields})


def attempt_of(run, **fields):
    made = run_rows.new_attempt(run, "attempt-2", AttemptCause.INITIAL, NOW - 40 * SECOND, worker_id="w1")
    seen = {"start_requested_us": NOW - 30 * SECOND, "observed_us": NOW - 29 * SECOND, "claimed_us": NOW - 31 * SECOND}
    return {**made, "attempt_no": 2, "epoch": 3, **seen, **fields}


def instance(worker_id="w1", *, slots=2, active=(), graphs=None, left=20 * SECOND, draining=0):
    return {
        "worker_id": worker_id,
        "instance_id": f"of {worker_id}",
        "host": "host",
        "slots": slots,
        "active_task_ids": json.dumps(list(active)),
        "graphs": json.dumps({"shop": ["v1"]} if graphs is None else graphs),
        "draining": draining,
        "reported_us": NOW - 10 * SECOND,
        "expires_us": NOW + left,
    }


def at(run, *, started=True, attempt=None, **fields):
    """A standing; ``started``: its attempt passed the start fence."""
    if attempt is None and run["attempt_no"]:
        attempt = attempt_of(run) if started else attempt_of(run, start_requested_us=None)
    graph = {"graph": "shop", "version": "v1", "max_concurrency": None}
    return Standing(run, attempt, **{"graph": graph, "instances": [instance()], **fields})


def first(run_id, status="running"):
    return {"run_id": run_id, "graph": "shop", "status": status, "worker_id": "w2"}


QUESTION = {"kind": "interrupt", "next": ["ask"], "interrupts": [{"id": "1", "value": "pay 42.00?"}]}
UNKNOWN = {"kind": "unknown_operation", "operation_id": "op-1", "name": "charge", "request": "order_id='7'"}
DOMAIN = {"domain_id": "d1", "kind": "process"}
ENDED = {"finished_us": NOW - 2 * SECOND, "attempt_no": 1, "epoch": 1}

# situation -> (its rows, what it asks, words of the explanation)
CASES = {
    "succeeded": (at(run_of("succeeded", **ENDED)), None, ["returned 2.0 s ago", "epoch 1"]),
    "crash_loop": (
        at(run_of("failed", error_code="crash_loop", error_summary="…", takeovers=4, **ENDED)),
        None,
        ["crashed 4 times in a row", "run retry run-1"],
    ),
    "retries_used_up": (
        at(run_of("failed", error_code="ValueError", error_summary="no luck", failures=3, **ENDED)),
        None,
        ["3 attempts failed", "ValueError: no luck"],
    ),
    "failed": (
        at(run_of("failed", error_code="ValueError", failures=1, **ENDED)),
        None,
        ["its graph raised ValueError"],
    ),
    "timed_out": (
        at(run_of("timed_out", deadline_us=NOW - 3 * SECOND, observed_state="succeeded", **ENDED)),
        None,
        ["deadline passed 3.0 s ago", "returned a result all the same"],
    ),
    "cancelled": (at(run_of("cancelled", stop_reason="superseded", **ENDED)), None, ["stopped (superseded)"]),
    "stopping_blocked": (
        at(held("lost", -SECOND, control="stopping", stop_reason="cancel", revocation="blocked"), domains=[DOMAIN]),
        None,
        ["process domain d1 not revoked"],
    ),
    "stopping_live": (
        at(held("running", control="stopping", stop_reason="cancel")),
        None,
        ["asked to stop (cancel)", "worker w1", "runs out in 20 s"],
    ),
    "stopping_left": (
        at(held("running", -SECOND, control="stopping", stop_reason="deadline")),
        None,
        ["nobody holds it", "ran out 1.0 s ago"],
    ),
    "takeover_blocked": (
        at(held("lost", -SECOND, revocation="blocked"), domains=[DOMAIN]),
        None,
        ["nothing starts", "process domain d1"],
    ),
    "recovering": (at(held("lost", phase="recovering")), None, ["w1 is taking it over", "epoch 3"]),
    "manual_left": (at(held("running", -SECOND, graph="lease")), None, ["by hand", "run cancel run-1"]),
    "lost": (
        at(run_of("lost", epoch=3, attempt_no=2)),
        None,
        ["nothing proves what became of it", "start fence 30 s ago", "worker that has shop"],
    ),
    "not_started": (at(held("dispatching", -SECOND), started=False), None, ["certainly not started", "no retry"]),
    "left": (at(held("running", -SECOND)), None, ["w1 does not renew", "ran out 1.0 s ago"]),
    "running": (at(held("running")), None, ["worker w1 executes it", "runs 29 s ago", "runs out in 20 s"]),
    "waits_for_its_runtime": (
        at(held("dispatching", observed_state="accepted")),
        None,
        ["accepted attempt 2 29 s ago", "w1"],
    ),
    "starting": (at(held("dispatching")), None, ["is starting it", "has not reported yet"]),
    "claimed": (at(held("dispatching", phase="recovering"), started=False), None, ["has not started it yet"]),
    "asks_a_person": (
        at(run_of("waiting_approval", **{**ENDED, "finished_us": None})),
        QUESTION,
        ["pay 42.00?", "5.0 s ago", "run resume run-1"],
    ),
    "stands_at_a_breakpoint": (
        at(run_of("waiting_approval", attempt_no=1)),
        {"kind": "breakpoint", "next": ["node"], "interrupts": []},
        ["before node"],
    ),
    "asks_about_an_operation": (
        at(run_of("waiting_approval", attempt_no=1)),
        UNKNOWN,
        ["charge(order_id='7')", "op resolve op-1"],
    ),
    "has_spent_its_budget": (
        at(run_of("waiting_approval", attempt_no=1)),
        {"kind": "budget", "budget": "loops", "limit": 3, "reserved": 0, "consumed": 3},
        ["3 of 3 loops are consumed, 0 reserved", "run raise-budget run-1"],
    ),
    "waits_for_a_person": (at(run_of("waiting_approval", attempt_no=1)), None, ["asked a person"]),
    "waits_for_its_retry": (
        at(run_of("retry_wait", next_attempt_us=NOW + 90 * SECOND, attempt_no=1, failures=1)),
        None,
        ["due in 1 min 30 s", "run now run-1"],
    ),
    "waited_in_a_bundle": (
        at(run_of("queued"), partial=True),
        None,
        ["waited for a worker", "since 50 s ago", "neither workers nor other runs"],
    ),
    "behind_its_thread": (
        at(run_of("queued"), older=[first("run-0"), first("run-00", "queued")]),
        None,
        ["open: 2", "run-0 (running)", "run why run-0"],
    ),
    "scope_taken": (
        at(run_of("queued", scope="ledger"), scope_holder=first("run-9")),
        None,
        ["run-9 has its scope 'ledger'"],
    ),
    "no_worker": (at(run_of("queued"), instances=[instance(left=-SECOND)]), None, ["no worker is alive"]),
    "no_worker_has_its_graph": (
        at(run_of("queued"), instances=[instance(graphs={"other": ["v1"]})]),
        None,
        ["has graph shop"],
    ),
    "no_worker_has_its_version": (at(run_of("queued", graph_version="v2")), None, ["version v2 of graph shop"]),
    "graph_is_full": (
        at(run_of("queued"), active=1, graph={"graph": "shop", "version": "v1", "max_concurrency": 1}),
        None,
        ["all 1 places", "max_concurrency=1"],
    ),
    "no_slot": (at(run_of("queued"), instances=[instance(slots=1, active=["x"])]), None, ["free slot"]),
    "behind_others": (
        at(run_of("queued"), ahead=7, first_ahead="run-0", others=["mail"]),
        None,
        ["before it: 7, the first is run-0", "take turns with it: mail", "run now run-1"],
    ),
    "next": (at(run_of("queued")), None, ["next run of its graph"]),
    "created": (at(run_of("created")), None, ["never queued"]),
}


def said(found):
    advice = [f"{one.command} {one.purpose}" for one in found.do]
    return " ".join([found.because, found.proof, found.lease, found.awaits, *advice])


@pytest.mark.parametrize("name", CASES)
def test_a_situation_is_found_and_says_what_is_the_matter(name):
    standing, question, words = CASES[name]
    found = explain(standing, question)
    assert found.situation == name
    assert [word for word in words if word not in said(found)] == [], said(found)
    assert "None" not in said(found)


def test_every_situation_has_a_case_and_no_case_is_of_none():
    assert {row.name for row in SITUATIONS} == set(CASES)


@pytest.mark.parametrize("status", ["queued", "retry_wait"])
def test_a_retry_that_is_due_waits_for_a_worker_as_a_queued_run_does(status):
    run = run_of(status, next_attempt_us=NOW - 1)
    assert explain(at(run)).situation == "next"
    assert explain(at(run, instances=[])).situation == "no_worker"


def test_each_worker_is_told_whether_it_could_take_the_run_and_why_not():
    workers = [
        instance("a", active=["x"]),
        instance("b", draining=1),
        instance("c", left=-SECOND),
        instance("d", graphs={"mail": ["*"]}),
        instance("e", graphs={"shop": ["v0"]}),
        instance("f", graphs={"shop": ["*"]}, slots=1, active=["x"]),
        instance("g", graphs={"shop": ["*"]}, slots=3, active=["run-7:1"]),
    ]
    owned = [
        {"instance_id": "of g", "run_id": "run-7", "epoch": 1},
        {"instance_id": "of g", "run_id": "run-8", "epoch": 2},
    ]
    found = explain(at(run_of("queued", graph_version="v1"), instances=workers, held=owned))
    assert {one.worker_id: (one.could, one.why) for one in found.workers} == {
        "a": (True, "1 of 2 slots are free"),
        "b": (False, "it is shutting down"),
        "c": (False, "gone: it reported last 10 s ago"),
        "d": (False, "it does not have graph shop"),
        "e": (False, "it has version v0 of shop, not v1"),
        "f": (False, "all 1 of its slots are taken"),
        "g": (True, "1 of 3 slots are free"),
    }


@pytest.mark.parametrize("name", ["running", "asks_a_person", "succeeded", "stopping_live"])
def test_no_worker_is_named_where_none_is_needed(name):
    standing, question, _ = CASES[name]
    assert explain(standing, question).workers == []


def test_calls_without_an_outcome_are_named():
    assert explain(at(held("running", -SECOND), pending=[call()])).pending == ["charge (try 2, op-1)"]


def call(**fields):
    made = {"operation_id": "op-1", "name": "charge", "request": "order-7", "on_unknown": "ask", "try_no": 2}
    made |= {"idempotency_key": "key-1", "phase": "executing", "provider_request_id": None}
    return made | {"try_status": "started", "try_started_us": NOW - 9 * SECOND, "try_epoch": 3} | fields


def test_a_call_is_unknown_when_nothing_proves_what_became_of_it_and_the_question_names_its_key():
    def asked(run, **fields):
        return [one for one in explain(at(run, pending=[call(**fields)])).unknown if "charge" in one.what]

    (left,) = asked(held("running", -SECOND))
    assert "charge(order-7) happened: try 2 began" in left.what
    assert "9.0 s ago" in left.what
    assert "idempotency key key-1" in left.question
    assert "op resolve op-1" in left.question
    assert "its own request r-5" in asked(held("running", -SECOND), provider_request_id="r-5")[0].question
    assert asked(held("running"), try_epoch=2), "of an older epoch"
    for run, fields in (
        (held("running"), {}),  # in flight
        (held("running", -SECOND), {"phase": "raw_saved"}),  # what the outside said is stored
        (held("running", -SECOND), {"try_status": "failed"}),
    ):
        assert asked(run, **fields) == []


def test_the_evidence_is_claim_start_fence_last_report_and_lease():
    found = explain(at(held("running", created_us=NOW - 60 * SECOND)))
    assert [line.split(" ", 2)[0] for line in found.evidence] == ["written", "claimed", "start", "last", "lease"]
    claimed, fence, report, lease = found.evidence[1:]
    assert "by w1 as attempt 2 (initial), epoch 3" in claimed
    assert "2025-12-01 00:00:20Z (in 20 s)" in lease
    assert "(30 s ago)" in fence
    assert "(29 s ago)" in report
    assert "no start fence" in explain(at(held("dispatching"), started=False)).evidence[2]


@pytest.mark.parametrize("status", list(RunStatus))
@pytest.mark.parametrize("attempt_status", list(AttemptStatus))
def test_whatever_state_run_and_attempt_are_in_there_is_a_sentence_its_proof_and_what_is_unknown(
    status, attempt_status
):
    for phase in LeasePhase:
        for left in (20 * SECOND, -SECOND):
            for control in ("open", "stopping"):
                for started in (True, False):
                    run = held(status.value, left, phase=phase.value, control=control)
                    attempt = attempt_of(run, status=attempt_status.value)
                    if not started:
                        attempt |= {"start_requested_us": None, "observed_us": None, "epoch": None, "claimed_us": None}
                    for partial in (True, False):
                        found = explain(at(run, attempt=attempt, domains=[DOMAIN], partial=partial))
                        text = " ".join(
                            [said(found), *found.evidence, *(f"{o.what} {o.question}" for o in found.unknown)]
                        )
                        assert "None" not in text, text
                        assert found.because
                        assert found.proof
                        live = phase is not LeasePhase.RELEASED and left > 0
                        gone = [one for one in found.unknown if "still runs" in one.what]
                        by_itself = not live or status is RunStatus.LOST
                        assert bool(gone) == (started and by_itself and status not in FINAL_RUN)
                        if found.shown == "unknown":
                            assert found.unknown or not started


def test_what_people_wrote_cannot_break_the_text():
    braces = "{worker} {0} {}"
    found = explain(at(run_of("queued", run_id=braces, scope=braces), scope_holder=first(braces)))
    assert braces in found.because
    asked = {**QUESTION, "interrupts": [{"id": "1", "value": {"text": "x" * 5_000}}]}
    assert len(explain(at(run_of("waiting_approval", attempt_no=1)), asked).because) < 500


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0.0 s"),
        (1_540_000, "1.5 s"),
        (59_999_999, "59 s"),
        (60_000_000, "1 min"),
        (185_000_000, "3 min 5 s"),
        (7_440_000_000, "2 h 4 min"),
        (86_400_000_000, "1 d"),
        (90_000_000_000_000, "1041 d 16 h"),
    ],
)
def test_a_duration_is_two_units_at_most(us, text):
    assert spelled(us) == text
    assert ago(NOW - us, NOW) == f"{text} ago"
    assert ago(None, NOW) == "never"
