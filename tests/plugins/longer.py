"""What costs half a second of processor time and more, and only `make long` has, each with what `make test` has of the
same promise: file -> how the name of a test begins ("" for the whole file) -> how the other begins, of the same file
or with its own.

Beside them SAMPLED: of many cases of one kind `make test` has one in so many, by how the ids of their tests begin.
"""

from __future__ import annotations

READERS = "tests/properties/test_recording_readers.py::test_values_of_other_kinds"
LONG = {
    "tests/guard_core/checker/test_checker.py": {
        "test_every_kind_of_claim_about_a_replay": "test_it_knows_every_kind",
        "test_exchanging_any_two_numbers": "test_a_false_number_in_a_claim",
    },
    "tests/guard_core/commands/test_compare_command.py": {
        "test_an_unknown_price": "test_json_has",
        "test_counts_that_are_no_tokens": "test_json_has",
        "test_no_request_is_over": "test_json_has",
        "test_profiles": "test_every_policy_has",
        "test_replays_are_held": "test_a_window_of_ones_own",
    },
    "tests/guard_core/commands/test_measure.py": {
        "test_a_file_that_can_be_read": "test_a_file_that_is_no_recording",
        "test_it_says_what_a_prompt": "test_it_prints",
        "test_the_interpolation": "test_it_prints",
    },
    "tests/guard_core/commands/test_plain_output.py": {
        "test_no_character_of_a_recording_controls_the_terminal[avoid]": "test_no_character_of_a_recording",
        "test_no_character_of_a_recording_controls_the_terminal[measure]": "test_no_character_of_a_recording",
    },
    "tests/guard_core/commands/test_replay_command.py": {
        "test_requests_as_large": "tests/guard_core/test_sweep.py::test_lanes_price_anchors",
    },
    "tests/guard_core/estimation/test_attribution.py": {
        "test_another_process": "tests/properties/test_attribution_laws.py::test_bytes_give",
    },
    "tests/guard_core/findings/test_arising.py": {
        "test_whoever_looks_seldom": "test_every_approach",
    },
    "tests/guard_core/findings/test_verdict.py": {
        "test_every_sample": "tests/properties/test_findings_laws.py::test_the_verdict",
    },
    "tests/guard_core/gate/test_gate.py": {
        "test_processes": "test_it_fails_on_an_overflow",
        "test_what_the_readme": "test_it_fails_on_an_overflow",
    },
    "tests/guard_core/policies/test_agent_framework.py": {
        "test_it_equals_recorded_runs_of_the_library[agent-framework-context": "test_it_equals",
        "test_it_equals_recorded_runs_of_the_library[agent-framework-sel": "test_it_equals",
        "test_it_equals_recorded_runs_of_the_library[agent-framework-summ": "test_it_equals",
        "test_it_equals_recorded_runs_of_the_library[agent-framework-tool": "test_it_equals",
        "test_of_a_long_list_only_the_beginning_is_looked_at[token-budget": "test_of_a_long_list",
    },
    "tests/guard_core/policies/test_aider.py": {
        "test_it_equals": "test_",
    },
    "tests/guard_core/policies/test_agno.py": {
        "test_it_equals": "test_",
    },
    "tests/guard_core/policies/test_deepagents.py": {
        "test_it_equals": "test_a_result_at_the_end",
    },
    "tests/guard_core/policies/test_google_adk.py": {
        "test_it_equals": "test_",
    },
    "tests/guard_core/policies/test_hermes.py": {
        "test_scripted_runs": "test_a_short_chat",
    },
    "tests/guard_core/policies/test_hermes_texts.py": {
        "test_it_equals": "test_an_old_result",
    },
    "tests/guard_core/policies/test_inspect_ai.py": {
        "test_it_equals_recorded_runs_of_the_library[inspect-edit": "test_it_equals",
        "test_it_equals_recorded_runs_of_the_library[inspect-summ": "test_it_equals",
    },
    "tests/guard_core/policies/test_kimi.py": {
        "test_kimi_cli_equals": "test_thresholds_are",
    },
    "tests/guard_core/policies/test_langchain.py": {
        "test_it_equals_recorded_runs_of_the_library[langchain-clear": "test_it_equals",
        "test_it_equals_recorded_runs_of_the_library[langchain-summ": "test_it_equals",
    },
    "tests/guard_core/policies/test_litellm.py": {
        "test_it_equals": "test_",
    },
    "tests/guard_core/policies/test_openhands.py": {
        "test_it_equals": "test_",
    },
    "tests/guard_core/policies/test_pydantic_ai.py": {
        "test_clearing_equals": "test_window_and_summary_equal",
        "test_window_and_summary_equal_recorded_runs_of_the_library[pydantic-ai-summ": "test_window_and_summary_equal",
    },
    "tests/guard_core/policies/test_semantic_kernel.py": {
        "test_it_equals_recorded_runs_of_the_library[semantic-kernel-summ": "test_it_equals",
    },
    "tests/guard_core/policies/test_strands.py": {
        "test_it_equals_recorded_runs_of_the_library[strands-summarizing]": "test_it_equals",
    },
    "tests/guard_core/policies/test_sweagent.py": {
        "test_it_equals": "test_",
    },
    "tests/guard_core/recordings/formats/claude/test_stream.py": {
        "test_hostile_values": READERS,
    },
    "tests/guard_core/recordings/formats/claude/test_transcript.py": {
        "test_wrong_types": READERS,
    },
    "tests/guard_core/recordings/formats/codex/test_exec.py": {
        "test_hostile_values": READERS,
    },
    "tests/guard_core/recordings/formats/codex/test_rollout.py": {
        "test_wrong_types": READERS,
    },
    "tests/guard_core/recordings/formats/gemini/test_format.py": {
        "test_wrong_types": READERS,
    },
    "tests/guard_core/recordings/formats/kimi_code/test_wire.py": {
        "test_hostile_values": READERS,
    },
    "tests/guard_core/recordings/formats/openai/test_completions.py": {
        "test_wrong_types": READERS,
    },
    "tests/guard_core/recordings/formats/openai/test_responses.py": {
        "test_wrong_types": READERS,
    },
    "tests/guard_core/recordings/formats/pi/test_session.py": {
        "test_wrong_types": READERS,
    },
    "tests/guard_core/recordings/formats/test_anthropic_messages.py": {
        "test_wrong_types": READERS,
    },
    "tests/guard_core/recordings/formats/test_copilot.py": {
        "test_wrong_types": READERS,
    },
    "tests/guard_core/recordings/formats/test_crush.py": {
        "test_wrong_types": READERS,
    },
    "tests/guard_core/recordings/formats/test_hermes.py": {
        "test_wrong_types": READERS,
    },
    "tests/guard_core/recordings/formats/test_inspect_ai.py": {
        "test_wrong_types": READERS,
    },
    "tests/guard_core/recordings/formats/test_langchain.py": {
        "test_wrong_types": READERS,
    },
    "tests/guard_core/recordings/formats/test_native_schema.py": {
        "test_the_schema_allows_exactly_what_is_taken[format]": "test_the_schema_allows",
    },
    "tests/guard_core/recordings/formats/test_openhands.py": {
        "test_wrong_types": READERS,
    },
    "tests/guard_core/recordings/formats/test_otlp.py": {
        "test_wrong_types": READERS,
    },
    "tests/guard_core/recordings/formats/test_otlp_protobuf.py": {
        "test_a_request_reads": "test_bytes_that",
    },
    "tests/guard_core/recordings/formats/vibe/test_store.py": {
        "test_hostile_values": READERS,
    },
    "tests/guard_core/recordings/reading/test_shelf.py": {
        "test_shelved_events": "test_single_events",
    },
    "tests/guard_core/redaction/test_redaction.py": {
        "test_a_redacted_session": "test_a_session_without_secrets",
        "test_nothing_of_a_report": "test_one_value_has",
    },
    "tests/guard_core/test_replay.py": {
        "test_the_digest_does_not": "tests/properties/test_attribution_laws.py::test_bytes_give",
    },
    "tests/guard_core/test_sweep.py": {
        "test_requests_as_large": "test_lanes_price_anchors",
    },
    "tests/inspector/accounts/test_access.py": {
        "test_a_key_does": "test_nobody_gets_no_further",
        "test_an_editor": "test_a_viewer",
        "test_an_owner": "test_a_viewer",
        "test_no_value_breaks": "tests/inspector/pages/test_hostile_requests.py::test_no_query_string",
    },
    "tests/inspector/accounts/test_single_sign_on.py": {
        "test_the_library_is_loaded": "test_an_invitation_lets",
    },
    "tests/inspector/capturing/test_capture.py": {
        "test_a_server_in_team_mode": "test_a_command_runs",
    },
    "tests/inspector/ingest/reading/test_process.py": {
        "test_another_process": "test_most_of_a_session",
    },
    "tests/inspector/ingest/test_appending.py": {
        "test_a_session_that_has_grown_by_much": "test_what_is_new",
    },
    "tests/inspector/ingest/test_archives.py": {
        "test_too_many_entries": "tests/guard_core/recordings/reading/test_zip_entries.py::test_a_directory_of",
    },
    "tests/inspector/ingest/test_same_conversation.py": {
        "test_a_short_task": "test_conversations_go_on",
    },
    "tests/inspector/ingest/test_importing_large.py": {
        "test_a_long_session_that_has_grown": "test_a_chart_is_there_before",
    },
    "tests/inspector/ingest/test_obeying.py": {
        "test_few_bytes": "test_few_short_statements",
    },
    "tests/inspector/ingest/test_rewritten_files.py": {
        "test_many_sessions": "test_the_sessions_of_a_database",
    },
    "tests/inspector/jobs/test_estimating.py": {
        "test_the_errors": "test_the_counts",
    },
    "tests/inspector/management/test_checks.py": {
        "test_settings_are_checked_and_no_page_is_loaded[127": "test_settings_are_checked_and_no_page_is_loaded[0",
    },
    "tests/inspector/models/test_migrations.py": {
        "test_the_way_back": "test_every_row",
    },
    "tests/inspector/pages/comparison/test_views.py": {
        "test_a_real_recording": "test_the_recording_is_on_top",
    },
    "tests/inspector/pages/estimator/test_views.py": {
        "test_a_part": "test_it_shows",
    },
    "tests/inspector/pages/imports/test_choosing.py": {
        "test_a_long_list": "test_",
    },
    "tests/inspector/pages/test_hostile_requests.py": {
        "test_looking_changes_nothing[part]": "test_looking_changes_nothing[page]",
        "test_no_form": "test_no_body",
    },
    "tests/inspector/pages/triggers/test_views.py": {
        "test_rows_of_a_large_archive": "test_a_row_has",
    },
    "tests/inspector/pages/upload/test_damaged_uploads.py": {
        "test_the_front_page": "test_a_lenient_upload",
    },
    "tests/inspector/project/test_operations.py": {
        "test_the_check_for_production": "tests/inspector/management/test_checks.py::test_settings_are",
        "test_the_command_says": "test_what_others_can_read",
    },
    "tests/inspector/project/test_structs.py": {
        "test_a_server_has_every": "test_threads_may",
    },
    "tests/inspector/replays/test_comparing.py": {
        "test_another_window": "test_a_second_look",
    },
    "tests/inspector/replays/test_memory.py": {
        "": "tests/inspector/storage/test_byte_cache.py::test_",
    },
    "tests/inspector/storage/test_growth.py": {
        "test_appending": "test_storing",
    },
    "tests/properties/test_claim_laws.py": {
        "test_every_claim_about_a_bundled_sample_is_confirmed[long-coding]": "test_every_claim_about_a_bundled_sample",
    },
    "tests/properties/test_recording_round_trips.py": {
        "test_several": "test_an_exported_session",
    },
    "tests/services/test_outside.py": {
        "test_every_kind_of_answer": "tests/inspector/pages/test_hostile_requests.py::test_every_answer",
        "test_guesses": "tests/inspector/accounts/test_limits.py::test_so_many_times",
    },
}
SAMPLED = {
    "tests/guard_core/commands/test_plain_output.py": 3,
    "tests/guard_core/policies/test_runs.py": 3,
    "tests/guard_core/recordings/reading/test_identities.py::test_a_recording_whose_ids": 4,
    "tests/guard_core/recordings/reading/test_watch.py": 2,
    "tests/guard_core/rules/test_settings.py::test_a_run_proves": 3,
    "tests/inspector/pages/upload/test_damaged_uploads.py::test_a_": 4,
}
