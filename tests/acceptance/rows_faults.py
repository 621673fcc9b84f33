"""Rows DB: faults of process, database and content."""

from __future__ import annotations

from tests.acceptance.row import Row

ROWS: dict[str, Row] = {
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
