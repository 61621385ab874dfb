//! The suite that every store runs: what the contract in [`crate::store`] says, case by case, with exact answers.
//!
//! A store's own test is this and nothing more:
//!
//! ```text
//! use tagwerk_engine::conformance_tests;
//! use tagwerk_engine::testing::conformance::Bench;
//!
//! conformance_tests!(MyBench::new);
//! ```
//!
//! where `MyBench::new` makes a [`Bench`] with an empty store. Each case becomes a test `subject::case`. A case whose
//! name begins with `f` and a number holds the row of the list of public faults with that number. A bug that is found
//! in a store becomes a case here first.

pub mod alerts;
pub mod audit;
pub mod choice;
pub mod damage;
pub mod fair;
pub mod gates;
pub mod guards;
pub mod hints;
pub mod history;
pub mod ids;
pub mod keys;
pub mod lanes;
pub mod ledger;
pub mod lists;
pub mod order;
pub mod queues;
pub mod retention;
pub mod rows;
pub mod settings;
pub mod snapshots;
pub mod spaces;
pub mod time;
pub mod turns;
pub mod versions;
pub mod views;
pub mod walk;

mod odd;
mod steps;

use tagwerk_core::JobId;

use crate::store::Store;

/// A place where a store can be tried: an empty store at first, cleaned up when the bench is dropped.
pub trait Bench {
    /// The store.
    fn store(&mut self) -> &mut dyn Store;
    /// Closes the store and opens it again on the same data, as a restart would.
    fn reopen(&mut self);
    /// Lets ids go on from `next`, as if all below had been given out.
    fn set_next_id(&mut self, next: JobId);
    /// Makes the row of this job undecodable, behind the store's back.
    fn damage(&mut self, id: JobId);
}

/// Makes one test of each case of the suite. The argument makes a [`Bench`](crate::testing::conformance::Bench).
#[macro_export]
macro_rules! conformance_tests {
    ($make:expr) => {
        $crate::conformance_tests! { @cases $make;
            ids {
                ids_of_one_call_are_consecutive_and_calls_go_on,
                ids_rise_from_transaction_to_transaction_and_over_a_reopen,
                ids_of_a_rolled_back_transaction_do_no_harm,
                ids_of_erased_jobs_are_never_used_again,
                ids_of_jobs_erased_at_once_are_never_used_again,
                f143_ids_cross_the_edge_of_32_bits,
                f143_ids_cross_the_edge_of_unsigned_32_bits,
                f144_ids_above_40_bits_work_everywhere,
                ids_stay_below_2_to_the_53,
            }
            lanes {
                the_same_names_are_the_same_lane_for_ever,
                names_are_compared_byte_for_byte,
                a_lane_of_a_rolled_back_transaction_is_forgotten,
                nothing_is_interned_for_no_names,
            }
            rows {
                f119_every_field_comes_back_in_its_own_place,
                f119_a_change_writes_every_field,
                f119_each_flag_stands_alone,
                absent_fields_stay_absent_and_empty_ones_stay_empty,
                f145_extreme_numbers_keep_all_their_bits,
                lease_bits_keep_all_64_bits,
                every_value_of_every_closed_set_comes_back,
                f106_f107_f108_payloads_come_back_byte_for_byte,
                f105_results_checkpoints_and_errors_come_back_byte_for_byte,
                parts_of_a_note_come_and_go_by_themselves,
                reads_answer_in_the_order_of_the_question,
                thousands_of_rows_go_through_one_call,
                several_changes_of_a_row_in_one_transaction_add_up,
                a_new_payload_takes_the_place_of_the_old_one,
            }
            guards {
                a_put_with_another_version_is_refused,
                a_put_with_another_status_is_refused,
                a_put_with_other_lease_bits_is_refused,
                a_put_to_a_row_that_is_not_there_is_refused,
                a_put_behind_somebody_elses_commit_is_refused,
                a_put_of_several_rows_is_all_or_none,
                a_put_changes_a_row_again_without_a_new_version,
                a_dropped_transaction_leaves_nothing,
                a_reopen_keeps_what_was_committed_and_nothing_else,
                f015_a_row_is_handed_out_once,
                a_conflict_does_not_hurt_the_next_transaction,
                the_secret_survives_a_reopen,
                housekeeping_changes_nothing,
            }
            order {
                priority_comes_before_due_time_and_due_time_before_id,
                f137_a_backlog_does_not_beat_a_higher_priority,
                every_priority_is_a_level_of_its_own,
                f134_ten_thousand_equal_jobs_come_in_id_order,
                f135_ids_compare_as_numbers,
                jobs_of_many_lanes_mix_in_one_order,
                a_job_is_given_from_its_due_time_on,
                a_future_high_priority_hides_nothing,
                f127_scheduled_jobs_in_front_do_not_hide_due_ones,
                f132_f133_a_requeued_job_goes_behind_those_due_before,
                a_requeued_job_stands_among_equals_by_its_id,
                an_expired_row_is_still_a_row,
                a_claim_sees_what_its_transaction_wrote,
            }
            choice {
                filters_choose_by_type_and_queue,
                filters_find_lanes_made_later,
                no_more_than_wanted,
                skipped_rows_are_left_out_and_stay,
                wishes_of_one_call_never_share_a_row,
                calls_of_one_transaction_go_on,
                f131_payloads_add_up_to_no_more_than_the_budget,
                rows_of_other_lanes_are_passed_over_and_stay,
                every_row_goes_to_exactly_one_wish,
            }
            damage {
                f151_a_damaged_row_does_not_stop_claims,
                f151_a_damaged_row_does_not_stop_rescue_and_retention,
                f151_a_damaged_row_is_shown_as_damaged,
                f151_who_asks_for_a_damaged_row_gets_the_others,
                a_damaged_row_can_be_erased,
            }
            hints {
                a_claim_that_rolls_back_has_taken_nothing,
                a_row_inserted_before_the_last_claim_is_found,
                a_row_requeued_into_the_past_is_found,
                a_row_that_comes_back_from_rest_is_found,
                a_row_with_a_new_priority_is_found_in_its_new_place,
                a_row_with_a_new_due_time_is_found_in_its_new_place,
                rows_that_leave_without_a_claim_leave_no_gap,
                a_level_that_was_emptied_fills_again,
                a_whole_life_that_rolls_back_leaves_no_trace,
                a_claim_of_one_type_hides_nothing_of_another,
                time_may_go_on_and_step_back,
                a_claimable_row_that_is_put_off_comes_back_in_time,
                a_reopen_finds_the_same_rows,
                a_claim_that_ends_in_a_conflict_has_taken_nothing,
            }
            walk {
                a_random_walk_over_few_rows_equals_a_brute_force,
                a_random_walk_with_a_second_seed_equals_a_brute_force,
                a_random_walk_over_many_rows_equals_a_brute_force,
                a_random_walk_with_many_rollbacks_equals_a_brute_force,
            }
            fair {
                fair_keys_take_turns,
                a_job_that_has_gone_has_no_turn,
                a_job_that_has_gone_stands_for_no_queue,
                a_job_without_a_key_that_has_gone_stands_for_no_queue,
                fair_keys_take_turns_within_a_claim,
                a_late_tenant_starts_within_two_claims,
                keys_of_different_queues_do_not_meet,
            }
            gates {
                a_special_lane_carries_its_names,
                a_special_lane_that_rolls_back_is_not_there,
                limits_are_written_and_deleted,
                a_full_limit_holds_back_its_jobs_only,
                a_slot_is_free_whatever_becomes_of_its_job,
                partitions_count_by_themselves,
                a_blocked_job_counts_for_its_limit,
                a_job_with_two_limits_needs_both,
                a_crowd_behind_a_limit_is_served_in_order,
                a_free_slot_is_not_kept_for_a_type_that_nobody_wants,
                a_claim_that_rolls_back_has_taken_no_slot,
                settings_hold_from_the_moment_they_are_written,
                a_rate_spends_starts_and_says_when_it_goes_on,
                a_rate_outlives_a_clock_that_is_put_back,
                a_clock_that_is_put_back_puts_off_what_was_due,
                the_next_due_time_follows_a_clock_that_is_put_back,
                a_full_limit_is_due_at_the_first_end_of_a_lease,
                a_held_limit_can_be_opened,
                a_held_limit_is_closed_until_then,
                a_limit_held_as_a_whole_holds_its_partitions,
            }
            spaces {
                a_space_has_lanes_of_its_own,
                a_lane_of_a_space_that_rolls_back_is_forgotten,
                a_claim_takes_from_its_space_only,
                limits_and_fair_keys_are_within_a_space,
                rows_of_spaces_are_counted_apart,
            }
            time {
                the_next_due_time_is_exact,
                the_next_due_time_follows_the_transaction,
                an_attempt_is_over_at_its_earlier_end,
                an_end_moves_and_goes_away_with_its_row,
                a_pending_row_is_expired_at_its_maximum_age,
                shifted_leases_end_later_in_the_same_order,
                a_shift_is_seen_at_once_and_breaks_no_guard,
                a_claim_is_found_again_by_worker_and_request,
            }
            keys {
                f119_every_field_of_a_key_comes_back,
                f031_a_key_is_inserted_once,
                a_key_is_inserted_once_within_a_call,
                keys_are_written_all_or_none,
                a_key_is_replaced_only_from_its_owner,
                a_key_is_deleted_only_by_its_owner,
                a_key_is_freed_and_taken_in_one_call,
                keys_are_compared_byte_for_byte,
                keys_answer_in_the_order_of_the_question,
                f037_a_key_that_rolls_back_is_free,
                tombstones_are_read_page_by_page_in_key_order,
            }
            versions {
                a_version_comes_back_with_its_open_jobs,
                a_higher_version_leaves_one_job_open,
                objects_and_types_are_kept_apart_byte_for_byte,
                versions_answer_in_the_order_of_the_question,
                a_version_that_rolls_back_was_not_seen,
                an_erased_job_is_no_longer_open_and_its_version_stays_known,
            }
            history {
                f119_every_field_of_an_attempt_comes_back,
                every_end_of_an_attempt_comes_back,
                attempts_come_by_job_and_by_age,
                an_attempt_with_the_same_seq_takes_its_place,
                the_first_10_and_the_last_90_attempts_are_kept,
                a_history_is_read_page_by_page,
                refused_calls_are_noted_on_their_attempt,
                refused_calls_of_unknown_attempts_are_dropped,
                every_call_comes_back,
                actions_come_in_the_order_in_which_they_were_done,
            }
            ledger {
                f119_every_counter_adds_up_by_itself,
                numbers_keep_all_their_bits,
                a_sum_that_rolls_back_is_not_there,
                the_ledger_outlives_its_jobs,
                f149_rows_are_counted_by_lane_and_status,
            }
            retention {
                a_scan_ends_at_the_first_row_that_is_too_young,
                only_completed_and_cancelled_jobs_of_age_are_found,
                a_scan_is_bounded_and_goes_on_where_it_ended,
                a_job_that_came_back_is_not_found,
                an_erased_job_takes_everything_but_key_and_ledger,
                a_job_is_erased_in_any_state,
            }
            alerts {
                alerts_come_back_as_they_were_written,
                marks_of_types_come_back,
            }
            audit {
                entries_of_the_audit_log_come_back_in_order,
            }
            settings {
                f119_every_setting_of_a_type_comes_back,
                settings_are_overwritten_and_deleted,
                the_mark_of_service_is_what_was_written_last,
                f045_queues_are_known_with_their_last_claim,
            }
            queues {
                f095_what_is_said_about_queues_comes_back,
                what_is_said_is_overwritten_as_a_whole,
                f096_nothing_of_a_paused_queue_is_claimable,
                f096_limits_and_fair_keys_do_not_get_around_a_pause,
                a_pause_that_rolls_back_holds_nothing,
                the_next_due_time_passes_over_paused_queues,
                the_depth_of_a_queue_is_in_its_ledger,
            }
            snapshots {
                a_snapshot_shows_what_was_committed_when_it_was_made,
                an_open_transaction_is_not_seen,
                all_answers_of_a_snapshot_are_of_one_moment,
                other_threads_read_while_the_store_writes,
            }
            lists {
                f131_a_row_of_a_list_leaves_out_what_may_be_large,
                a_job_is_found_by_its_key_for_as_long_as_it_is_there,
                each_filter_chooses_by_itself,
                filters_choose_together,
                pages_of_any_size_show_every_job_once,
                a_list_follows_the_status,
                a_scan_shows_every_row,
            }
            turns {
                a_blocked_job_is_passed_over_until_its_turn,
                blocked_rows_are_counted_by_class,
                a_turn_that_rolls_back_was_not_given,
                the_order_of_a_key_follows_its_jobs,
                places_are_read_page_by_page,
                only_those_who_wait_are_held_back,
                a_blocked_job_expires,
                f151_a_damaged_row_does_not_hold_its_order,
                an_erased_job_leaves_its_order,
            }
            views {
                the_oldest_ready_job_of_each_lane_is_found,
                the_place_in_the_line_is_counted_in_claim_order,
                running_rows_are_read_page_by_page,
                what_is_claimed_is_running_and_no_longer_ready,
                a_store_is_sound_and_says_what_it_is,
                an_empty_store_answers_every_question,
            }
        }
    };
    (@cases $make:expr; $($subject:ident { $($case:ident),* $(,)? })*) => {
        $(mod $subject {
            use super::*;
            $(
                #[test]
                fn $case() {
                    $crate::testing::conformance::$subject::$case(&mut ($make)());
                }
            )*
        })*
    };
}

#[cfg(test)]
mod tests {
    /// A case that is not listed in the macro would never run.
    #[test]
    fn every_case_is_listed() {
        let listed: Vec<&str> = include_str!("conformance.rs").lines().map(str::trim).collect();
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/testing/conformance");
        let mut cases = 0;
        for file in std::fs::read_dir(folder).expect("the folder of the suite is there") {
            let path = file.expect("it can be read").path();
            let source = std::fs::read_to_string(&path).expect("a subject can be read");
            for line in source.lines().filter_map(|line| line.strip_prefix("pub fn ")) {
                let case = line.split('(').next().expect("a function has a name");
                assert!(
                    listed.contains(&format!("{case},").as_str()),
                    "{case} of {} is not listed",
                    path.display()
                );
                cases += 1;
            }
        }
        assert!(cases > 100, "{cases} cases were found");
    }
}
