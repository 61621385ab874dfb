//! Heartbeat and checkpoint.

use tagwerk_core::{Answer, Caller, ErrorClass, Event, Rejection, Status};

use crate::scene::{BASE_MS, LEASE_MS, at, bits, completed, failed, force_fail, plain};

const STALE: Result<Answer, Rejection> = Err(Rejection::LeaseLost { may_report: false });

#[test]
fn heartbeat_extends_from_now_and_changes_nothing_else() {
    let mut s = plain();
    let token = s.claim("w1");
    let before = s.job.clone();
    s.wait(10_000);
    assert_eq!(s.heartbeat(token), Ok(Answer::Done));
    let lease = s.job.lease.as_ref().unwrap();
    assert_eq!(lease.expires_at, at(10_000 + LEASE_MS));
    s.job.lease.clone_from(&before.lease);
    assert_eq!(s.job, before, "neither version nor updated_at nor anything else");
}

#[test]
fn heartbeat_never_shortens() {
    let mut s = plain();
    let token = s.claim("w1");
    let moved = s.job.lease.as_mut().unwrap();
    moved.expires_at = moved.expires_at.plus_ms(500_000);
    assert_eq!(s.heartbeat(token), Ok(Answer::Done));
    assert_eq!(s.job.lease.as_ref().unwrap().expires_at, at(LEASE_MS + 500_000));
}

#[test]
fn f013_f014_heartbeats_hold_a_lease_for_ever() {
    let mut s = plain();
    let token = s.claim("w1");
    for _ in 0..1_000 {
        s.wait(LEASE_MS - 1);
        assert_eq!(s.heartbeat(token), Ok(Answer::Done));
        assert_eq!(s.claims("w2"), Err(Rejection::NotClaimable));
    }
    s.report(token, completed());
    assert_eq!((s.job.status, s.job.attempt), (Status::Completed, 1));
}

#[test]
fn f024_heartbeats_do_not_move_the_time_limit() {
    let mut s = plain();
    let token = s.claim_limited("w1", 2 * LEASE_MS);
    s.wait(LEASE_MS - 1);
    assert_eq!(s.heartbeat(token), Ok(Answer::Done));
    s.wait(LEASE_MS - 1);
    assert_eq!(s.heartbeat(token), Ok(Answer::Done));
    assert_eq!(s.job.lease.as_ref().unwrap().ends_at(), at(2 * LEASE_MS));
    s.wait(2);
    assert_eq!(s.heartbeat(token), Err(Rejection::TimedOut { may_report: true }));
    assert_eq!(s.job.status, Status::Pending);
}

#[test]
fn f025_a_long_time_limit_does_not_delay_the_end_of_the_lease() {
    let mut s = plain();
    s.claim_limited("w1", 3_600_000);
    s.wait(LEASE_MS).settle();
    assert_eq!((s.job.status, s.job.lease_losses), (Status::Pending, 1));
}

#[test]
fn checkpoint_changes_nothing_of_the_job() {
    let mut s = plain();
    let token = s.claim("w1");
    let before = s.job.clone();
    s.wait(10);
    assert_eq!(s.checkpoint(token), Ok(Answer::Done));
    assert_eq!(s.job, before);
}

#[test]
fn f012_a_late_holder_hears_it_at_the_next_call_and_may_report() {
    let mut s = plain();
    let token = s.lose("w1");
    assert_eq!(s.heartbeat(token), Err(Rejection::LeaseLost { may_report: true }));
    assert_eq!(s.checkpoint(token), Err(Rejection::LeaseLost { may_report: true }));
    assert_eq!(s.job.status, Status::Pending, "a lease is never revived");
}

#[test]
fn f016_a_stale_holder_is_told_to_stop() {
    let mut s = plain();
    let first = s.lose("w1");
    s.wait(BASE_MS);
    let second = s.claim("w2");
    assert_eq!(s.heartbeat(first), STALE);
    assert_eq!(s.checkpoint(first), STALE);
    assert_eq!(s.heartbeat(second), Ok(Answer::Done));
}

#[test]
fn a_timed_out_holder_is_stale_like_any_other_once_somebody_else_runs() {
    let mut s = plain();
    let first = s.time_out("w1");
    assert_eq!(s.heartbeat(first), Err(Rejection::TimedOut { may_report: true }));
    s.wait_until_due().claim("w2");
    assert_eq!(s.heartbeat(first), STALE);
}

#[test]
fn on_a_completed_job_there_is_nothing_running() {
    let mut s = plain();
    let token = s.claim("w1");
    s.report(token, completed());
    let refused = Err(Rejection::NotRunning { status: Status::Completed });
    assert_eq!(s.heartbeat(token), refused);
    assert_eq!(s.checkpoint(token), refused);
    assert_eq!(s.happens(&Event::Heartbeat(Caller::Stranger)), refused);
}

#[test]
fn after_its_own_report_a_holder_is_stale() {
    let mut s = plain();
    let token = s.claim("w1");
    s.report(token, failed(ErrorClass::Transient));
    assert_eq!(s.heartbeat(token), STALE);
}

#[test]
fn after_a_person_acted_a_holder_is_stale() {
    let mut s = plain();
    let token = s.claim("w1");
    s.operate(force_fail());
    assert_eq!(s.heartbeat(token), STALE);
}

#[test]
fn unknown_tokens_are_stale_and_no_token_is_not_enough() {
    let mut s = plain();
    s.claim("w1");
    assert_eq!(s.happens(&Event::Heartbeat(Caller::Stranger)), STALE);
    assert_eq!(s.happens(&Event::Heartbeat(Caller::Live(bits(99)))), STALE);
    let nameless = s.no_token(Some("w1"));
    assert_eq!(s.happens(&Event::Heartbeat(nameless.clone())), Err(Rejection::LeaseRequired));
    assert_eq!(s.happens(&Event::Checkpoint(nameless)), Err(Rejection::LeaseRequired));
}
