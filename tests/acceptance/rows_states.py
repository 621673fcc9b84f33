"""Rows A: states that are proved."""

from __future__ import annotations

from tests.acceptance.row import Row

ROWS: dict[str, Row] = {
    "A1": Row(
        "claimed, start not sent",
        "`starting`",
        "`running`",
        ("acceptance/test_states.py::test_a1_claimed_and_start_not_sent_is_starting",),
    ),
    "A2": Row(
        "accepted by the runtime, nothing active yet",
        "`waiting_runtime`",
        "`starting` or `running`",
        ("acceptance/test_states.py::test_a2_accepted_without_activity_is_waiting_for_its_runtime",),
    ),
    "A3": Row(
        "the answer to the start is lost",
        "`unknown`, capacity held",
        "the same attempt delivered again, a second run",
        (
            "acceptance/test_states.py::test_a3_when_the_answer_to_the_start_is_lost_it_is_unknown_and_never_delivered_again",
            "capacity/test_gates.py::test_a_run_holds_its_slot_until_its_end_is_proved",
            "contract/test_release_claim.py::test_past_the_start_fence_nothing_is_given_back",
            "worker/test_subprocesses.py::test_a_worker_killed_between_two_steps_leaves_nothing_unproved",
        ),
    ),
    "A4": Row(
        "the first report of the runtime",
        "`running`, with time and sequence of the evidence",
        "a heartbeat as proof",
        (
            "acceptance/test_states.py::test_a4_the_first_report_makes_it_running_with_time_and_sequence",
            "contract/test_report_attempt_event.py::test_attempt_and_run_are_running",
        ),
    ),
    "A5": Row(
        "a report without sequence, doubled, overtaken, or behind the end",
        "it changes nothing anywhere",
        "events or views that pass the gate",
        (
            "contract/test_report_callback.py::test_a_duplicate_or_overtaken_report_changes_nothing_anywhere",
            "contract/test_report_callback.py::test_one_small_event_tells_of_reports_that_came_too_late",
            "contract/test_report_callback.py::test_a_lost_attempt_stays_lost_and_what_is_seen_of_it_is_kept",
            "contract/test_report_callback.py::test_a_lost_run_that_somebody_took_over_is_not_given_back",
        ),
    ),
    "A6": Row(
        "cancelled before its start",
        "`cancelled` at once",
        "a cancel that is sent to a runtime",
        (
            "acceptance/test_states.py::test_a6_cancelled_before_its_start_it_is_cancelled_at_once",
            "worker/test_cancelling.py::test_a_run_of_which_nothing_runs_ends_at_once",
        ),
    ),
    "A7": Row(
        "cancelled after its start",
        "`cancelling` until it is proved to have stopped",
        "`cancelled` at once",
        (
            "acceptance/test_states.py::test_a7_cancelled_after_its_start_it_is_cancelling_until_it_is_proved_to_have_stopped",
            "worker/test_cancelling.py::test_a_run_that_is_executed_takes_no_new_work_and_ends_when_it_has_stopped",
            "domains/test_takeover.py::test_a_cancelled_run_ends_only_when_its_process_is_proved_gone",
        ),
    ),
    "A8": Row(
        "the lease runs out before the start",
        "the same attempt is queued, no retry counted",
        "a second attempt",
        (
            "acceptance/test_states.py::test_a8_left_before_its_start_it_is_queued_with_the_same_attempt_and_no_retry_counted",
            "contract/test_claim_run.py::test_a_run_left_before_its_start_fence_keeps_its_attempt",
        ),
    ),
    "A9": Row(
        "the lease runs out after a possible start",
        "`unknown`, reconciled, capacity held",
        "failed or queued by time alone",
        (
            "acceptance/test_states.py::test_a9_left_after_its_start_it_is_unknown_and_neither_failed_nor_queued",
            "capacity/test_gates.py::test_a_run_holds_its_slot_until_its_end_is_proved",
            "contract/test_report_callback.py::test_a_lost_run_that_is_seen_running_runs_under_its_old_epoch_again",
            "contract/test_report_callback.py::test_a_lost_run_of_which_the_end_is_reported_ends",
        ),
    ),
    "A10": Row(
        "a failure that is proved, and its retry",
        "the old attempt failed, the next one is another row",
        "the old one queued again",
        (
            "acceptance/test_states.py::test_a10_a_proved_failure_ends_its_attempt_and_the_next_one_is_another_row",
            "worker/test_retries.py::test_a_proved_failure_is_tried_again_from_the_last_step",
        ),
    ),
    "A11": Row(
        "reading, again and again",
        "nothing changes",
        "a change when read",
        ("acceptance/test_states.py::test_a11_reading_changes_nothing_whatever_is_read",),
    ),
    "A12": Row(
        "several views of one run",
        "the same state in all of them",
        "waiting or claimed shown as running",
        ("acceptance/test_states.py::test_a12_every_view_shows_the_same_state",),
        "`run.record()`, `runs.list()`, the recovery bundle, `run list`, `run show` and `run why`.",
    ),
    "A13": Row(
        "the report of capacity is missing, expired, or another instance's",
        "nothing is claimed, what is there stays",
        "a constant, or capacity that the caller names",
        (
            "capacity/test_gates.py::test_a_report_that_does_not_count_stops_claiming_and_changes_nothing",
            "capacity/test_gates.py::test_a_claim_has_no_say_in_capacity",
        ),
    ),
    "A14": Row(
        "the runtime and a claim name the same task",
        "it counts once",
        "full by counting twice",
        ("capacity/test_gates.py::test_a_task_that_the_instance_and_the_database_both_know_counts_once",),
    ),
    "A15": Row(
        "a task of somebody else, and a claim not delivered yet",
        "both count",
        "the maximum of two counters",
        ("capacity/test_gates.py::test_a_task_of_somebody_else_and_a_claim_not_seen_yet_both_count",),
    ),
    "A16": Row(
        "one graph has reached its limit",
        "others are claimed in turn",
        "starvation, a limit that a second route does not know",
        (
            "capacity/test_gates.py::test_a_graphs_limit_is_one_over_all_instances",
            "capacity/test_gates.py::test_every_route_to_an_instance_shares_its_slots",
            "contract/test_claim_next.py::test_graphs_take_turns_and_a_turn_that_somebody_had_meanwhile_is_refused",
            "capacity/test_many_claimers.py::test_a_hundred_thousand_runs_of_one_graph_delay_another_graph_by_one_claim",
        ),
    ),
    "A17": Row(
        "more than one run at a time in a directory that cannot be isolated",
        "refused when it is registered, verified again before the start",
        "two attempts in one directory",
        (
            "capacity/test_workspaces.py::test_a_shared_plain_directory_with_more_than_one_run_at_a_time_is_refused_at_registration",
            "capacity/test_workspaces.py::test_it_is_verified_again_before_the_start",
            "capacity/test_workspaces.py::test_attempts_at_the_same_time_have_worktrees_of_their_own_that_are_removed",
        ),
    ),
    "A18": Row(
        "“run now” while all slots are taken",
        "it goes to the front and waits",
        "one run more than there are slots",
        (
            "capacity/test_gates.py::test_run_now_on_a_full_instance_moves_to_the_front_and_waits",
            "worker/test_in_process.py::test_a_run_that_shall_come_now_is_the_next_one_and_exceeds_no_slot",
        ),
    ),
    "A19": Row(
        "migration of a database in use",
        "tables are only added to, open runs go on",
        "rows that are lost or set back",
        (
            "migration/test_rolling_upgrade.py::test_open_runs_of_every_status_of_an_earlier_version_go_on",
            "migration/test_schema.py::test_the_declared_schema_is_the_migrated_one",
        ),
        "The specification forbids new tables in a schema that belongs to somebody else. These are the package's own: "
        "a minor version adds tables and columns with defaults, so that code of the version before goes on writing.",
    ),
}
