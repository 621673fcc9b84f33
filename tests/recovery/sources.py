"""Where the rows of the recovery table come from, and the tests that show each. docs/recovery.md is drawn from it.

This file imports nothing of the package.
"""

from __future__ import annotations

from typing import NamedTuple

LATER = "the agent's own graph"
"""Part of the specification that does not exist here yet: an agent engine with tasks, waits and branches of its own."""


_NOT_HERE = f"Not here: it is part of {LATER}."


class Source(NamedTuple):
    """A row of the specification.

    Attributes:
        where: ``004`` (§7.2 of the seed) or ``domain`` (§5 of the design).
        found: what is found.
        done: what is required.
        rules: rows of the table that are it.
        here: what it means here; of rows that do not exist yet, why.

    """

    where: str
    found: str
    done: str
    rules: tuple[str, ...] = ()
    here: str = ""


SOURCES = (
    Source(
        "004",
        "ready task, pending intent",
        "the same task, activated anew under its id",
        ("task_failed", "task_asked", "run_left"),
        (
            "For tasks of a LangGraph graph: their ids follow from the checkpoint, so they come back "
            "under the same ones. Intents are of the agent's own graph."
        ),
    ),
    Source(
        "004",
        "running task whose activation is stale",
        "the old activation is abandoned, it goes on from its checkpoint",
        ("run_left", "run_left_with_runtime"),
        ("The attempt is the activation: it is lost, and a takeover's attempt goes on at the last checkpoint."),
    ),
    Source(
        "004",
        "wait_batch",
        "all members are settled before the task is woken",
        (),
        _NOT_HERE,
    ),
    Source(
        "004",
        "permit without an attempt",
        "control is checked, the first attempt begins, its ticket is not reserved again",
        ("call_not_sent", "ticket_held"),
    ),
    Source(
        "004",
        "an attempt with a handle that can be asked about",
        "the original is asked, its result stored; nothing is tried again first",
        ("call_unknown_reconcile", "run_left_with_runtime"),
    ),
    Source(
        "004",
        "an attempt whose outcome is unknown",
        "reconciled first; then unknown or an error by policy, and no claim that nothing happened",
        ("call_unknown_reconcile", "call_unknown_ask", "call_unknown_retry", "call_unknown_fail", "call_given_up"),
    ),
    Source(
        "004",
        "raw_saved, response_hooks",
        "only the hooks behind it run; nothing is called",
        ("call_answer_saved",),
    ),
    Source(
        "004",
        "a completed operation, not consumed",
        "the stored response is returned; consuming is idempotent",
        ("call_stored", "call_failed", "ticket_owed"),
    ),
    Source(
        "004",
        "a hook started, without a result",
        "fetched; else indeterminate, and the chain goes on; not asked again",
        ("hook_fetch", "hook_indeterminate"),
    ),
    Source(
        "004",
        "a child task is final, its member is not settled",
        "its result moves the delegation on",
        (),
        _NOT_HERE,
    ),
    Source(
        "004",
        "branch A1 is done, A2 is ready",
        "A2 starts with the stored cursor; A1 does not run again",
        ("task_done",),
        (
            "Of LangGraph's parallel tasks those with stored writes do not run again. Cursors of branches"
            " are part of the agent's own graph."
        ),
    ),
    Source(
        "004",
        "a join is consumed, its successor not activated",
        "the stored intent is activated; nothing is merged again",
        (),
        _NOT_HERE,
    ),
    Source(
        "004",
        "stopping",
        "it is only brought to an end; no further step",
        ("run_to_end", "run_stopping_held", "call_left_open"),
    ),
    Source(
        "004",
        "terminal",
        "cleanup and questions only; nothing starts, no late result counts",
        ("run_final", "call_left_open"),
    ),
    Source(
        "domain",
        "no attempt, permit exists",
        "check control, start the first attempt; the ticket is not reserved again",
        ("call_not_sent", "ticket_held"),
    ),
    Source(
        "domain",
        "attempt started, the outside can be asked",
        "ask it, store its answer",
        ("call_unknown_reconcile",),
    ),
    Source(
        "domain",
        "attempt started, nothing to ask",
        "on_unknown: retry with the same key, fail, or ask a person",
        ("call_unknown_retry", "call_unknown_fail", "call_unknown_ask"),
    ),
    Source(
        "domain",
        "raw result saved",
        "only the remaining hooks run; the call is never repeated",
        ("call_answer_saved",),
    ),
    Source(
        "domain",
        "completed, not consumed",
        "the stored response is returned; consuming is idempotent",
        ("call_stored",),
    ),
    Source(
        "domain",
        "hook started, no result",
        "fetch it if it can be fetched, else indeterminate; the chain goes on without it",
        ("hook_fetch", "hook_indeterminate"),
    ),
)

_TABLE = "recovery/test_table.py::test_"
_KILLS = "recovery/test_kills.py::test_killed_in_"
_CALLS = _KILLS + "a_call_the_plan_names_what_is_open_and_applying_it_ends_as_undisturbed"
_LIVES = _KILLS + "a_workers_life_the_plan_names_what_is_open_and_applying_it_ends_as_undisturbed"
_PLANS = "recovery/test_plans.py::test_"
_RULE = _TABLE + "each_situation_of_a_run_is_its_row"
_CALL = _TABLE + "each_situation_of_a_call_is_its_row"
_POINTS = "journal/test_crash_points.py::test_what_the_table_says_of_it_is_so"

SHOWN = {
    "run_final": (
        _RULE,
        _LIVES,
    ),
    "run_stopping_held": (_RULE,),
    "run_held": (
        _RULE,
        _PLANS + "a_run_that_is_held_is_left_alone",
    ),
    "run_to_end": (
        _RULE,
        _PLANS + "a_stopped_run_that_nobody_holds_is_ended_and_no_node_runs",
    ),
    "run_manual_left": (_RULE,),
    "run_not_started": (
        _RULE,
        _LIVES,
    ),
    "run_not_started_again": (_RULE,),
    "run_crash_loop": (
        _RULE,
        _PLANS + "a_run_that_crashed_its_workers_too_often_is_given_up",
    ),
    "run_left_with_runtime": (
        _RULE,
        "worker/test_runtimes.py::test_what_a_lost_attempt_had_returned_counts_and_is_not_executed_again",
    ),
    "run_left": (
        _RULE,
        _CALLS,
        _LIVES,
    ),
    "run_queued": (
        _RULE,
        _LIVES,
    ),
    "run_resumes": (
        _RULE,
        _CALLS,
    ),
    "run_retry_due": (
        _RULE,
        _PLANS + "a_due_retry_is_executed_and_one_to_come_is_left_alone",
    ),
    "run_retry_later": (
        _RULE,
        _PLANS + "a_due_retry_is_executed_and_one_to_come_is_left_alone",
    ),
    "run_asks": (
        _RULE,
        _CALLS,
    ),
    "run_created": (_RULE,),
    "domain_used": (_TABLE + "domains_tasks_and_tickets_have_their_rows",),
    "domain_left": (
        _LIVES,
        _PLANS + "nothing_starts_before_the_older_writer_is_proved_revoked",
    ),
    "task_done": (
        _TABLE + "domains_tasks_and_tickets_have_their_rows",
        _PLANS + "of_parallel_tasks_those_with_a_result_do_not_run_again",
    ),
    "task_failed": (
        _TABLE + "domains_tasks_and_tickets_have_their_rows",
        _PLANS + "of_parallel_tasks_those_with_a_result_do_not_run_again",
    ),
    "task_asked": (_TABLE + "domains_tasks_and_tickets_have_their_rows",),
    "call_in_flight": (_TABLE + "a_call_of_a_live_run_is_in_flight_and_one_of_a_run_that_ends_is_left_open",),
    "call_left_open": (_TABLE + "a_call_of_a_live_run_is_in_flight_and_one_of_a_run_that_ends_is_left_open",),
    "call_passed": (_TABLE + "a_call_whose_task_is_behind_the_last_checkpoint_is_passed",),
    "call_stored": (
        _CALL,
        _CALLS,
        _POINTS,
    ),
    "call_answer_saved": (
        _CALL,
        _CALLS,
    ),
    "call_not_sent": (
        _CALL,
        _PLANS + "a_call_that_was_never_sent_is_made_once_and_takes_no_second_ticket",
    ),
    "call_try_failed": (
        _CALL,
        _CALLS,
        _POINTS,
    ),
    "call_failed": (_CALL, _PLANS + "the_ticket_of_a_call_whose_failure_was_stored_last_is_settled"),
    "call_failed_before": (_CALL,),
    "call_stated_not": (
        _CALL,
        _CALLS,
    ),
    "call_given_up": (
        _CALL,
        _POINTS,
    ),
    "call_unknown_retry": (
        _CALL,
        _CALLS,
        _POINTS,
    ),
    "call_unknown_fail": (
        _CALL,
        _POINTS,
    ),
    "call_unknown_ask": (
        _CALL,
        _CALLS,
        _POINTS,
    ),
    "call_unknown_reconcile": (
        _CALL,
        _POINTS,
    ),
    "hook_fetch": (
        _CALL,
        "middleware/test_killed.py::test_a_hook_that_was_running_is_fetched_or_indeterminate_and_never_asked_again",
    ),
    "hook_indeterminate": (
        _CALL,
        "middleware/test_killed.py::test_a_hook_that_was_running_is_fetched_or_indeterminate_and_never_asked_again",
    ),
    "ticket_held": (
        _TABLE + "domains_tasks_and_tickets_have_their_rows",
        _CALLS,
    ),
    "ticket_owed": (
        _TABLE + "domains_tasks_and_tickets_have_their_rows",
        _CALLS,
    ),
}
"""Each row of the table, and the tests that show it: in the pure table, and by real processes."""
