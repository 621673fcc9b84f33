"""Rows A to E: ownership, crashes, effects, growth."""

from __future__ import annotations

from tests.user_pains.pain import Pain

ROWS: dict[str, Pain] = {
    "A1": Pain(
        "two workers continue one thread at the same moment",
        "Both updates are stored one behind the other, or one caller gets `StaleWriter` (`ThreadOwned` for owned "
        "runs). Every stored checkpoint is an ancestor of the tip.",
        (
            "saver/test_two_processes.py::test_two_processes_that_continue_one_thread_never_both_succeed_with_one_update",
        ),
    ),
    "A2": Pain(
        "a run that was replaced writes late",
        "`LeaseLost` for put and put_writes, also when nobody holds the lease any more; not a row of it is stored.",
        (
            "saver/test_two_processes.py::test_a_stale_owner_writes_nothing_although_nobody_holds_the_lease",
            "saver/test_two_processes.py::test_a_stopped_owner_that_wakes_after_a_takeover_writes_nothing",
        ),
    ),
    "A4": Pain(
        "a worker claims a run again that it had lost before",
        "Its name proves nothing, the epoch does: renewal, release, end, put, put_writes and journal of the attempt "
        "before are `LeaseLost` and change no row; the lease is judged by the database's clock, in the transaction of "
        "the write.",
        (
            "user_pains/test_a_leases.py::test_a4_the_same_worker_that_claims_again_is_not_the_one_it_was",
            "concurrency/test_fence_rules.py::test_1_a_lease_that_runs_out_while_waiting_for_a_holder_that_changes_nothing_is_refused",
        ),
    ),
    "A6": Pain(
        "a run that crashes its worker each time",
        "After three takeovers in a row without progress it is failed as `crash_loop`, its lease is gone, the thread "
        "takes new work, and the inspector names each attempt with its worker.",
        (
            "worker/test_processes.py::test_a_run_that_kills_its_workers_ends_as_a_crash_loop",
            "contract/test_claim_run.py::test_takeovers_without_progress_become_a_crash_loop_and_progress_begins_the_count_anew",
        ),
    ),
    "A8": Pain(
        "somebody edits a thread while its run works",
        "Edits, deletes and prunes are refused with `ThreadOwned`; a copy is whole; reads wait for nobody; the run's "
        "result is what it was.",
        (
            "user_pains/test_a_ownership.py::test_a8_a_thread_in_use_is_not_edited_and_is_copied_whole",
            "saver/test_session.py::test_while_it_lives_others_may_read_but_not_write",
        ),
    ),
    "A10": Pain(
        "one saver and one graph serve many threads at once",
        "Each thread has its own values, lease and journal; losing one stops that one; put and put_writes of one "
        "thread at once both land.",
        (
            "user_pains/test_a_ownership.py::test_a10_fifty_threads_share_a_saver_and_a_graph_and_keep_apart",
            "user_pains/test_a_ownership.py::test_a10_put_and_put_writes_of_one_thread_at_once_both_land",
        ),
    ),
    "B1": Pain(
        "killed while the next checkpoint is being stored",
        "What went through `@operation` is not done again, wherever the process dies; the state is right.",
        ("user_pains/test_b_crashes.py::test_b1_no_effect_is_repeated_after_a_kill_in_a_write",),
    ),
    "B2": Pain(
        "a crash before the first checkpoint was durable",
        "What was accepted is a row: it is found as admitted, with its input and without a checkpoint, and finished by "
        "another worker. The same key twice is one run; what was never submitted is unknown.",
        (
            "user_pains/test_b_admission.py::test_b2_a_run_whose_worker_died_before_its_first_checkpoint_is_finished_with_its_input",
        ),
    ),
    "B3": Pain(
        "cancelled in the middle of a parallel step",
        "What was cancelled is shown, what was done is kept, and only the rest runs again, in every durability mode.",
        (
            "user_pains/test_b_crashes.py::test_b3_a_cancelled_parallel_step_shows_what_was_cancelled_and_keeps_the_rest",
        ),
    ),
    "B7": Pain(
        "recovery starts in the process that is running the workflow",
        "A live run is never adopted, by whatever process: its body is entered once. A dead one is taken over once.",
        (
            "worker/test_in_process.py::test_its_own_live_run_is_not_adopted",
            "worker/test_processes.py::test_a_killed_workers_run_is_finished_by_another",
        ),
    ),
    "C1": Pain(
        "a node asks a person twice or in a loop: its whole body runs again at each answer",
        "Each call before a question is made once, however often the body runs and whichever process does; its "
        "position stays what it was.",
        (
            "user_pains/test_c_effects.py::test_c1_a_node_that_asks_in_a_loop_repeats_nothing_whoever_answers",
            "journal/test_results.py::test_three_questions_in_a_loop_call_three_times",
            "journal/test_results.py::test_an_answered_interrupt_does_not_call_again",
        ),
    ),
    "C2": Pain(
        "one message asks for a tool and for a person: after the answer the tool acted again",
        "The tool acts once whoever resumes; its message has the first receipt, messages stand in the order of calls.",
        ("user_pains/test_c_agents.py::test_c2_a_tool_beside_one_that_asks_a_person_acts_once_and_keeps_its_message",),
    ),
    "C3": Pain(
        "killed between what was done outside and its record",
        "Before it is sent: made once. Between the sending and the record: a person is asked and it is not made again, "
        "or it is made again under the same key where you declared that; the journal says `unknown`. Behind the "
        "record, or the checkpoint: the stored result is given. So at every cut of every command of the journal, in a "
        "node, a tool, a task, a parallel Send.",
        (
            "journal_kills/test_kill_matrix.py::test_killed_at_any_cut_it_is_sold_once_or_told_so",
            "journal/test_crash_points.py::test_what_the_table_says_of_it_is_so",
            "user_pains/test_b_crashes.py::test_b1_no_effect_is_repeated_after_a_kill_in_a_write",
        ),
    ),
    "C4": Pain(
        "a process died between a model's tool call and its answer: the thread was dead for every later model call",
        "Going on first runs the tools, once; their messages stand behind the one that asked, and a new message works. "
        "Who sends a message without going on first is shown the calls that dangle: `runtime-persist thread calls`.",
        (
            "user_pains/test_c_agents.py::test_c4_who_skips_the_recovery_is_shown_the_call_that_nobody_answered",
            "user_pains/test_c_agents.py::test_c4_an_answered_call_is_not_listed",
            "user_pains/test_c_agents.py::test_c4_killed_between_a_models_tool_calls_and_their_answers_the_thread_lives_on",
            "middleware/test_killed.py::test_killed_anywhere_the_agent_ends_as_if_undisturbed_and_only_what_is_declared_is_repeated",
        ),
    ),
    "C7": Pain(
        "ids made anew after a recovery",
        "Run, operations and idempotency keys are those of the first attempt, with their first time stamps; the "
        "inspector shows one run with two attempts.",
        ("user_pains/test_c_identity.py::test_c7_a_recovery_elsewhere_has_the_ids_and_keys_of_the_first_attempt",),
    ),
    "D1": Pain(
        "an agent looped between two nodes for hours: the limit of steps began again at every call",
        "A budget belongs to the work, not to the call: it counts over calls, processes, crashes and retries. Nothing "
        "starts beyond it, the run waits with a typed question that is stored and shown, and raising it goes on from "
        "there.",
        (
            "user_pains/test_d_budgets.py::test_d1_a_loop_stops_at_its_budget_over_calls_processes_and_a_crash_and_goes_on_when_it_is_raised",
            "journal/test_budgets.py::test_invoking_again_never_resets_a_limit",
            "journal/test_retried_budgets.py::test_a_retry_goes_on_with_what_was_consumed_and_the_limits_that_were_raised",
        ),
    ),
    "E1": Pain(
        "long chats and big static data, stored again at every step",
        "A value is stored once, whatever the thread; the inspector gives bytes by channel.",
        (
            "saver/test_put_and_get.py::test_equal_content_is_stored_once_whatever_the_thread",
            "user_pains/test_bundles.py::test_e1_a_bundle_says_which_channel_is_large_how_it_grew_and_what_is_shared",
            "user_pains/test_e_sizes.py::test_e3_a_channel_that_doubles_is_refused_by_name_before_it_is_written_and_the_inspector_shows_it",
        ),
        "bytes of fifty turns beside half a megabyte, of ten threads that share it",
    ),
    "E3": Pain(
        "a reducer channel that doubles each step",
        "`ValueTooLarge` names channel, size and cap before anything is written; the last good checkpoint loads, and "
        "`runtime-persist thread show` tells which channel grew.",
        (
            "user_pains/test_e_sizes.py::test_e3_a_channel_that_doubles_is_refused_by_name_before_it_is_written_and_the_inspector_shows_it",
            "values/test_sizes.py::test_a_channel_that_doubles_is_told_by_name_size_and_cap_and_the_last_good_state_is_kept",
        ),
    ),
    "E5": Pain(
        "a late write brings a deleted thread back",
        "`ThreadDeleted`, and nothing is stored; a new run on the id begins clean.",
        (
            "user_pains/test_e_sizes.py::test_e5_a_late_write_does_not_bring_a_deleted_thread_back",
            "user_pains/test_e_sizes.py::test_e5_a_new_run_on_the_id_of_a_deleted_thread_begins_clean",
        ),
    ),
    "E7": Pain(
        "rows stay when a thread is deleted",
        "No row of any table names the thread, its runs or its operations; threads with similar ids are whole; the "
        "space of its rows is used again; deleting twice is no error. Content, which threads share, is collected: what "
        "no row refers to is removed a day later, in pages and results of operations too, and what others share stays.",
        (
            "user_pains/test_e_sizes.py::test_e7_deleting_a_thread_leaves_no_row_of_it_and_its_neighbours_whole",
            "user_pains/test_e_sizes.py::test_e7_collecting_removes_the_content_of_a_deleted_thread_and_keeps_what_others_share",
            "user_pains/test_e_sizes.py::test_e7_the_space_of_deleted_rows_is_used_again",
            "contract/test_delete_thread.py::test_nothing_of_the_thread_stays_but_its_mark",
        ),
    ),
}
