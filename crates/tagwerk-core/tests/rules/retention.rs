//! What may be deleted by age.

use tagwerk_core::limits::DAY_MS;
use tagwerk_core::retention::{Policy, cutoff, is_prunable};
use tagwerk_core::{Status, Timestamp};

use crate::scene::at;

#[test]
fn defaults_are_the_documented_ones() {
    let week = Some(7 * DAY_MS);
    assert_eq!(Policy::default(), Policy { completed_ms: week, cancelled_ms: Some(30 * DAY_MS) });
}

#[test]
fn f058_only_completed_and_cancelled_jobs_are_ever_deleted() {
    let policy = Policy { completed_ms: Some(0), cancelled_ms: Some(0) };
    for status in Status::ALL {
        let may = matches!(status, Status::Completed | Status::Cancelled);
        assert_eq!(is_prunable(status, Some(Timestamp::EPOCH), &policy, at(0)), may, "{}", status.name());
        assert_eq!(cutoff(status, &policy, at(0)).is_some(), may);
    }
}

#[test]
fn each_status_has_its_own_age() {
    let policy = Policy { completed_ms: Some(100), cancelled_ms: Some(200) };
    let prunable = |status, ms| is_prunable(status, Some(at(0)), &policy, at(ms));
    assert!(!prunable(Status::Completed, 99));
    assert!(prunable(Status::Completed, 100));
    assert!(!prunable(Status::Cancelled, 199));
    assert!(prunable(Status::Cancelled, 200));
    assert_eq!(cutoff(Status::Completed, &policy, at(100)), Some(at(0)));
}

#[test]
fn zero_is_at_once_and_none_is_never() {
    let policy = Policy { completed_ms: Some(0), cancelled_ms: None };
    assert!(is_prunable(Status::Completed, Some(at(0)), &policy, at(0)));
    assert!(!is_prunable(Status::Completed, Some(at(1)), &policy, at(0)), "not before its end");
    assert!(!is_prunable(Status::Cancelled, Some(Timestamp::EPOCH), &policy, Timestamp::MAX));
}

#[test]
fn a_job_without_an_end_is_spared() {
    let policy = Policy { completed_ms: Some(0), cancelled_ms: Some(0) };
    assert!(!is_prunable(Status::Completed, None, &policy, Timestamp::MAX));
}

#[test]
fn absurd_ages_do_not_wrap() {
    for (age, may) in [(i64::MAX, false), (-1, true), (i64::MIN, true)] {
        let policy = Policy { completed_ms: Some(age), cancelled_ms: None };
        assert_eq!(is_prunable(Status::Completed, Some(at(0)), &policy, at(0)), may, "{age}");
    }
}
