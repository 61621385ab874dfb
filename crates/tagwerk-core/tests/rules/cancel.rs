//! Cancel, at once and with `wait`.

use tagwerk_core::{Action, Answer, Attempt, AttemptEnd, Before, ErrorClass, Event, Job, Rejection, Status};

use crate::scene::{
    BASE_MS, LEASE_MS, Scene, Token, at, bits, completed, failed, force_fail, plain, released,
};

type Verdict = Result<Answer, Rejection>;

const NOW: Action = Action::Cancel { wait: false };
const WAIT: Action = Action::Cancel { wait: true };
const STOPPED: Verdict = Ok(Answer::Refused(Rejection::Cancelled));

/// A running job whose holder has been asked to stop.
fn stopping() -> (Scene, Token) {
    let mut s = plain();
    let token = s.claim("w1");
    s.wait(100).operate(WAIT);
    (s, token)
}

fn cancelled_attempt(ended_at: i64) -> Attempt {
    Attempt {
        seq: 1,
        number: 1,
        bits: bits(1),
        worker: "w1".to_owned(),
        claimed_at: at(0),
        lease_expires_at: at(LEASE_MS),
        ended_at: at(ended_at),
        end: AttemptEnd::Cancelled,
        error: None,
        late: false,
        report: None,
        before: None,
    }
}

#[test]
fn a_pending_job_is_cancelled_with_or_without_wait() {
    for action in [NOW, WAIT] {
        let mut s = plain();
        let pending = s.job.clone();
        s.wait(100).operate(action);
        let expected = Job {
            status: Status::Cancelled,
            version: 2,
            acted: true,
            updated_at: at(100),
            finished_at: Some(at(100)),
            ..pending
        };
        assert_eq!(s.job, expected);
        assert!(s.history.is_empty());
    }
}

#[test]
fn a_running_job_is_cancelled_at_once() {
    let mut s = plain();
    let token = s.claim("w1");
    let running = s.job.clone();
    s.wait(100).operate(NOW);
    let expected = Job {
        status: Status::Cancelled,
        version: 3,
        acted: true,
        newest_lost: true,
        lease: None,
        updated_at: at(100),
        finished_at: Some(at(100)),
        ..running
    };
    assert_eq!(s.job, expected);
    assert_eq!(s.history, [cancelled_attempt(100)]);
    assert_eq!(s.heartbeat(token), Err(Rejection::Cancelled));
}

#[test]
fn cancel_in_the_other_states() {
    let mut s = plain();
    let token = s.claim("w1");
    s.report(token, completed());
    assert_eq!(s.operates(NOW), Err(Rejection::AlreadyCompleted));
    assert_eq!(s.operates(WAIT), Err(Rejection::AlreadyCompleted));
    let mut s = plain();
    let token = s.claim("w1");
    s.report(token, failed(ErrorClass::Permanent));
    assert_eq!(s.operates(NOW), Err(Rejection::UseDiscard));
    s.operate(Action::Discard);
    let job = s.job.clone();
    assert_eq!(s.operates(NOW), Ok(Answer::Replayed));
    assert_eq!(s.operates(WAIT), Ok(Answer::Replayed));
    assert_eq!(s.job, job);
}

#[test]
fn with_wait_a_running_job_keeps_its_slot_and_lease() {
    let mut s = plain();
    s.claim("w1");
    let running = s.job.clone();
    s.wait(100).operate(WAIT);
    let expected = Job { version: 3, acted: true, cancel_requested: true, updated_at: at(100), ..running };
    assert_eq!(s.job, expected);
    let job = s.job.clone();
    assert_eq!(s.wait(1).operates(WAIT), Ok(Answer::Replayed));
    assert_eq!(s.job, job);
}

#[test]
fn the_next_call_of_any_kind_is_answered_cancelled_and_cancels() {
    let calls: [fn(&mut Scene, Token) -> Verdict; 6] = [
        |s, token| s.heartbeat(token),
        |s, token| s.checkpoint(token),
        |s, token| s.reports(token, completed()),
        |s, token| s.reports(token, failed(ErrorClass::Permanent)),
        |s, token| s.reports(token, released(0)),
        |s, _| s.reports_without_token(Some("w1"), completed()),
    ];
    for call in calls {
        let (mut s, token) = stopping();
        s.wait(900);
        assert_eq!(call(&mut s, token), STOPPED);
        assert_eq!((s.job.status, s.job.version), (Status::Cancelled, 4));
        assert_eq!(s.job.finished_at, Some(at(1_000)));
        assert!(!s.job.cancel_requested);
        assert_eq!(s.history, [cancelled_attempt(1_000)]);
        assert_eq!(call(&mut s, token), Err(Rejection::Cancelled), "and stays so");
    }
}

#[test]
fn somebody_elses_call_does_not_count_as_the_holders() {
    let mut s = plain();
    let first = s.lose("w1");
    s.wait(BASE_MS).claim("w2");
    s.operate(WAIT);
    let job = s.job.clone();
    let stale = Err(Rejection::LeaseLost { may_report: false });
    assert_eq!(s.heartbeat(first), stale);
    assert_eq!(s.reports(first, completed()), stale);
    assert_eq!(s.reports_without_token(Some("w2"), completed()), Err(Rejection::LeaseRequired));
    let nameless = s.no_token(None);
    assert_eq!(s.happens(&Event::Heartbeat(nameless)), Err(Rejection::LeaseRequired));
    assert_eq!(s.job, job);
}

#[test]
fn the_end_of_the_attempt_cancels_and_the_history_says_how_it_ended() {
    let (mut s, token) = stopping();
    s.wait(LEASE_MS).settle();
    assert_eq!((s.job.status, s.job.lease_losses, s.job.retry_count), (Status::Cancelled, 0, 0));
    assert_eq!((s.newest().end, s.newest().ended_at), (AttemptEnd::LeaseExpired, at(LEASE_MS)));
    assert_eq!(s.newest().before, None::<Before>);
    let lost = "lease lost: worker w1 neither reported nor sent a heartbeat before its lease ended";
    assert_eq!(s.newest().error.as_deref(), Some(lost));
    assert_eq!(s.reports(token, completed()), Err(Rejection::Cancelled));

    let mut s = plain();
    s.claim_limited("w1", 5_000);
    s.operate(WAIT).wait(5_000).settle();
    assert_eq!((s.job.status, s.newest().end), (Status::Cancelled, AttemptEnd::TimedOut));
    let timed_out = "timed out: worker w1 did not report within the time limit of the attempt";
    assert_eq!(s.newest().error.as_deref(), Some(timed_out));
}

#[test]
fn a_second_cancel_without_wait_does_not_wait() {
    let (mut s, token) = stopping();
    s.operate(NOW);
    assert_eq!((s.job.status, s.job.version), (Status::Cancelled, 4));
    assert_eq!(s.newest().end, AttemptEnd::Cancelled);
    assert_eq!(s.heartbeat(token), Err(Rejection::Cancelled));
}

#[test]
fn force_fail_takes_the_place_of_a_cancel_that_waits() {
    let (mut s, _) = stopping();
    s.operate(force_fail());
    assert_eq!((s.job.status, s.job.cancel_requested), (Status::Failed, false));
    s.retry();
    s.claim("w2");
    assert!(!s.job.cancel_requested);
}
