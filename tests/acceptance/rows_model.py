"""Rows V: the state model and its transactions."""

from __future__ import annotations

from tests.acceptance.row import Row

ROWS: dict[str, Row] = {
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
}
