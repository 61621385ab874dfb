//! Late and stale reports.

use tagwerk_core::{
    Action, Answer, Attempt, AttemptEnd, Cause, ErrorClass, FailureClass, Job, OnUnknown, Reason, Rejection,
    Status,
};

use crate::scene::{
    BASE_MS, LEASE_MS, Scene, Token, at, completed, failed, force_fail, plain, released, report, scene,
};

const STALE: Result<Answer, Rejection> = Err(Rejection::LeaseLost { may_report: false });

/// A job whose second attempt, after a reported failure, has just been lost. Everything a loss overwrites has a value.
fn lost_with_a_past() -> (Scene, Token, Job) {
    let mut s = plain();
    let first = s.claim("w1");
    s.report(first, failed(ErrorClass::Unknown));
    let token = s.wait_until_due().claim("w2");
    let running = s.job.clone();
    s.wait(LEASE_MS).settle();
    (s, token, running)
}

#[test]
fn a_late_complete_takes_the_place_of_the_loss() {
    let (mut s, token, running) = lost_with_a_past();
    let (lost, entry) = (s.job.clone(), s.newest().clone());
    assert_eq!((lost.retry_count, lost.lease_losses, lost.verify), (2, 1, true));
    assert_eq!(entry.end, AttemptEnd::LeaseExpired);
    s.wait(300).report(token, completed());
    let now = at(BASE_MS + LEASE_MS + 300);
    let expected = Job {
        status: Status::Completed,
        version: lost.version + 1,
        lease: None,
        verify: false,
        updated_at: now,
        finished_at: Some(now),
        available_at: lost.available_at,
        ..running
    };
    assert_eq!(s.job, expected, "counters and error are those from before the loss");
    let amended = Attempt {
        ended_at: now,
        end: AttemptEnd::Completed,
        error: None,
        late: true,
        report: Some(report(completed()).hash),
        before: None,
        ..entry
    };
    assert_eq!(s.history.len(), 2, "one attempt in the history");
    assert_eq!(*s.newest(), amended);
}

#[test]
fn a_late_transient_failure_is_decided_as_if_in_time() {
    let (mut s, token, running) = lost_with_a_past();
    s.wait(300).report(token, failed(ErrorClass::Transient));
    assert_eq!(s.job.retry_count, running.retry_count + 1);
    assert_eq!((s.job.lease_losses, s.job.verify), (0, false));
    assert_eq!(s.job.error.as_deref(), Some("transient trouble"));
    assert_eq!(s.due_in(), 2 * BASE_MS, "with now as the present and the back-off of that retry");
    assert_eq!(s.newest().end, AttemptEnd::Failed(ErrorClass::Transient));
    assert_eq!(s.newest().error.as_deref(), Some("transient trouble"));
}

#[test]
fn a_late_unknown_failure_is_no_longer_a_lost_lease() {
    let (mut s, token, running) = lost_with_a_past();
    s.report(token, failed(ErrorClass::Unknown));
    assert_eq!((s.job.status, s.job.verify, s.job.lease_losses), (Status::Pending, true, 0));
    assert_eq!(s.job.retry_count, running.retry_count + 1);
}

#[test]
fn a_late_permanent_failure_goes_to_review() {
    let (mut s, token, running) = lost_with_a_past();
    s.report(token, failed(ErrorClass::Permanent));
    let failure = s.job.failure.unwrap();
    assert_eq!((failure.reason, failure.cause), (Reason::Permanent, Cause::Reported));
    assert_eq!((s.job.retry_count, s.job.verify), (running.retry_count, false));
}

#[test]
fn a_late_release_gives_everything_back() {
    let (mut s, token, running) = lost_with_a_past();
    s.wait(300).report(token, released(50));
    assert_eq!((s.job.attempt, s.job.release_count), (1, 1));
    assert_eq!((s.job.retry_count, s.job.lease_losses), (running.retry_count, 0));
    assert_eq!((s.job.verify, &s.job.error), (running.verify, &running.error));
    assert_eq!((s.job.status, s.due_in()), (Status::Pending, 50));
    s.wait(50).claim("w3");
    assert!(!s.job.earlier_lost, "no lease of this job is unaccounted for");
}

#[test]
fn f017_a_late_report_rescues_a_job_that_the_loss_sent_to_review() {
    for change in [
        |new: &mut tagwerk_core::NewJob| new.max_retries = 0,
        |new: &mut tagwerk_core::NewJob| new.max_lease_losses = 1,
        |new: &mut tagwerk_core::NewJob| new.on_unknown = OnUnknown::Review,
        |new: &mut tagwerk_core::NewJob| new.expires_at = Some(at(LEASE_MS)),
    ] {
        let mut s = scene(change);
        let token = s.lose("w1");
        assert_eq!(s.job.status, Status::Failed);
        s.report(token, completed());
        assert_eq!((s.job.status, s.job.failure), (Status::Completed, None));
        assert_eq!((s.job.lease_losses, s.job.error.as_deref()), (0, None));
        assert!(s.newest().late);
    }
}

#[test]
fn f017_after_a_person_decided_a_late_report_no_longer_counts() {
    let mut s = scene(|new| new.max_retries = 0);
    let token = s.lose("w1");
    s.retry();
    let job = s.job.clone();
    for outcome in [completed(), failed(ErrorClass::Transient), released(0)] {
        assert_eq!(s.reports(token, outcome), STALE);
    }
    assert_eq!(s.heartbeat(token), STALE);
    assert_eq!(s.job, job);
}

#[test]
fn a_late_failure_of_the_last_attempt_goes_back_to_review() {
    let mut s = scene(|new| new.max_retries = 0);
    let token = s.lose("w1");
    assert_eq!(s.job.failure.unwrap().reason, Reason::OutcomeUnknown);
    s.wait(7).report(token, failed(ErrorClass::Transient));
    let failure = s.job.failure.unwrap();
    assert_eq!((failure.class, failure.reason), (FailureClass::Transient, Reason::RetriesExhausted));
    assert_eq!(s.job.finished_at, Some(s.ctx.now));
}

#[test]
fn a_late_report_counts_when_the_age_ended_the_waiting() {
    let mut s = scene(|new| new.expires_at = Some(at(LEASE_MS + 1)));
    let token = s.lose("w1");
    assert_eq!(s.job.status, Status::Pending);
    s.wait(1).settle();
    assert_eq!(s.job.failure.unwrap().cause, Cause::MaxAge);
    assert_eq!(s.heartbeat(token), Err(Rejection::LeaseLost { may_report: true }));
    s.report(token, completed());
    assert_eq!((s.job.status, s.job.verify), (Status::Completed, false));
}

#[test]
fn f016_once_somebody_else_runs_a_late_report_no_longer_counts() {
    let mut s = plain();
    let first = s.lose("w1");
    let second = s.wait_until_due().claim("w2");
    let job = s.job.clone();
    for outcome in [completed(), failed(ErrorClass::Permanent), released(0)] {
        assert_eq!(s.reports(first, outcome), STALE);
    }
    assert_eq!(s.job, job);
    s.report(second, completed());
    assert_eq!(s.reports(first, completed()), STALE, "also with the same content as the one that counted");
}

#[test]
fn f010_a_report_at_the_end_of_the_lease_is_late_and_counts() {
    let mut s = plain();
    let token = s.claim("w1");
    s.wait(LEASE_MS).report(token, completed());
    assert_eq!((s.job.status, s.newest().late), (Status::Completed, true));
    let mut s = plain();
    let token = s.claim("w1");
    s.wait(LEASE_MS - 1).report(token, completed());
    assert_eq!((s.job.status, s.newest().late), (Status::Completed, false));
}

#[test]
fn f018_a_completed_job_stays_completed() {
    let mut s = plain();
    let token = s.claim("w1");
    s.wait(LEASE_MS).report(token, completed());
    let job = s.job.clone();
    s.wait(10 * LEASE_MS).settle();
    assert_eq!(s.claims("w2"), Err(Rejection::NotClaimable));
    assert_eq!(s.operates(Action::Cancel { wait: false }), Err(Rejection::AlreadyCompleted));
    assert_eq!(s.job, job);
}

#[test]
fn a_late_report_is_repeated_like_any_other() {
    let (mut s, token, _) = lost_with_a_past();
    s.report(token, completed());
    assert_eq!(s.reports(token, completed()), Ok(Answer::Replayed));
    let counted = AttemptEnd::Completed;
    assert_eq!(s.reports(token, released(0)), Err(Rejection::AlreadyReported { counted }));
}

#[test]
fn after_a_timeout_reports_are_late_too() {
    let mut s = plain();
    let token = s.time_out("w1");
    assert_eq!((s.job.retry_count, s.newest().end), (1, AttemptEnd::TimedOut));
    s.report(token, completed());
    assert_eq!((s.job.status, s.job.retry_count, s.job.error.as_deref()), (Status::Completed, 0, None));
}

#[test]
fn after_force_fail_nothing_counts() {
    let mut s = plain();
    let token = s.claim("w1");
    s.operate(force_fail());
    assert_eq!(s.reports(token, completed()), STALE);
    assert_eq!(s.job.status, Status::Failed);
}

#[test]
fn a_cancelled_job_answers_cancelled_to_everybody() {
    let mut s = plain();
    let first = s.lose("w1");
    let second = s.wait_until_due().claim("w2");
    s.operate(Action::Cancel { wait: false });
    for token in [first, second, Token(99)] {
        assert_eq!(s.heartbeat(token), Err(Rejection::Cancelled));
        assert_eq!(s.checkpoint(token), Err(Rejection::Cancelled));
        for outcome in [completed(), failed(ErrorClass::Transient), released(0)] {
            assert_eq!(s.reports(token, outcome), Err(Rejection::Cancelled));
        }
    }
}

#[test]
fn an_unknown_token_is_stale() {
    let mut s = plain();
    s.lose("w1");
    assert_eq!(s.reports(Token(99), completed()), STALE);
}

#[test]
fn without_what_to_go_back_to_a_loss_is_final() {
    let (mut s, token, _) = lost_with_a_past();
    s.history.last_mut().unwrap().before = None;
    assert_eq!(s.reports(token, completed()), STALE, "rather refused than decided on wrong counters");
}
