//! Claim, and what is overdue.

use tagwerk_core::{
    Answer, ErrorClass, Event, Grant, Job, Lease, Rejection, Status, Timestamp, decide, overdue,
};

use crate::scene::{BASE_MS, LEASE_MS, at, bits, completed, failed, plain, released, scene};

#[test]
fn claim_sets_exactly_what_it_should() {
    let mut s = plain();
    let before = s.job.clone();
    s.wait(250);
    let grant = Grant {
        handles_verify: true,
        bits: bits(1),
        worker: "w1".to_owned(),
        lease_ms: 60_000,
        timeout_ms: Some(90_000),
        request_id: Some("r-1".to_owned()),
    };
    assert_eq!(s.happens(&Event::Claim(grant)), Ok(Answer::Done));
    let expected = Job {
        status: Status::Running,
        version: 2,
        attempt: 1,
        leases: 1,
        started: true,
        handles_verify: true,
        updated_at: at(250),
        lease: Some(Lease {
            bits: bits(1),
            worker: "w1".to_owned(),
            claimed_at: at(250),
            expires_at: at(60_250),
            time_limit_at: Some(at(90_250)),
            lease_ms: 60_000,
            request_id: Some("r-1".to_owned()),
        }),
        ..before
    };
    assert_eq!(s.job, expected);
    assert!(s.history.is_empty());
}

#[test]
fn due_is_due_at_its_instant() {
    let mut s = scene(|new| new.available_at = at(1_000));
    s.wait(999);
    assert_eq!(s.claims("w1"), Err(Rejection::NotClaimable));
    s.wait(1);
    assert_eq!(s.claims("w1"), Ok(Answer::Done));
}

#[test]
fn only_pending_jobs_are_claimable() {
    let mut s = plain();
    let token = s.claim("w1");
    assert_eq!(s.claims("w2"), Err(Rejection::NotClaimable));
    s.report(token, completed());
    assert_eq!(s.claims("w2"), Err(Rejection::NotClaimable));
}

#[test]
fn overdue_begins_at_its_instant() {
    let mut s = scene(|new| new.expires_at = Some(at(100)));
    assert_eq!(overdue(&s.job, at(99)), None);
    assert_eq!(overdue(&s.job, at(100)), Some(Event::Expire));
    s.claim("w1");
    assert_eq!(overdue(&s.job, at(100)), None, "a running attempt is not cut by the maximum age");
    assert_eq!(overdue(&s.job, at(LEASE_MS - 1)), None);
    assert_eq!(overdue(&s.job, at(LEASE_MS)), Some(Event::AttemptOver));
}

#[test]
fn overdue_looks_at_lease_and_time_limit() {
    let mut s = plain();
    s.claim_limited("w1", LEASE_MS - 1);
    assert_eq!(overdue(&s.job, at(LEASE_MS - 2)), None);
    assert_eq!(overdue(&s.job, at(LEASE_MS - 1)), Some(Event::AttemptOver));
}

#[test]
fn settled_jobs_are_never_overdue() {
    let mut s = scene(|new| new.expires_at = Some(at(100)));
    let token = s.claim("w1");
    s.report(token, completed());
    assert_eq!(overdue(&s.job, Timestamp::MAX), None);
}

#[test]
fn nothing_else_is_decided_while_something_is_overdue() {
    let mut s = plain();
    let token = s.claim("w1");
    s.wait(LEASE_MS);
    let heartbeat = Event::Heartbeat(s.caller(token));
    assert!(matches!(decide(&s.job, &heartbeat, &s.ctx), Err(Rejection::DoesNotApply { .. })));
    assert!(matches!(decide(&s.job, &Event::Expire, &s.ctx), Err(Rejection::DoesNotApply { .. })));
    assert!(decide(&s.job, &Event::AttemptOver, &s.ctx).is_ok());
}

#[test]
fn an_expired_job_is_never_handed_out_swept_or_not() {
    let mut s = scene(|new| new.expires_at = Some(at(100)));
    s.wait(100);
    let claim = Event::Claim(s.grant("w1"));
    assert!(matches!(decide(&s.job, &claim, &s.ctx), Err(Rejection::DoesNotApply { .. })));
    assert_eq!(s.claims("w1"), Err(Rejection::NotClaimable));
    assert_eq!(s.job.status, Status::Failed);
}

#[test]
fn time_comes_only_when_it_is_due() {
    let mut s = scene(|new| new.expires_at = Some(at(100)));
    assert!(matches!(decide(&s.job, &Event::Expire, &s.ctx), Err(Rejection::DoesNotApply { .. })));
    assert!(matches!(decide(&s.job, &Event::AttemptOver, &s.ctx), Err(Rejection::DoesNotApply { .. })));
    s.claim("w1");
    assert!(matches!(decide(&s.job, &Event::AttemptOver, &s.ctx), Err(Rejection::DoesNotApply { .. })));
}

#[test]
fn f076_attempts_are_numbered_and_the_last_one_knows_it() {
    let mut s = scene(|new| new.max_retries = 3);
    for (number, last, left) in [(1, false, 3), (2, false, 2), (3, false, 1), (4, true, 0)] {
        s.wait_until_due();
        assert_eq!(s.job.attempts_left(), left + 1, "while waiting for attempt {number}");
        let token = s.claim("w1");
        assert_eq!((s.job.attempt, s.job.is_last_attempt()), (number, last));
        assert_eq!(s.job.attempts_left(), left, "during attempt {number}");
        s.report(token, failed(ErrorClass::Transient));
    }
    assert_eq!((s.job.status, s.job.attempt), (Status::Failed, 4));
    assert_eq!(s.job.attempts_left(), 0);
}

#[test]
fn f077_runs_are_retries_plus_one() {
    for max_retries in [0, 1, 2, 10] {
        let mut s = scene(|new| new.max_retries = max_retries);
        let mut runs = 0;
        while runs < 20 && s.wait_until_due().claims("w1").is_ok() {
            runs += 1;
            let token = crate::scene::Token(s.job.leases);
            s.report(token, failed(ErrorClass::Transient));
        }
        assert_eq!(runs, max_retries + 1);
    }
}

#[test]
fn f056_f057_a_released_attempt_gives_its_number_back() {
    let mut s = plain();
    let first = s.claim("w1");
    s.report(first, released(0));
    assert_eq!((s.job.attempt, s.job.leases, s.job.release_count), (0, 1, 1));
    s.claim("w2");
    assert_eq!((s.job.attempt, s.job.leases), (1, 2));
    assert_eq!(s.history[0].number, 1, "the history tells them apart by lease");
}

#[test]
fn a_claim_remembers_that_an_earlier_lease_was_lost() {
    let mut s = plain();
    s.lose("w1");
    assert!(s.job.newest_lost && !s.job.earlier_lost);
    s.wait(BASE_MS).claim("w2");
    assert!(!s.job.newest_lost && s.job.earlier_lost);
}
