//! The suite that every store runs: what the contract in [`crate::store`] says, case by case, with exact answers.
//!
//! A store's own test is this and nothing more:
//!
//! ```ignore
//! use tagwerk_engine::conformance_tests;
//! use tagwerk_engine::testing::conformance::Bench;
//!
//! conformance_tests!(MyBench::new);
//! ```
//!
//! where `MyBench::new` makes a [`Bench`] with an empty store. Each case becomes a test `subject::case`. A case whose
//! name begins with `f` and a number holds the row of the list of public faults with that number. A bug that is found
//! in a store becomes a case here first.

pub mod choice;
pub mod guards;
pub mod ids;
pub mod lanes;
pub mod order;
pub mod rows;

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
    fn set_next_id(&mut self, _next: JobId) -> Hook {
        Hook::Missing
    }
    /// Makes the row of this job undecodable, behind the store's back.
    fn damage(&mut self, _id: JobId) -> Hook {
        Hook::Missing
    }
}

/// Whether a bench can do what only some benches can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// It was done.
    Done,
    /// This bench cannot do it; the case does not run and says so.
    Missing,
}

fn not_run(why: &str) {
    eprintln!("not run: {why}");
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
                f151_a_damaged_row_does_not_stand_in_the_way,
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
