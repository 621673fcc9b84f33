"""SIGKILL at cut points: the plan names what is open and the right action, and applying it ends as undisturbed.

A fresh process applies it, each time.
The cuts are those of the journal's kill matrix (tests/journal_kills) and of a worker's life in a directory of its own.
"""

import signal
from itertools import product

import pytest

from runtime_persist.commands.parts.spec import HotCommand
from runtime_persist.engine import run as flow
from runtime_persist.inspector.bundles import export
from runtime_persist.inspector.bundles.verify import parsed
from runtime_persist.inspector.recovery import plan_of_bundle
from runtime_persist.testing.faults import check_invariants, read_rows
from tests.journal_kills import cases, killing
from tests.journal_kills.cases import CHOSEN, DATABASES, SPECS, WHOLE
from tests.journal_kills.outside import receipt
from tests.journal_kills.places import ends_with, orders_of
from tests.support.leases import run_out

APPLIES = "tests.recovery.appliers:applies"
WORKS = "tests.recovery.appliers:works"
ROUNDS_MAX = 4

# --- calls ------------------------------------------------------------------------------------------------------------

UNKNOWN = {"ask": "call_unknown_ask", "retry": "call_unknown_retry"}
OPEN_CALL = {
    "begin_operation": (None, "unknown"),
    "begin_with_ticket": (None, "unknown"),
    "begin_in_invocation": (None, "unknown"),
    "complete_operation": ("unknown", "call_stored"),
    "end_attempt": ("unknown", "call_try_failed"),
    "start_attempt": ("call_try_failed", "unknown"),
    "note_attempt": ("unknown", "unknown"),
    "save_attempt_raw": ("unknown", "call_answer_saved"),
    "settle_ticket": ("call_stored", "call_stored"),
}
"""The row of the call whose process dies in a command: before it is committed, and behind."""
TICKETS = {
    "begin_with_ticket": (None, "ticket_held"),
    "begin_in_invocation": (None, "ticket_held"),
    "settle_ticket": ("ticket_owed", None),
}


def rows_of(case, *, committed):
    """The rows that the plan must have."""
    call = OPEN_CALL[case.command][committed]
    found = ["run_left", UNKNOWN[case.policy] if call == "unknown" else call]
    return sorted(name for name in (*found, TICKETS.get(case.command, (None, None))[committed]) if name is not None)


def named(plan):
    return sorted(item.rule for item in plan.items)


def plan_of(database):
    """The plan by the database, which is that of the run's bundle."""
    (run,) = database.runtime.runs.list(thread_id="t1")
    plan = database.runtime.runs.recovery_plan(run.run_id)
    file = parsed(b"".join(flow(export(database.runtime.engine, run.run_id))))
    theirs = plan_of_bundle(file)
    assert (theirs.hash, theirs.items) == (plan.hash, plan.items)
    return plan


def check(database_of, shop_server, outside, case):
    outside.begin(busy=case.shape == "flaky")
    database = database_of(case.database)
    killing.die(database, shop_server, outside, case)
    plan, committed = plan_of(database), killing.committed(case)
    if case.place == "send":  # how far the other branch had come is chance
        assert "run_left" in named(plan)
        assert {item.kind for item in plan.items} <= {"run", "task", "call", "ticket"}
    else:
        assert named(plan) in [rows_of(case, committed=one) for one in (False, True) if committed in {None, one}]
    applied(database, shop_server, outside, case)
    killing.settled(database, outside, case)


def applied(database, shop_server, outside, case):
    """Plan and apply, each time by a fresh process, until it has succeeded; a person answers by what is outside."""
    expected = ends_with(case.place, case.shape)
    for _ in range(ROUNDS_MAX):
        killing.look(database, outside)
        plan = plan_of(database)
        args = {**killing.args_of(case, outside), "run_id": plan.run_id, "plan": plan.hash}
        url = database.victim_url.replace("=victim", "=second")
        death = shop_server.fork(APPLIES, {**args, "url": url}).wait()
        assert death.status == 0, death.error
        (status, did, output) = death.told[-1][1]
        assert did == ("claimed", "executed")
        if status == "succeeded":
            assert output == expected
            return
        assert (status, case.policy) == ("waiting_approval", "ask")
        waits = plan_of(database)
        assert waits.run.rule == "run_asks"
        (asked, *_) = [item for item in waits.items if item.rule == "call_unknown_ask"]
        row = next(row for row in database.operations().values() if row["operation_id"] == asked.subject)
        happened = any(row["idempotency_key"] in keys for keys in outside.sold.values())
        order = next(order for order in orders_of(case.place) if f"'{order}'" in row["request"])
        result = receipt(order) if happened else None
        database.runtime.runs.resolve(asked.subject, happened=happened, result=result)
    raise AssertionError("it never ends")


def _sample():
    """Of each command one case before it is committed and one behind, in turn on each database and in each place."""
    found, turn = [], 0
    for command in OPEN_CALL:
        for committed in (False, True):
            database = DATABASES[turn % 2]
            wanted = (command, database, committed)
            fit = [case for case in (*CHOSEN, *WHOLE) if _told_by(case) == wanted and case.place != "send"]
            few = [case for case in fit if case in CHOSEN] or fit
            found.append(few[turn % len(few)])
            turn += 1 + (turn % 2 == 0 and committed)
    return found


def _told_by(case):
    return case.command, case.database, killing.committed(case)


SAMPLE = _sample()


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.id)
def test_killed_in_a_call_the_plan_names_what_is_open_and_applying_it_ends_as_undisturbed(
    database_of, shop_server, outside, case
):
    check(database_of, shop_server, outside, case)


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", [case for case in CHOSEN if case not in SAMPLE], ids=lambda case: case.id)
def test_killed_at_every_cut_of_a_call_the_plan_names_what_is_open_and_applying_it_ends_as_undisturbed(
    database_of, shop_server, outside, case
):
    check(database_of, shop_server, outside, case)


def test_the_sample_has_every_command_of_the_journal_on_each_side_of_its_commit():
    assert set(OPEN_CALL) == set(cases.SHAPE_OF)
    assert {(case.command, killing.committed(case)) for case in SAMPLE} == set(product(OPEN_CALL, (False, True)))
    assert {case.database for case in SAMPLE} == set(DATABASES)


# --- a worker's life --------------------------------------------------------------------------------------------------

LIFE = {
    "start_run": (None, ["run_queued"]),
    "claim_next": (["run_queued"], ["run_not_started"]),
    "activate_lease": (["run_not_started"], ["run_not_started"]),
    "request_start": (["run_not_started"], ["run_left"]),
    "report_attempt_event": (["run_left"], ["run_left"]),
    "open_domain": (["run_left"], ["domain_left", "run_left"]),
    "commit_workflow_checkpoint": (["domain_left", "run_left"], ["domain_left", "run_left"]),
    "begin_operation": (["domain_left", "run_left"], ["call_unknown_ask", "domain_left", "run_left"]),
    "complete_operation": (["call_unknown_ask", "domain_left", "run_left"], ["call_stored", "domain_left", "run_left"]),
    "commit_workflow_task_writes": (
        ["call_stored", "domain_left", "run_left"],
        ["domain_left", "run_left", "task_done"],
    ),
    "record_revocation": (["domain_left", "run_left"], ["run_left"]),
    "finalize_run": (["run_left"], ["run_final"]),
}
"""The commands of the life in order: the rows of the plan when its process dies in one, and behind its commit."""
NTH = {"commit_workflow_task_writes": 2}
"""The first writes are those of the input."""


def life_cuts(command, database):
    """Where the life is cut in a command: where its own process knows that it is."""
    return [cut for cut in cases.cuts_of(command, database) if cut.how == "hook"]


def _lives():
    for at, (command, (before, behind)) in enumerate(LIFE.items()):
        for database in DATABASES:
            found = life_cuts(command, database)
            hot = isinstance(SPECS[command], HotCommand)
            for cut in found:
                ends = cut.name.endswith(":after:commit")
                expected = behind if ends else before
                last = ends or (command == "finalize_run" and cut is found[0])  # else as behind the command before it
                chosen = last and DATABASES[(at + ends) % 2] == database
                if expected is None or (hot and database == "postgresql" and ends):
                    continue
                marks = () if chosen else (pytest.mark.exhaustive,)
                yield pytest.param(database, cut, expected, id=f"{database}-{cut.name}", marks=marks)


@pytest.mark.parametrize(("database", "cut", "expected"), list(_lives()))
def test_killed_in_a_workers_life_the_plan_names_what_is_open_and_applying_it_ends_as_undisturbed(
    database_of, shop_server, outside, tmp_path, database, cut, expected
):
    outside.begin(busy=False)
    made = database_of(database)
    args = {"url": made.victim_url, "port": outside.port, "folder": str(tmp_path)}
    nth = NTH.get(cut.name.partition(":")[0], 1)
    death = shop_server.fork(WORKS, args, kill_at=cut.name, nth=nth).wait()
    if death.status == 0:
        assert death.reached.count(cut.name) < nth
        pytest.skip("this life does not reach that statement")
    assert death.status == -signal.SIGKILL, death.error
    made.settle()
    outside.settle()
    run_out(made.raw)
    plan = plan_of(made)
    moved_on = [name for name in expected if name != "task_done"]  # the next checkpoint was committed along with it
    assert named(plan) in [expected, moved_on]
    _applied_with(made, shop_server, outside, tmp_path, plan)
    assert check_invariants(read_rows(made.runtime.engine)) == []
    assert [len(keys) for keys in outside.sold.values()] == [1], "bought once, whatever died"


def _applied_with(made, shop_server, outside, folder, plan):
    url = made.victim_url.replace("=victim", "=second")
    more = {"place": "node", "shape": "call", "policy": "ask", "way": "sync", "folder": str(folder)}
    for _ in range(ROUNDS_MAX):
        args = {"url": url, "port": outside.port, "run_id": plan.run_id, "plan": plan.hash, **more}
        death = shop_server.fork(APPLIES, args).wait()
        assert death.status == 0, death.error
        (status, did, output) = death.told[-1][1]
        if status == "succeeded":
            assert output == ends_with("node", "call")
            assert did in {("claimed", "executed"), ()}
            assert {domain.state for domain in made.runtime.runs.domains(plan.run_id)} <= {"revoked"}
            return
        assert status == "waiting_approval"
        (asked,) = [item for item in plan_of(made).items if item.kind == "call"]
        happened = bool(outside.sold)
        result = receipt("a") if happened else None
        made.runtime.runs.resolve(asked.subject, happened=happened, result=result)
        plan = plan_of(made)
    raise AssertionError("it never ends")
