"""Faults that were once found, and the tests that prove that they are fixed."""

from __future__ import annotations

from typing import NamedTuple


class Promise(NamedTuple):
    """Something that must hold, and the names of tests that failed before it did."""

    what: str
    tests: tuple[str, ...]


PROMISES = (
    Promise(
        "a clone of an undamaged archive is complete, also after many puts and compactions",
        ("test_every_clone_of_a_sound_archive_is_whole",
         "test_a_lazy_clone_reads_pages_that_lean_on_the_text_of_another_pack"),
    ),
    Promise(
        "an older catalogue with newer packs loses nothing, with files and with PostgreSQL and S3",
        ("test_an_older_catalogue_takes_in_what_its_packs_know",
         "test_nothing_acknowledged_is_lost_whatever_catalogue_is_put_back",
         "test_an_older_database_takes_in_what_its_packs_know",
         "test_a_log_that_had_its_number_when_the_copy_was_made_and_nothing_else_is_taken_in"),
    ),
    Promise(
        "a flipped bit in a row never returns another page, and a repair removes all damage",
        ("test_a_wrong_place_in_the_catalogue_never_gives_another_page",
         "test_a_version_with_the_content_of_another_is_found_and_put_right",
         "test_after_repair_of_random_damage_everything_is_sound"),
    ),
    Promise(
        "a full disk is not reported as damage; read-only archives can be read",
        ("test_a_full_disk_is_not_called_damage", "test_an_archive_on_a_read_only_disk_can_be_read"),
    ),
    Promise(
        "a repair saves what only the catalogue contains, and does not change a newer catalogue",
        ("test_repair_of_a_damaged_index_loses_nothing",
         "test_repair_saves_what_only_the_catalogue_has_when_a_table_is_damaged",
         "test_a_damaged_definition_of_a_table_hides_no_other_table",
         "test_damaged_json_of_a_watch_is_named_and_costs_that_watch_alone",
         "test_a_schema_that_this_release_does_not_know_is_a_sentence"),
    ),
    Promise(
        "after a repair `verify` finds nothing, and derived data is rebuilt",
        ("test_a_newest_log_of_which_nothing_can_be_read_is_gone_after_its_repair",
         "test_damage_that_a_long_answer_meets_is_named", "test_a_damaged_index_is_built_anew_and_answers"),
    ),
    Promise(
        "visits planned while the clock was wrong happen once it is right",
        ("test_pages_crawled_under_a_wrong_clock_are_visited_when_it_is_right",
         "test_watches_made_under_a_wrong_clock_run_when_it_is_right",
         "test_a_version_of_the_future_is_put_only_with_a_word_by_the_command_line"),
    ),
    Promise(
        "a repair is not the end of what was away: packs that come back bring their versions, misnamed ones are kept",
        ("test_a_pack_that_comes_back_after_a_repair_gave_it_up_brings_its_versions",
         "test_a_pack_with_the_name_of_another_is_kept_and_named_until_it_has_its_own"),
    ),
    Promise(
        "a backup is of one moment and of one archive, and one command restores it",
        ("test_a_backup_is_restored_by_one_command", "test_a_backup_that_is_broken_off_leaves_the_one_before",
         "test_another_archive_is_not_backed_up_over_a_backup_even_if_its_packs_have_the_same_sizes",
         "test_a_restore_whose_check_was_interrupted_takes_nothing_back_that_came_since"),
    ),
    Promise(
        "other users of the machine cannot read an archive",
        ("test_nothing_of_an_archive_can_be_read_by_others",
         "test_what_is_restored_or_repaired_can_be_read_by_nobody_else",
         "test_a_copy_of_the_catalogue_has_nothing_that_lets_anybody_in"),
    ),
    Promise(
        "nobody gets the rights of a removed user",
        ("test_nobody_gets_the_rights_of_whoever_is_added_after_them",),
    ),
    Promise(
        "a crawl planned over HTTP reaches no private address by any request",
        ("test_a_name_that_resolves_inside_is_not_asked_for_somebody_who_came_through_http",
         "test_what_others_planned_stays_guarded_beside_a_crawl_of_the_owner_without_bounds"),
    ),
    Promise(
        "signing in: attempts are counted first, few hashes run at once, nobody locks others out, one owner per code",
        ("test_tries_at_once_are_counted_before_any_password_is_looked_at",
         "test_a_crowd_that_signs_in_neither_hashes_at_once_nor_keeps_pages_waiting",
         "test_a_stranger_cannot_lock_people_out_of_the_devices_they_use",
         "test_one_code_makes_one_owner_however_many_use_it_at_once",
         "test_an_old_password_cannot_be_guessed_by_whoever_has_a_token_or_a_session"),
    ),
    Promise(
        "requests with other host names are refused, other sites cannot read the archive",
        ("test_a_name_that_is_not_ours_is_not_answered",
         "test_other_sites_may_read_archived_content_only_where_the_owner_says_so"),
    ),
    Promise(
        "slow clients do not block others",
        ("test_eleven_hundred_slow_connections_keep_nobody_from_being_served",
         "test_one_address_has_no_more_than_half", "test_a_header_without_end_is_not_kept_in_memory",
         "test_a_stream_on_which_nothing_would_ever_come_is_not_opened"),
    ),
    Promise(
        "the rule about private addresses holds with a proxy",
        ("test_a_guarded_request_through_a_proxy_goes_to_the_address_that_was_judged",
         "test_a_proxy_is_not_asked_for_a_name_that_only_it_knows"),
    ),
    Promise(
        "an archived page learns nothing about its reader and contacts no server",
        ("test_a_hostile_page_finds_nothing_of_its_reader_and_reaches_nobody",
         "test_no_address_of_an_archived_page_is_a_right",
         "test_a_page_of_a_closed_archive_runs_nothing_and_reaches_nobody_else"),
    ),
    Promise(
        "the time to rewrite a page is proportional to its size; slow expressions are stopped",
        ("test_the_time_to_rewrite_a_hostile_page_grows_with_its_size",
         "test_the_time_to_rewrite_a_hostile_style_sheet_grows_with_its_size",
         "test_the_time_to_find_the_head_of_a_page_grows_with_what_stands_before_it",
         "test_the_time_to_read_a_hostile_saved_page_grows_with_its_size",
         "test_comments_before_the_root_of_a_list_cost_what_they_are_long",
         "test_a_long_page_is_rewritten_off_the_loop", "test_a_filter_of_a_cdx_question_cannot_stall_the_service"),
    ),
    Promise(
        "documents built to exhaust a parser have a budget, and others are served meanwhile",
        ("test_many_requests_for_a_nested_page_start_few_helpers_and_others_are_served",
         "test_a_million_links_are_bounded_and_said", "test_what_is_too_much_is_stopped_and_not_tried_again"),
    ),
    Promise(
        "questions that take long leave threads for replay, signing in and health, and end for strangers",
        ("test_one_network_has_a_few_turns_and_all_together_fewer_than_there_are_threads",
         "test_replay_health_and_signing_in_never_wait", "test_whoever_left_while_waiting_is_not_answered",
         "test_what_a_stranger_asks_of_a_public_archive_is_stopped_when_it_takes_too_long"),
    ),
    Promise(
        "titles cannot control a terminal; unusual charsets and statuses cause no failure",
        ("test_no_verb_prints_control_characters_of_pages",
         "test_a_charset_that_stands_for_none_does_not_stop_the_copy",
         "test_a_status_that_is_none_of_http_is_shown_as_an_error_of_the_server"),
    ),
    Promise(
        "external input is read completely or refused, and causes no later failure",
        ("test_facts_of_wrong_types_are_refused_and_no_page_fails_later",
         "test_what_a_partial_clone_lacks_is_not_fetched_by_a_command_of_its_own",
         "test_an_index_that_names_a_pipe_or_no_place_is_told", "test_a_body_nested_without_end_is_one_error",
         "test_a_time_at_the_ends_of_time_is_answered_or_refused", "test_damaged_inputs_are_read_or_refused"),
    ),
)  # fmt: skip


def promise_lines() -> list[str]:
    """The table of the page."""
    rows = (f"| {one.what} | {', '.join(f'`{test}`' for test in one.tests)} |" for one in PROMISES)
    return ["| guarantee that once failed | tests |", "| --- | --- |", *rows]
