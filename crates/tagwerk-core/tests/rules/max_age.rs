//! The maximum age: while waiting, and at a requeue.

use tagwerk_core::{AttemptEnd, Cause, ErrorClass, Failure, FailureClass, Job, Outcome, Reason, Status};

use crate::scene::{BASE_MS, LEASE_MS, Scene, at, completed, failed, plain, released, scene};

fn expired(class: FailureClass, cause: Cause) -> Failure {
    Failure { class, reason: Reason::Expired, cause }
}

#[test]
fn a_waiting_job_goes_to_review_at_its_age() {
    let mut s = scene(|new| new.expires_at = Some(at(1_000)));
    let waiting = s.job.clone();
    s.wait(1_000).settle();
    let expected = Job {
        status: Status::Failed,
        version: 2,
        failure: Some(expired(FailureClass::Transient, Cause::MaxAge)),
        updated_at: at(1_000),
        finished_at: Some(at(1_000)),
        ..waiting
    };
    assert_eq!(s.job, expected);
    assert!(s.history.is_empty());
}

#[test]
fn a_waiting_retry_expires_too_and_keeps_its_error() {
    let mut s = scene(|new| new.expires_at = Some(at(LEASE_MS + 1)));
    s.lose("w1");
    assert_eq!(s.job.status, Status::Pending);
    let error = s.job.error.clone();
    s.wait(1).settle();
    assert_eq!(s.job.failure, Some(expired(FailureClass::Unknown, Cause::MaxAge)), "verify was still true");
    assert_eq!((s.job.error, s.job.verify), (error, true));
}

#[test]
fn a_running_attempt_is_not_cut() {
    let mut s = scene(|new| new.expires_at = Some(at(1_000)));
    let token = s.claim("w1");
    s.wait(30_000).settle();
    assert_eq!(s.job.status, Status::Running);
    s.report(token, completed());
    assert_eq!(s.job.status, Status::Completed);
}

type Way = fn(&mut Scene);

/// The ways back to pending with the failure that each leads to when the way is cut, and its delay.
fn ways() -> Vec<(&'static str, Way, i64, Failure)> {
    vec![
        (
            "transient",
            |s| finish(s, failed(ErrorClass::Transient)),
            BASE_MS,
            expired(FailureClass::Transient, Cause::Reported),
        ),
        (
            "retry_after",
            |s| {
                let retry_after_ms = Some(9_000);
                finish(s, Outcome::Failed { class: ErrorClass::Transient, error: None, retry_after_ms });
            },
            9_000,
            expired(FailureClass::Transient, Cause::Reported),
        ),
        (
            "unknown",
            |s| finish(s, failed(ErrorClass::Unknown)),
            BASE_MS,
            expired(FailureClass::Unknown, Cause::Reported),
        ),
        ("release", |s| finish(s, released(700)), 700, expired(FailureClass::Transient, Cause::Reported)),
        (
            "lease lost",
            |s| {
                s.lose("w1");
            },
            LEASE_MS,
            expired(FailureClass::Unknown, Cause::LeaseExpired),
        ),
        (
            "timed out",
            |s| {
                s.time_out("w1");
            },
            10_000 + BASE_MS,
            expired(FailureClass::Unknown, Cause::TimedOut),
        ),
    ]
}

fn finish(s: &mut Scene, outcome: Outcome) {
    let token = s.claim("w1");
    s.report(token, outcome);
}

#[test]
fn a_requeue_that_would_be_due_at_the_age_goes_to_review_at_once() {
    for (name, way, due, failure) in ways() {
        let mut s = scene(|new| new.expires_at = Some(at(due)));
        way(&mut s);
        assert_eq!(s.job.failure, Some(failure), "{name}");
        assert_eq!(s.job.retry_count, 0, "{name}: nothing was requeued");
        assert!(s.newest().end != AttemptEnd::Completed);
        let mut s = scene(|new| new.expires_at = Some(at(due + 1)));
        way(&mut s);
        assert_eq!((s.job.status, s.job.available_at), (Status::Pending, at(due)), "{name}");
    }
}

#[test]
fn a_release_of_a_job_to_be_verified_expires_as_unknown() {
    let mut s = scene(|new| new.expires_at = Some(at(LEASE_MS + 500)));
    s.lose("w1");
    finish(&mut s, released(500));
    assert_eq!(s.job.failure, Some(expired(FailureClass::Unknown, Cause::Reported)));
    assert_eq!((s.job.attempt, s.job.release_count), (1, 1));
}

#[test]
fn reasons_that_weigh_more_than_the_age_come_first() {
    let mut s = scene(|new| {
        new.expires_at = Some(at(1));
        new.max_retries = 0;
    });
    finish(&mut s, failed(ErrorClass::Transient));
    assert_eq!(s.job.failure.unwrap().reason, Reason::RetriesExhausted);
    let mut s = scene(|new| {
        new.expires_at = Some(at(1));
        new.max_lease_losses = 1;
    });
    s.lose("w1");
    assert_eq!(s.job.failure.unwrap().reason, Reason::WorkerLost);
}

#[test]
fn retry_counts_a_length_anew_and_drops_an_instant() {
    let mut s = scene(|new| {
        new.expires_at = Some(at(1_000));
        new.max_age_ms = Some(1_000);
    });
    s.wait(5_000).settle().retry();
    assert_eq!(s.job.expires_at, Some(at(6_000)));
    let mut s = scene(|new| new.expires_at = Some(at(1_000)));
    s.wait(5_000).settle().retry();
    assert_eq!(s.job.expires_at, None);
    s.claim("w1");
}

#[test]
fn without_a_maximum_age_a_job_waits_for_ever() {
    let mut s = plain();
    s.wait(i64::MAX / 2).settle();
    assert_eq!(s.job.status, Status::Pending);
}
