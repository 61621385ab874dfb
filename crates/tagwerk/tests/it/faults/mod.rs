//! Faults that users of other job queues reported, and that this one must not have: each seen from outside, through the
//! real server. The number is the fault's. Where a rule inside is proved as well (core, engine, conformance suite), that
//! test has the number in its name too.
//!
//! | fault | test |
//! |---|---|
//! | f001 | `faults::limits::f001_what_waits_for_a_slot_outlives_every_restart` |
//! | f002 | `faults::limits::f002_jobs_that_meet_a_limit_stay_pending_and_say_why` |
//! | f003 | `crash::f003_f007_f023_killed_at_random_moments_the_server_keeps_everything_it_acknowledged`; with the power: `crash::power::f003_after_a_power_cut_everything_acknowledged_is_there`; with the connection: `crash::cut_at_random::f003_cut_at_random_moments_everything_is_kept_and_nothing_is_done_twice` |
//! | f004 | `faults::lost::f004_a_job_whose_server_and_worker_died_is_run_again` |
//! | f005 | `faults::lost::f005_a_job_is_completed_by_a_complete_and_by_nothing_else` |
//! | f006 | `faults::lost::f006_f013_f014_heartbeats_hold_a_job_for_as_long_as_they_come` |
//! | f007 | `faults::lost::f007_what_was_answered_as_completed_is_never_handed_out_again`; in the system calls: `crash::synced::needs_strace::f007_every_success_is_answered_after_its_sync` |
//! | f008 | `faults::lost::f008_nobody_gets_a_job_before_its_time_and_then_one_does` |
//! | f009 | `faults::lost::f009_a_lease_counts_from_its_grant_and_the_answer_says_until_when` |
//! | f010 | `faults::lost::f010_a_claim_says_how_long_and_a_late_report_counts_while_nobody_else_has_the_job` |
//! | f011 | `faults::lost::f011_one_off_jobs_are_not_handed_out_again_after_their_leases` |
//! | f012 | `faults::lost::f012_whoever_lost_a_job_hears_it_at_the_next_call` |
//! | f013, f014 | `faults::lost::f006_f013_f014_heartbeats_hold_a_job_for_as_long_as_they_come` |
//! | f015 | `races::f015_of_64_claimers_for_one_job_one_wins_every_round` |
//! | f016 | `faults::fencing::f016_who_has_lost_the_job_to_another_changes_nothing_any_more` |
//! | f017 | `faults::fencing::f017_a_late_complete_counts_until_a_person_has_decided` |
//! | f018 | `races::f018_completing_at_the_very_end_of_the_lease_leads_to_one_final_state` |
//! | f019 | `races::f019_twenty_clicks_on_retry_make_one_run` |
//! | f021 | `faults::recovery::f021_a_lease_ends_whatever_a_worker_of_the_same_name_does` |
//! | f022 | `faults::recovery::f022_a_lost_job_comes_back_without_a_restart_and_without_anybody_waiting_for_it` |
//! | f023 | `crash::f003_f007_f023_killed_at_random_moments_the_server_keeps_everything_it_acknowledged` |
//! | f024 | `faults::recovery::f024_the_time_limit_ends_an_attempt_that_sends_heartbeats_for_ever` |
//! | f025 | `faults::recovery::f025_a_long_time_limit_does_not_keep_a_lost_job` |
//! | f026 | `faults::recovery::f026_a_hundred_dead_workers_give_back_a_hundred_jobs` |
//! | f027 | `crash::f003_f007_f023_killed_at_random_moments_the_server_keeps_everything_it_acknowledged` |
//! | f028 | `keys::f028_f038_an_unfinished_key_holds_through_waiting_and_running_and_is_free_after_the_last_loss` |
//! | f029, f030 | `faults::uniqueness::f029_f030_jobs_of_one_key_come_due_together_and_stop_nobody` |
//! | f031 | `races::f031_a_hundred_enqueues_of_one_key_make_one_job` |
//! | f032 | `faults::uniqueness::f032_what_holds_a_key_is_shown_with_where_it_stands` |
//! | f033 | `keys::f033_a_ttl_holds_after_the_end_and_ends` |
//! | f034 | `keys::remains::f034_a_key_outlives_its_deleted_job_for_as_long_as_its_scope_says` |
//! | f035 | `faults::uniqueness::f035_a_lost_job_comes_back_beside_the_one_that_has_its_key_now` |
//! | f036 | `keys::second_call::f036_payloads_are_equal_by_their_bytes_and_by_nothing_else` |
//! | f037 | `faults::disk::needs_tmpfs::f037_f052_a_full_disk_refuses_says_so_once_and_loses_nothing` |
//! | f038 | `keys::f028_f038_an_unfinished_key_holds_through_waiting_and_running_and_is_free_after_the_last_loss` |
//! | f039 | `races::f039_fifty_different_enqueues_of_one_key_make_one_job_and_the_others_are_told` |
//! | f040 | `keys::f032_f040_every_scope_in_every_state` |
//! | f041 | `faults::recovery::f041_a_job_that_kills_its_workers_goes_to_review_and_the_others_flow` |
//! | f042 | `faults::recovery::f042_a_job_without_retries_is_never_handed_out_twice` |
//! | f043 | `faults::recovery::f043_fail_permanent_goes_to_review_at_once_with_its_reason` |
//! | f044 | `faults::silent::f044_what_was_answered_ok_holds_for_every_connection`; behind a pooler, with several servers: PostgreSQL |
//! | f045 | `faults::silent::f045_a_queue_that_nobody_asks_is_named`; that it rings by itself: alerts |
//! | f046 | `faults::silent::f046_a_waiting_claim_gets_whatever_becomes_claimable` |
//! | f047 | `faults::silent::f047_a_claim_that_was_cut_gets_nothing_and_a_worker_shows_when_it_last_asked`, `faults::silent::f047_an_answer_that_nobody_reads_comes_back_with_its_lease`; every place of a cut: `crash::cut::a_waiting_claim_that_is_cut_keeps_no_job` |
//! | f048 | `faults::silent::f048_a_nearer_due_time_is_not_held_up_by_a_later_one` |
//! | f049 | `faults::store::f049_the_log_stays_short_while_lists_and_statistics_are_read_without_pause` |
//! | f050 | `faults::store::f050_of_64_busy_clients_nobody_is_told_that_the_store_is_locked` |
//! | f051 | `faults::store::needs_sqlite3::f051_while_somebody_else_writes_an_enqueue_waits_or_says_when_to_come_again` |
//! | f052 | `faults::disk::needs_tmpfs::f037_f052_a_full_disk_refuses_says_so_once_and_loses_nothing`; under load: `crash::full::needs_tmpfs::f052_a_disk_that_gets_full_under_load_loses_nothing_and_stops_nobody_for_good` |
//! | f053 | `races::f053_sixteen_claimers_take_a_thousand_jobs_each_once` |
//! | f054 | `crash::f054_stopped_in_order_the_server_answers_what_it_did_and_did_nothing_else` |
//! | f055 | `faults::fencing::f055_of_release_and_fail_for_one_lease_the_first_counts` |
//! | f056 | `faults::deploy::f056_a_worker_that_goes_gives_its_jobs_back_at_once_and_unspent` |
//! | f057 | `faults::deploy::f057_a_worker_gets_only_the_types_that_it_knows_and_can_give_the_others_back` |
//! | f058 | `faults::deploy::f058_retention_deletes_completed_and_cancelled_jobs_and_nothing_else` |
//! | f059 | `faults::deploy::f059_retention_keeps_up_while_jobs_come_and_go` |
//! | f073, f074, f075 | `faults::backoff::f073_f074_f075_delays_stay_within_the_cap_for_ever` |
//! | f076 | `faults::backoff::f076_attempts_are_numbered_and_the_last_one_says_so` |
//! | f077 | `faults::backoff::f077_a_job_runs_once_more_than_its_retries_whatever_ends_its_runs` |
//! | f078 | `faults::backoff::f078_a_lost_first_attempt_leads_to_a_second_one` |
//! | f079 | `faults::backoff::f079_a_thousand_failures_of_one_moment_come_back_spread` |
//! | f080, f090 | `faults::limits::f080_f090_a_retry_keeps_to_its_limits` |
//! | f081 | `faults::limits::f081_thirty_claimers_at_once_never_get_more_than_three` |
//! | f082 | `faults::limits::f082_after_a_kill_nobody_gets_a_slot_before_its_lease_has_ended` |
//! | f083 | `faults::limits::f083_the_slot_of_a_dead_worker_is_free_when_its_lease_has_ended` |
//! | f084 | `faults::limits::f084_an_enqueue_beside_the_end_of_the_running_job_is_not_forgotten` |
//! | f085 | `faults::limits::f085_after_a_burst_a_low_load_does_not_wait_for_the_rate`; with a steady backlog: the next |
//! | f086 | `faults::limits::f085_f086_a_rate_is_reached_and_never_exceeded` |
//! | f087 | `faults::limits::f087_a_claim_that_waits_is_woken_when_the_rate_goes_on` |
//! | f088 | `faults::limits::f088_no_slot_leaks_over_many_runs_with_dead_workers_and_refusals` |
//! | f089 | `faults::limits::f089_waiting_at_a_rate_spends_no_attempt` |
//! | f091 | `faults::keyed::f091_two_jobs_of_a_key_never_run_together` |
//! | f092 | `faults::keyed::f092_a_head_that_is_lost_goes_on_or_blocks_in_sight`; every way into review: the tests of orders in the engine |
//! | f093 | `faults::keyed::f093_a_head_that_is_retried_keeps_its_place` |
//! | f094 | `faults::keyed::f094_a_forced_end_frees_job_and_key_in_one_call` |
//! | f095, f096 | `queues::f095_f096_a_pause_survives_kill_9_and_holds_for_rescue_and_retry` |
//! | f097 | `queues::f097_a_drain_survives_kill_9_and_says_when_it_is_done` |
//! | f098 | `queues::f098_pause_and_resume_from_two_sides_end_as_the_last_says` |
//! | f099 | `faults::deploy::f099_cancel_is_done_or_refused_by_the_state_and_frees_at_once`; behind keys and limits: `faults::keyed::f099_f100_a_cancelled_or_deleted_job_frees_its_key_and_its_slot_at_once` |
//! | f100 | `faults::deploy::f100_a_job_can_be_deleted_in_every_state_and_its_holder_is_told`; behind keys and limits: `faults::keyed::f099_f100_a_cancelled_or_deleted_job_frees_its_key_and_its_slot_at_once`; in an operation: when there are operations |
//! | f105 | `http_payload::f105_nul_in_strings_is_kept_or_refused_and_never_sticks` |
//! | f106 | `http_payload::f106_numbers_are_not_read` |
//! | f107 | `http_payload::f107_every_route_gives_the_same_bytes` |
//! | f108 | `http_payload::f108_keys_keep_their_order_and_stay_twice` |
//! | f109 | `http_payload::f109_nesting_ends_at_its_limit_and_not_in_a_crash` |
//! | f111 | `http_who::f111_it_refuses_to_listen_where_others_could_reach_it` |
//! | f112 | `http_who::f112_no_spelling_of_a_path_gets_around_the_guards` |
//! | f113 | `alerts::webhook::f113_redirects_are_not_followed_and_count_as_failed` |
//! | f114 | `alerts::webhook::f114_loopback_by_its_address_is_refused`, `alerts::webhook::f114_loopback_by_a_name_is_refused`, `alerts::webhook::f114_a_link_local_address_is_refused`, `alerts::webhook::f114_the_heartbeat_is_refused_inside_too`; names that change: `f114_dns_that_changes_helps_nobody` in `src/alerts/outgoing.rs` |
//! | f115 | `http_payload::f115_secrets_reach_no_log_list_or_metric` |
//! | f116 | `faults::clocks::f116_a_delay_counts_from_the_acceptance_by_the_servers_clock` |
//! | f118 | `faults::clocks::f118_a_start_in_the_past_is_now` |
//! | f119 | `faults::clocks::f119_every_field_comes_back_as_it_was_sent` |
//! | f120 | `faults::clocks::f120_jobs_for_tomorrow_hold_nobody_and_a_claim_says_when` |
//! | f127 | `faults::backlog::f127_jobs_for_tomorrow_cost_a_claim_nothing` |
//! | f128 | `faults::backlog::f128_many_workers_do_not_fight_over_the_first_job` |
//! | f129 | `faults::backlog::f129_a_claim_takes_a_few_of_many_that_are_due_at_once_and_leaves_the_others`; locked rows: PostgreSQL |
//! | f130 | `faults::backlog::needs_sqlite3::f130_a_forgotten_transaction_of_a_reader_slows_nobody_and_is_seen`; vacuum: PostgreSQL |
//! | f131 | `http_bodies::f131_large_payloads_do_not_fill_the_memory` |
//! | f132 | `faults::order::f132_a_lost_job_comes_back_behind_those_that_were_due_before` |
//! | f133 | `faults::order::f133_a_job_that_always_fails_does_not_starve_those_behind_it` |
//! | f134 | `faults::order::f134_ten_thousand_equal_jobs_come_in_the_order_in_which_they_were_sent` |
//! | f135 | `faults::order::f135_jobs_of_the_same_instant_come_by_number` |
//! | f136 | `faults::limits::f136_jobs_held_back_by_a_limit_keep_their_place` |
//! | f137 | `faults::order::f137_a_backlog_does_not_beat_a_higher_priority`; behind an import of 100,000: `a_critical_job_behind_a_hundred_thousand_waits_for_one_running_job`, with a reserve beside it, in the tests of the SQLite store |
//! | f149 | `faults::figures::f149_f152_totals_are_what_clients_saw_and_counts_are_the_rows` |
//! | f150 | `process::f150_metrics_stay_small_whatever_names_come` |
//! | f151 | `faults::store::needs_sqlite3::f151_a_damaged_row_is_shown_as_damaged_and_stops_nobody` |
//! | f152 | `faults::figures::f149_f152_totals_are_what_clients_saw_and_counts_are_the_rows` |
//!
//! Of the same kinds, these do not apply yet:
//!
//! | fault | what it needs first |
//! |---|---|
//! | f020 | PostgreSQL |
//! | f060 | operations |
//! | f110 | a dashboard |
//! | f117 | schedules, several servers |
//! | f148 | a dashboard |

mod backlog;
mod backoff;
mod clock_moved;
mod clocks;
mod deploy;
mod disk;
mod fencing;
mod figures;
mod keyed;
mod limits;
mod lost;
mod order;
mod recovery;
mod rights;
mod silent;
mod store;
mod uniqueness;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::Path;

/// The kinds of faults that the queue on one SQLite server must not have, as their numbers.
const KINDS: [RangeInclusive<u32>; 15] = [
    1..=5,
    6..=15,
    16..=20,
    21..=27,
    28..=43,
    44..=48,
    49..=53,
    54..=60,
    73..=79,
    80..=90,
    91..=94,
    95..=100,
    105..=120,
    127..=131,
    132..=137,
];
/// Figures: the last kind.
const FIGURES: RangeInclusive<u32> = 148..=152;

/// Rows of the tables above: the numbers of a row, and what stands beside them.
fn rows() -> Vec<(Vec<u32>, &'static str)> {
    let lines = include_str!("mod.rs").lines().filter_map(|line| line.strip_prefix("//! | f"));
    lines
        .filter_map(|line| {
            let (faults, beside) = line.split_once(" | ")?;
            let numbers = faults
                .split(", ")
                .map(|fault| fault.trim_start_matches('f').parse())
                .collect::<Result<_, _>>();
            Some((numbers.ok()?, beside.trim_end_matches(" |").trim_matches('`')))
        })
        .collect()
}

/// All sources of the tests beside this one.
fn sources(dir: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            text += &sources(&path);
        } else if path.extension().is_some_and(|end| end == "rs") {
            text += &std::fs::read_to_string(&path).expect("a source");
        }
    }
    text
}

#[test]
fn every_fault_of_these_kinds_has_its_row() {
    let named: Vec<u32> = rows().into_iter().flat_map(|(numbers, _)| numbers).collect();
    let set: BTreeSet<u32> = named.iter().copied().collect();
    assert_eq!(set.len(), named.len(), "a fault stands there twice");
    let wanted: BTreeSet<u32> = KINDS.into_iter().chain([FIGURES]).flatten().collect();
    assert_eq!(set, wanted);
}

#[test]
fn every_test_that_is_named_here_exists() {
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it"));
    for (numbers, test) in rows().into_iter().filter(|(_, beside)| beside.contains("::")) {
        for name in test.split('`').filter(|name| name.contains("::")) {
            let function = name.rsplit("::").next().expect("a name");
            assert!(sources.contains(&format!("fn {function}()")), "{numbers:?}: {name}");
        }
    }
}
