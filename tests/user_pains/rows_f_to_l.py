"""Rows F to L: connections, values, ids, secrets, upgrades, branches, large values."""

from __future__ import annotations

from tests.user_pains.pain import Pain

ROWS: dict[str, Pain] = {
    "F1": Pain(
        "PostgreSQL behind a transaction pooler",
        "Everything works with default settings; no session state and no prepared statement is relied on.",
        (
            "connections/test_poolers.py::test_f1_everything_works_with_default_settings",
            "connections/test_poolers.py::test_f1_the_savers_methods_work_sync_and_async",
            "connections/test_poolers.py::test_f1_owned_runs_work",
            "connections/test_poolers.py::test_f1_clients_of_the_test_pooler_really_get_other_sessions",
            "connections/test_poolers.py::test_no_session_state_is_used",
            "connections/test_poolers.py::test_what_others_left_in_a_session_does_no_harm",
        ),
    ),
    "F2": Pain(
        "the server closes connections between two steps",
        "One quiet reconnect, and the step is stored once; a lease that is still valid is kept, a lost one is a typed "
        "loss.",
        (
            "user_pains/test_f_connections.py::test_f2_each_step_after_all_sessions_ended_is_stored_once_after_one_quiet_reconnect",
            "user_pains/test_f_connections.py::test_f2_a_lease_that_was_lost_while_the_connection_was_gone_is_a_typed_loss",
            "connections/test_lost_connections.py::test_f2_ended_during_a_put_it_is_stored_exactly_once",
            "connections/test_lost_connections.py::test_f2_ended_when_the_put_was_stored_and_only_the_answer_is_missing",
            "connections/test_lost_connections.py::test_f2_a_run_keeps_its_lease_over_a_lost_connection",
        ),
    ),
    "F3": Pain(
        "two hundred users on one async saver",
        "No lock is held by the saver: they share its connections, and a locked thread keeps no other one waiting.",
        (
            "connections/test_lost_connections.py::test_f3_two_hundred_puts_at_once_share_ten_connections_and_none_waits_for_a_stranger",
        ),
        "throughput of 1 and 10 connections; p95 of the others beside a locked row",
    ),
    "F4": Pain(
        "tables are made inside the application's transaction, or without the right to",
        "The printed statements roll back with the application's; `setup` uses a connection of its own; a role with "
        "DML rights alone works, and is told which version is missing.",
        (
            "connections/test_setup.py::test_f4_the_printed_statements_run_inside_the_applications_transaction_and_roll_back",
            "connections/test_setup.py::test_f4_what_they_make_is_what_setup_makes",
            "connections/test_setup.py::test_f4_on_sqlite_too",
            "connections/test_setup.py::test_f4_setup_while_the_application_has_a_transaction_of_its_own",
            "connections/test_setup.py::test_f4_a_role_without_ddl_rights_does_everything_once_the_tables_are_there",
            "connections/test_setup.py::test_f4_an_older_schema_is_named_to_who_may_not_upgrade_it",
        ),
    ),
    "F6": Pain(
        "one schema a tenant on shared sessions",
        "Tables are named in full, odd names quoted; tenants do not meet, and `public` stays empty.",
        (
            "connections/test_poolers.py::test_f6_tenants_in_schemas_of_one_database_do_not_meet",
            "migration/test_schema.py::test_a_schema_holds_all_tables_whatever_its_name",
        ),
    ),
    "F7": Pain(
        "many processes share one SQLite file",
        "Within the documented wait no lock error reaches a caller; the file is sound, and its log small again.",
        (
            "user_pains/test_f_sqlite_file.py::test_f7_sixteen_writers_beside_a_long_reader_and_a_long_lock_see_no_lock_error",
            "connections/test_sqlite_files.py::test_f7_a_write_lock_of_another_process_fails_no_command_and_loses_no_lease",
            "connections/test_sqlite_files.py::test_f7_a_lock_that_outlasts_the_timeout_is_a_typed_refusal_for_everyone_who_waits",
            "connections/test_sqlite_files.py::test_f7_reads_do_not_wait_for_a_writer",
        ),
    ),
    "F9": Pain(
        "sync calls inside an event loop, one saver in several loops",
        "Every public method works in both forms, in any loop. Only a sync operation that would wait for the loop it "
        "blocks is refused, at once.",
        (
            "user_pains/test_f_loops.py::test_f9_every_public_method_works_in_its_sync_form_inside_the_loop",
            "user_pains/test_f_loops.py::test_f9_a_saver_built_and_used_without_a_loop_serves_an_async_graph",
            "user_pains/test_f_loops.py::test_f9_a_sync_operation_that_would_wait_for_its_own_event_loop_is_refused_at_once",
            "user_pains/test_f_loops.py::test_f9_every_other_way_to_call_an_operation_inside_an_async_node_works",
            "connections/test_loops.py::test_f9_every_sync_method_works_inside_the_loop_that_uses_the_async_ones",
            "connections/test_loops.py::test_f9_one_saver_serves_loop_after_loop_and_several_at_once",
            "connections/test_loops.py::test_f9_a_saver_made_inside_a_loop_is_used_without_one",
        ),
        "how long each call takes",
    ),
    "F10": Pain(
        "a long history is listed, or loaded from",
        "Two hundred checkpoints with writes are five statements at most; the latest of ten thousand is found without "
        "a walk over them.",
        (
            "user_pains/test_f_history.py::test_f10_a_listing_of_two_hundred_with_writes_is_five_statements_at_most_on_sqlite",
            "user_pains/test_f_history.py::test_f10_a_listing_of_two_hundred_with_writes_is_five_statements_at_most_on_postgresql",
            "user_pains/test_f_history.py::test_f10_the_latest_of_ten_thousand_is_found_without_walking_over_them_on_sqlite",
            "user_pains/test_f_history.py::test_f10_the_latest_of_ten_thousand_is_found_without_walking_over_them_on_postgresql",
        ),
        "the latest of ten thousand checkpoints; a listing of two hundred",
    ),
    "F11": Pain(
        "the WAL-reset fault of SQLite before 3.51.3",
        "One warning where a file is shared, no mapped pages, the version in the inspector; eight writers beside a "
        "process that cuts the log damage nothing.",
        (
            "user_pains/test_f_sqlite_file.py::test_f11_eight_writers_beside_a_process_that_cuts_the_log_damage_nothing",
            "user_pains/test_f_sqlite_file.py::test_f11_the_inspector_shows_the_version_of_the_database_and_what_is_wrong_with_it",
            "connections/test_sqlite_files.py::test_f11_a_process_that_shares_a_file_warns_once_if_its_sqlite_has_the_fault",
            "connections/test_sqlite_files.py::test_f11_the_versions_with_the_fault_are_known",
            "connections/test_sqlite_files.py::test_f11_the_file_is_not_mapped_and_syncs_every_commit",
        ),
    ),
    "G2": Pain(
        "text that was cut in the middle of an emoji",
        "It comes back as it was, from state, keys and metadata, on both databases; stored again it is equal content.",
        (
            "user_pains/test_g_values.py::test_a_text_cut_in_an_emoji_comes_back_and_is_the_same_content_when_stored_again",
            "values/test_round_trip.py::test_cut_texts_in_thread_metadata_come_back_on_every_database",
        ),
    ),
    "G3": Pain(
        "richer Python values in the state",
        "Equal value and type after a graph step and in a new process, or a refusal that names channel and type.",
        (
            "values/test_round_trip.py::test_every_value_passes_a_graph_step_and_is_the_same_in_a_new_process",
            "values/test_round_trip.py::test_a_value_comes_back_equal_and_of_its_type",
            "user_pains/test_g_values.py::test_summer_time_is_the_same_in_a_new_process",
            "user_pains/test_g_values.py::test_a_local_class_is_refused_at_store_time_by_channel_and_type_or_comes_back",
        ),
    ),
    "G4": Pain(
        "a class moved, went, or has a new required field",
        "An error names class, channel and checkpoint; a registered upgrade function is used; `RawSerializer` and the "
        "inspector show the fields without the class.",
        (
            "values/test_changed_classes.py::test_a_class_that_is_gone_is_an_error_that_names_it_with_channel_and_checkpoint",
            "values/test_changed_classes.py::test_a_class_with_a_new_required_field_is_an_error_that_names_it",
            "values/test_changed_classes.py::test_a_registered_upgrade_function_gets_the_stored_fields",
            "values/test_changed_classes.py::test_an_upgrade_function_may_name_a_class_that_is_gone",
            "user_pains/test_g_values.py::test_the_raw_view_shows_values_whose_classes_are_gone",
            "user_pains/test_g_values.py::test_the_inspector_shows_the_fields_and_the_bytes_of_values_whose_classes_are_gone",
        ),
    ),
    "G5": Pain(
        "a lock, client or module in the state",
        "Refused at its step by channel, path and type; the state before is whole, journalled effects stay known.",
        (
            "user_pains/test_g_values.py::test_an_object_in_the_state_is_refused_by_channel_path_and_type_at_its_step",
            "user_pains/test_g_values.py::test_an_object_sent_to_a_node_is_refused_at_the_step_that_sends_it",
            "values/test_refused.py::test_what_cannot_be_stored_is_named_and_the_state_before_is_intact",
        ),
    ),
    "G6": Pain(
        "an exception with a constructor of its own",
        "Type, text and code are kept, nothing is pickled, and the run ends as failed.",
        (
            "user_pains/test_g_values.py::test_an_exception_with_its_own_constructor_is_read_back_after_a_crash",
            "user_pains/test_g_values.py::test_whatever_the_text_of_an_exception_is_the_run_ends",
        ),
    ),
    "H1": Pain(
        "thread ids that are int, UUID, bytes or missing",
        "One form for each thread (an int is its decimal text), anything else is refused at invoke, the same on both "
        "databases.",
        (
            "user_pains/test_h_ids.py::test_a_thread_has_one_form_of_its_id",
            "user_pains/test_h_ids.py::test_a_thread_id_that_is_none_or_missing_is_an_error_at_invoke",
            "user_pains/test_h_ids.py::test_a_thread_id_of_another_type_is_refused_at_invoke_by_a_bound_graph",
            "user_pains/test_h_ids.py::test_langgraph_makes_a_uuid_its_text_before_a_plain_checkpointer_sees_it",
            "saver/test_thread_ids.py::test_others_are_refused_by_every_method_and_nothing_is_written",
        ),
    ),
    "H2": Pain(
        "long and odd thread ids",
        "Each is a thread of its own and deletes only itself; NUL, lone surrogates and too long ones are refused in "
        "the same words on both databases.",
        (
            "user_pains/test_h_ids.py::test_no_thread_sees_or_deletes_what_belongs_to_another",
            "user_pains/test_h_ids.py::test_ids_that_a_database_cannot_hold_are_refused_in_the_same_words_on_both",
        ),
    ),
    "H3": Pain(
        "filter keys that come from users",
        "A key is a name and never a part of a statement; legal odd keys find their row on both databases.",
        ("user_pains/test_h_ids.py::test_a_filters_keys_are_names_and_never_a_part_of_a_statement",),
    ),
    "H4": Pain(
        "a filter on a key of one's own",
        "Only equal values match; None matches a stored None; the same on both databases.",
        (
            "user_pains/test_h_ids.py::test_a_filter_matches_what_is_equal_and_nothing_else",
            "user_pains/test_h_ids.py::test_a_graph_lists_the_checkpoints_of_one_tenant",
            "saver/test_list.py::test_filters_are_equality_of_whole_values",
        ),
    ),
    "H5": Pain(
        "odd limits, empty configs and ties in a listing",
        "Newest first by logical order, whatever is asked; a negative limit is refused; the same on both databases.",
        (
            "user_pains/test_h_ids.py::test_checkpoints_of_one_millisecond_are_listed_newest_first_whatever_is_asked",
            "user_pains/test_h_ids.py::test_a_graph_that_makes_many_checkpoints_in_one_millisecond_has_them_in_order",
            "saver/test_list.py::test_a_negative_limit_is_refused",
        ),
    ),
    "I1": Pain(
        "somebody can write checkpoint rows",
        "Loading imports and calls nothing that a row names: typed errors without any switch, in the inspector and in "
        "imports too.",
        (
            "values/test_strict.py::test_forged_values_are_typed_errors_that_name_channel_and_checkpoint",
            "values/test_strict.py::test_the_inspector_shows_a_run_with_a_forged_value_and_imports_nothing",
            "user_pains/test_i_secrets.py::test_looking_at_a_forged_value_imports_nothing_and_calls_nothing",
            "user_pains/test_i_secrets.py::test_importing_threads_with_forged_values_imports_no_module_and_calls_nothing",
            "user_pains/test_bundles.py::test_i1_whoever_looks_into_a_forged_bundle_imports_nothing_and_calls_nothing",
        ),
    ),
    "I2": Pain(
        "rows in the clear are taken for encrypted ones",
        "With an encrypting serializer a row that is not encrypted is refused; where a migration asks for such rows "
        "each is counted and logged; the inspector shows sizes without the key.",
        (
            "user_pains/test_i_secrets.py::test_a_stored_value_that_is_replaced_by_a_plain_one_is_refused_when_encryption_is_on",
            "user_pains/test_i_secrets.py::test_an_encrypted_thread_is_shown_by_size_without_the_key",
            "user_pains/test_i_secrets.py::test_an_encrypted_source_is_imported_and_shown_with_its_key_and_stays_encrypted",
            "values/test_secrets.py::test_rows_that_are_not_encrypted_are_loaded_counted_and_logged_when_asked_for",
        ),
    ),
    "I4": Pain(
        "API keys in `configurable`",
        "They are in no row, file, log, bundle or export; `metadata_keys=` names what may be stored.",
        (
            "user_pains/test_i_secrets.py::test_a_key_in_configurable_is_in_no_file_of_the_database_no_bundle_and_no_log",
            "values/test_secrets.py::test_secrets_in_configurable_and_metadata_are_nowhere_in_the_database",
        ),
    ),
    "I5": Pain(
        "SecretStr in the state",
        "The graph gets it back; inspector, exports, errors, logs and representations hide it unless a switch asks.",
        (
            "user_pains/test_i_secrets.py::test_a_secret_of_the_state_is_shown_only_by_the_switch_that_asks_for_it",
            "user_pains/test_i_secrets.py::test_no_error_about_a_value_shows_the_secrets_in_it",
            "user_pains/test_bundles.py::test_i5_no_look_into_a_bundle_shows_a_secret",
            "values/test_secrets.py::test_a_secret_in_the_state_comes_back_and_is_shown_nowhere",
        ),
    ),
    "J1": Pain(
        "the saver is upgraded with live threads",
        "Threads of every earlier schema, and of LangGraph's own savers in formats 1 to 4, are read and go on, queued "
        "Sends included; a newer schema is refused before anything is written.",
        (
            "user_pains/test_j_upgrades.py::test_j1_threads_of_an_earlier_schema_are_read_answered_and_go_on",
            "user_pains/test_j_upgrades.py::test_j1_there_are_rows_of_every_schema_version_in_every_table_that_a_thread_uses",
            "importing/test_formats.py::test_a_checkpoint_of_each_format_comes_with_its_keys_and_versions",
            "importing/test_formats.py::test_sends_that_an_old_format_keeps_with_the_parent_are_there",
            "importing/test_formats.py::test_a_graph_runs_the_sends_of_a_thread_of_format_three",
            "importing/test_graphs.py::test_a_thread_that_waits_for_an_answer_goes_on_here",
            "importing/test_graphs.py::test_queued_sends_run_here_and_results_that_were_there_are_not_made_again",
            "migration/test_schema.py::test_a_newer_major_is_refused_before_anything_is_written",
        ),
    ),
    "J2": Pain(
        "old and new workers on one queue in a rolling deployment",
        "A worker leaves a run of another version of its graph alone: no attempt is counted, nothing is written, and "
        "it does not ask again before its next look. A worker with that version, or one that accepts it, finishes it. "
        "Runs of every open status that code of an earlier schema wrote, before the upgrade or after it, go on.",
        (
            "user_pains/test_j_versions.py::test_j2_an_old_worker_leaves_a_run_of_the_new_release_alone_and_a_new_one_finishes_it",
            "worker/test_versions.py::test_a_worker_of_another_version_changes_nothing_at_all",
            "worker/test_versions.py::test_a_worker_that_leaves_runs_alone_waits_between_its_looks",
            "worker/test_versions.py::test_a_new_version_adopts_the_runs_of_those_it_says_it_is_compatible_with",
            "migration/test_rolling_upgrade.py::test_open_runs_of_every_status_of_an_earlier_version_go_on",
        ),
    ),
    "K1": Pain(
        "an old checkpoint is forked, a channel moved to the delta type",
        "A DeltaChannel is what the plain one beside it is, after forks, edits, a move and a prune, in every reload.",
        (
            "user_pains/test_k_subgraphs.py::test_k1_a_delta_channel_is_what_the_plain_one_is_after_a_fork_and_an_edit",
            "user_pains/test_k_subgraphs.py::test_k1_a_live_thread_moves_from_a_plain_channel_to_a_delta_channel",
            "user_pains/test_k_subgraphs.py::test_k1_a_pruned_thread_keeps_what_its_delta_channel_needs",
            "conformance/test_delta_history.py::test_the_capability_is_detected_and_passes_on_every_database",
        ),
    ),
    "K2": Pain(
        "time travel into a subgraph, one pause answered twice",
        "The nodes that LangGraph runs with its saver in memory; effects of the branch that was left are not reused.",
        (
            "user_pains/test_k_subgraphs.py::test_k2_the_nodes_that_run_and_what_is_stored_are_those_of_the_memory_saver",
            "user_pains/test_k_subgraphs.py::test_k2_a_pause_answered_again_does_not_reuse_the_effects_of_the_branch_that_was_left",
            "user_pains/test_k_subgraphs.py::test_k2_going_back_inside_a_subgraph_does_not_reuse_the_effects_of_the_branch_that_was_left",
            "user_pains/test_k_subgraphs.py::test_k2_a_branch_that_was_left_behind_goes_on_with_its_own_effects",
            "user_pains/test_k_subgraphs.py::test_k2_an_answer_at_the_pause_the_thread_stands_at_continues_its_run",
            "user_pains/test_k_subgraphs.py::test_k2_an_answer_that_is_delivered_twice_has_its_effects_once",
            "user_pains/test_k_subgraphs.py::test_k2_a_place_inside_a_subgraph_without_what_is_above_it_is_refused",
            "user_pains/test_k_subgraphs.py::test_k2_a_run_that_is_lost_at_once_begins_at_the_same_place_inside_the_subgraph_again",
            "equality/test_histories.py::test_the_history_is_that_of_the_memory_saver",
        ),
    ),
    "K3": Pain(
        "a conversation is copied",
        "Source and copies go on by themselves; content is shared; a target that holds anything is refused; effects "
        "that were made are not made again.",
        (
            "user_pains/test_k_copies.py::test_source_and_copies_go_on_by_themselves_and_effects_that_were_made_are_not_made_again",
            "user_pains/test_k_copies.py::test_a_thread_is_not_copied_onto_one_that_holds_anything",
            "user_pains/test_k_copies.py::test_a_copy_outlives_its_source",
            "contract/test_copy_thread.py::test_an_effect_of_the_source_never_fires_again_in_the_copy",
        ),
    ),
    "L1": Pain(
        "images and documents in the state",
        "Twenty megabytes pass; one byte over the cap is `ValueTooLarge` with size and cap, before anything is written "
        "and never tried again; a step that makes 300 MB, and loading it, take four times that in memory at most; "
        "killed on the way, nothing of it is visible; the inspector loads no value unasked.",
        (
            "user_pains/test_l_big.py::test_twenty_megabytes_that_do_not_compress_pass_and_another_process_loads_them",
            "user_pains/test_l_big.py::test_one_byte_over_the_cap_is_one_typed_error_before_anything_of_it_is_written",
            "user_pains/test_l_big.py::test_a_question_over_the_cap_is_such_an_error_too",
            "user_pains/test_l_big.py::test_a_question_of_five_megabytes_is_answered_by_another_process",
            "user_pains/test_l_big.py::test_a_look_at_a_large_thread_loads_nothing_large",
            "user_pains/test_l_big.py::test_forty_megabytes_are_stored_and_loaded_with_four_times_their_size_in_memory",
            "user_pains/test_l_big.py::test_three_hundred_megabytes_are_stored_and_loaded_with_four_times_their_size_in_memory",
            "saver/test_large_content.py::test_killed_between_two_parts_nothing_is_visible_and_the_next_one_stores_the_rest",
            "values/test_sizes.py::test_five_megabytes_of_metadata_pass_and_are_capped_too",
            "values/test_sizes.py::test_storing_takes_at_most_four_times_the_value_in_memory",
        ),
        "seconds and peak memory of values of 20 and 300 MB",
    ),
}
