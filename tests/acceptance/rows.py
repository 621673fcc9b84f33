"""The acceptance matrices of the specification: what is required, and the tests that show it.

``docs/acceptance.md`` is drawn from :data:`ROWS` by ``docs/generate.py``. This file imports nothing of the package.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One row of a matrix.

    Attributes:
        scenario: what happens.
        required: what must be the result.
        forbidden: what must not.
        tests: ``file::name`` below ``tests/``.
        here: what the row means in this package, where it says more or something else, or why it has no test.

    """

    scenario: str
    required: str
    forbidden: str = ""
    tests: tuple[str, ...] = ()
    here: str = ""


GROUPS = {
    "A": "States that are proved",
    "V": "State model and transactions",
    "DB": "Faults of process, database and content",
}
"""Headings of the page, by the letters of an id."""

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
    "V1": Row(
        "one trigger is delivered twice",
        "one run",
        tests=(
            "runs/test_start.py::test_eight_threads_with_one_key_start_one_run",
            "runs/test_start.py::test_the_same_key_and_request_is_the_same_run",
            "runs/test_start.py::test_the_same_key_with_another_request_is_refused",
        ),
    ),
    "V2": Row(
        "two transitions at once",
        "one succeeds, the others are told of a conflict",
        tests=(
            "acceptance/test_verification.py::test_v2_of_transitions_at_once_one_succeeds_and_the_others_are_told_of_a_conflict",
            "concurrency/test_fence_rules.py::test_2_the_version_a_cold_command_expects_is_read_behind_the_lock",
        ),
    ),
    "V3": Row(
        "the run's update fails",
        "there is no event of it",
        tests=(
            "acceptance/test_verification.py::test_v3_v4_when_the_run_or_its_event_cannot_be_written_nothing_is",
            "faults/test_kill_sqlite.py::test_a_second_process_finishes",
            "faults/test_kill_postgresql.py::test_a_second_process_finishes",
        ),
    ),
    "V4": Row(
        "the event cannot be appended",
        "the run's state is not committed",
        tests=("acceptance/test_verification.py::test_v3_v4_when_the_run_or_its_event_cannot_be_written_nothing_is",),
    ),
    "V5": Row(
        "success is reported twice",
        "one end",
        tests=(
            "acceptance/test_verification.py::test_v5_the_same_end_told_twice_is_one_end",
            "contract/test_report_callback.py::test_a_duplicate_or_overtaken_report_changes_nothing_anywhere",
        ),
    ),
    "V6": Row(
        "cancel and success at once",
        "the first command decides; a late report does not overwrite the end",
        tests=(
            "acceptance/test_verification.py::test_v6_of_a_cancel_and_an_end_at_once_the_first_one_decides",
            "contract/test_finalize_run.py::test_the_first_stop_reason_decides_and_the_result_is_kept",
            "contract/test_finalize_run.py::test_a_final_run_never_changes",
            "contract/test_report_callback.py::test_one_small_event_tells_of_reports_that_came_too_late",
        ),
    ),
    "V7": Row(
        "an automatic retry",
        "a new attempt of the same run",
        tests=("worker/test_retries.py::test_a_proved_failure_is_tried_again_from_the_last_step",),
    ),
    "V8": Row(
        "a person's retry",
        "a new run that names the old one",
        tests=(
            "contract/test_retry_run.py::test_it_is_a_new_run_and_the_old_one_stays_as_it_is",
            "worker/test_retry_and_fork.py::test_a_retry_goes_on_where_the_run_stopped",
        ),
    ),
    "V9": Row(
        "a restart",
        "what runs goes on, what nobody holds is lost; nothing is set back in bulk",
        tests=(
            "acceptance/test_verification.py::test_v9_whoever_opens_the_database_again_sets_nothing_back",
            "recovery/test_who_comes_back.py::test_who_comes_back",
        ),
    ),
    "V10": Row(
        "the old store of states and the new one differ",
        "it is found, and where",
        tests=(
            "faults/test_invariants.py::test_damage_is_seen",
            "soak/test_live_invariants.py::test_damage_is_seen",
        ),
        here="There is no second store: what is shown is derived when it is read. That events, attempts and runs tell "
        "the same is an invariant, and a difference names the row.",
    ),
    "V11": Row(
        "SQLite is busy",
        "bounded tries, no event twice",
        tests=(
            "connections/test_sqlite_files.py::test_f7_a_lock_that_outlasts_the_timeout_is_a_typed_refusal_for_everyone_who_waits",
            "connections/test_sqlite_files.py::test_f7_a_write_lock_of_another_process_fails_no_command_and_loses_no_lease",
            "soak/test_workers.py::test_workers_that_are_killed_and_stopped_finish_every_run_and_repeat_no_effect_unnoticed",
        ),
    ),
    "V12": Row(
        "payloads of events",
        "no secret and no log in them",
        tests=(
            "events/test_run_events.py::test_nothing_but_what_its_type_allows_is_ever_said",
            "events/test_event_types.py::test_a_command_that_says_too_much_writes_nothing",
            "events/test_event_types.py::test_a_payload_over_the_limit_leaves_its_size",
            "user_pains/test_i_secrets.py::test_a_key_in_configurable_is_in_no_file_of_the_database_no_bundle_and_no_log",
        ),
    ),
    "V13": Row(
        "a run that says much",
        "its events do not grow with it",
        tests=(
            "acceptance/test_verification.py::test_v13_what_a_run_says_does_not_make_its_events_more_nor_larger",
            "events/test_stream.py::test_nothing_is_sent_that_nobody_reads",
        ),
    ),
    "V14": Row(
        "PostgreSQL and SQLite",
        "they pass the same contracts",
        tests=("acceptance/test_verification.py::test_v14_every_command_has_its_contract_on_every_database",),
    ),
    "DB-01": Row(
        "content is stored, its command is not committed",
        "no row is visible; what nobody refers to is collected, never what somebody does",
        tests=(
            "saver/test_large_content.py::test_killed_between_two_parts_nothing_is_visible_and_the_next_one_stores_the_rest",
            "collecting/test_interleavings.py::test_no_interleaving_of_writers_and_collections_leaves_a_reference_without_content",
            "collecting/test_processes.py::test_two_processes_write_and_delete_while_others_collect_and_nothing_dangles",
        ),
    ),
    "DB-02": Row(
        "a call is permitted, its request not sent yet",
        "one ticket, one frozen request, at most one valid first attempt",
        tests=(
            "journal_kills/test_kill_matrix.py::test_killed_at_any_cut_it_is_sold_once_or_told_so",
            "journal/test_unknown.py::test_after_sigkill_inside_the_call",
            "acceptance/test_budgets.py::test_a_killed_call_keeps_its_ticket_and_the_next_worker_takes_no_second_one_and_stops_at_the_limit",
            "worker/test_child_budgets.py::test_a_ticket_that_a_dead_child_had_reserved_is_taken_by_the_next_try_and_the_limit_holds",
            "faults/test_connection_loss.py::test_an_operation_begun_by_a_lost_reply_may_be_called_and_only_by_its_beginner",
        ),
        here="They are one command: `begin_operation`, with a budget `begin_with_ticket` or `begin_in_invocation`.",
    ),
    "DB-03": Row(
        "the call's result is stored",
        "it is not made again, only the hooks that are left run",
        tests=(
            "middleware/test_killed.py::test_db03_a_stored_raw_answer_is_not_asked_for_again_only_the_hooks_that_are_left_run",
            "journal/test_results.py::test_a_node_that_langgraph_tries_again_gets_the_stored_result",
            "user_pains/test_b_crashes.py::test_b1_no_effect_is_repeated_after_a_kill_in_a_write",
        ),
    ),
    "DB-04": Row(
        "a hook's result is stored and not applied",
        "it is applied once, the context's revision goes up once",
        tests=(
            "middleware/test_killed.py::test_db04_a_decision_that_is_stored_and_not_applied_is_applied_once",
            "middleware/test_hooks.py::test_stored_decisions_are_applied_again_when_the_task_runs_again_and_nobody_is_asked",
        ),
        here="A decision is applied by making the same request from it again: nothing is stored for that.",
    ),
    "DB-05": Row(
        "a task has ended, nobody was told",
        "what follows begins, the task is not run again",
        tests=(
            "acceptance/test_database_faults.py::test_db05_db06_tasks_whose_results_are_stored_are_not_run_again_and_join_once",
        ),
    ),
    "DB-06": Row(
        "two of three branches have ended",
        "their results stay, the third goes on, they are joined once",
        tests=(
            "acceptance/test_database_faults.py::test_db05_db06_tasks_whose_results_are_stored_are_not_run_again_and_join_once",
        ),
    ),
    "DB-07": Row(
        "two new workers race for a run",
        "one active epoch; the old worker is refused",
        tests=(
            "acceptance/test_database_faults.py::test_db07_of_workers_that_race_for_a_run_one_has_an_active_epoch_and_the_old_one_is_refused",
        ),
    ),
    "DB-08": Row(
        "the old process cannot be proved to have stopped",
        "nobody starts by the lease alone",
        tests=(
            "domains/test_takeover.py::test_a_process_of_another_machine_stays_unproved_until_a_person_says_so_and_nothing_starts",
            "domains/test_takeover.py::test_a_stopped_process_of_a_dead_worker_is_killed_and_proved_gone_before_the_run_goes_on",
        ),
    ),
    "DB-09": Row(
        "an end and a new input want the same lock",
        "no deadlock, no input lost, one active run",
        tests=(
            "acceptance/test_database_faults.py::test_db09_ends_and_new_inputs_of_one_thread_at_once_lose_no_input_and_never_run_together",
        ),
    ),
    "DB-10": Row(
        "a commit succeeds and its reply is lost",
        "sent again it gets its receipt, nothing is counted twice",
        tests=(
            "faults/test_kill_sqlite.py::test_a_second_process_finishes",
            "faults/test_kill_postgresql.py::test_a_second_process_finishes",
            "faults/test_connection_loss.py::test_the_coordinator_finds_out_by_itself",
            "journal_kills/test_kill_matrix.py::test_killed_at_any_cut_it_is_sold_once_or_told_so",
            "connections/test_lost_connections.py::test_f2_ended_when_the_put_was_stored_and_only_the_answer_is_missing",
        ),
        here="Each command is killed behind its commit in a real process; a second one sends it again.",
    ),
    "DB-11": Row(
        "a snapshot is made while ten steps are committed",
        "heads do not go back",
        tests=("runs/test_prune.py::test_a_checkpoint_that_is_stored_meanwhile_is_what_stays",),
        here="Snapshots are the heads that `prune` makes hold all values.",
    ),
    "DB-12": Row(
        "one unit is left, two want it",
        "one gets it, the other waits",
        tests=(
            "capacity/test_gates_wait.py::test_of_two_claims_for_the_last_slot_one_is_refused",
            "capacity/test_gates_wait.py::test_of_two_claims_for_the_last_place_of_a_graph_one_is_refused",
            "acceptance/test_budgets.py::test_db12_of_two_processes_at_the_last_ticket_one_gets_it_and_the_other_waits_until_it_is_settled",
            "acceptance/test_budgets.py::test_a_killed_call_keeps_its_ticket_and_the_next_worker_takes_no_second_one_and_stops_at_the_limit",
            "journal/test_budgets.py::test_of_two_calls_at_the_last_ticket_one_waits_and_is_ended_only_when_that_is_consumed",
        ),
        here="Of slots, places and tickets of a budget, of the run and of an invocation.",
    ),
    "DB-13": Row(
        "deleting is interrupted",
        "it goes on where it was; nothing is left that nobody can find",
        tests=(
            "faults/test_kill_sqlite.py::test_a_second_process_finishes",
            "faults/test_kill_postgresql.py::test_a_second_process_finishes",
        ),
        here="A thread is deleted in one transaction, and its content is collected by what refers to it. Deleting an "
        "owner comes later.",
    ),
}
"""By id, in the order of the page."""
