//! How long a key holds: the table, cell by cell.

use tagwerk_core::idempotency::{holds, tombstone_free};
use tagwerk_core::limits::{DAY_MS, DEFAULT_TTL_MS};
use tagwerk_core::{Scope, Standing, Status};

use crate::scene::at;

const TTL_MS: i64 = 3_600_000;

/// Columns of the table: pending never started, pending again, running, failed, completed, cancelled never started,
/// cancelled after a start. What has ended did so at the start of the scene.
fn columns() -> [Standing; 7] {
    let standing = |status: Status, started| Standing {
        status,
        started,
        finished_at: status.is_settled().then_some(at(0)),
    };
    [
        standing(Status::Pending, false),
        standing(Status::Pending, true),
        standing(Status::Running, true),
        standing(Status::Failed, true),
        standing(Status::Completed, true),
        standing(Status::Cancelled, false),
        standing(Status::Cancelled, true),
    ]
}

/// A row as `1` (200, the key holds) and `0` (201, it is free), `ms` after the end.
fn row(scope: Scope, ms: i64) -> String {
    let cell = |standing| if holds(scope, TTL_MS, &standing, at(ms)) { '1' } else { '0' };
    columns().map(cell).iter().collect()
}

#[test]
fn f040_waiting_holds_until_the_first_start() {
    assert_eq!(row(Scope::Waiting, 0), "1000000");
}

#[test]
fn f028_f038_unfinished_holds_through_waiting_and_running() {
    assert_eq!(row(Scope::Unfinished, 0), "1110000");
}

#[test]
fn f033_ttl_counts_from_the_end() {
    assert_eq!(row(Scope::Ttl, 0), "1111101");
    assert_eq!(row(Scope::Ttl, TTL_MS - 1), "1111101");
    assert_eq!(row(Scope::Ttl, TTL_MS), "1111000");
}

#[test]
fn forever_is_for_ever() {
    assert_eq!(row(Scope::Forever, 0), "1111111");
    assert_eq!(row(Scope::Forever, i64::MAX / 2), "1111111");
}

#[test]
fn f034_a_key_row_may_go_exactly_when_it_holds_no_more() {
    for scope in Scope::ALL {
        for standing in columns() {
            for ms in [0, TTL_MS - 1, TTL_MS, TTL_MS + 1] {
                assert_ne!(
                    tombstone_free(*scope, TTL_MS, &standing, at(ms)),
                    holds(*scope, TTL_MS, &standing, at(ms))
                );
            }
        }
    }
}

#[test]
fn a_ttl_of_nothing_ends_with_the_job_and_a_huge_one_never_does() {
    let completed = columns()[4];
    assert!(!holds(Scope::Ttl, 0, &completed, at(0)));
    assert!(holds(Scope::Ttl, i64::MAX, &completed, at(i64::MAX / 2)));
}

#[test]
fn a_job_whose_end_is_not_known_keeps_its_key() {
    let standing = Standing { finished_at: None, ..columns()[4] };
    assert!(holds(Scope::Ttl, TTL_MS, &standing, at(i64::MAX / 2)));
}

#[test]
fn defaults_are_the_documented_ones() {
    assert_eq!(Scope::default(), Scope::Ttl);
    assert_eq!(DEFAULT_TTL_MS, 30 * DAY_MS);
}
