//! Reports without a token: allowed only where they can be nobody else's.

use tagwerk_core::{Action, Answer, AttemptEnd, Caller, ErrorClass, Event, Rejection, Status};

use crate::scene::{LEASE_MS, completed, failed, plain, released, report};

#[test]
fn the_plain_loop_needs_no_token() {
    let mut s = plain();
    s.claim("w1");
    assert_eq!(s.reports_without_token(None, failed(ErrorClass::Transient)), Ok(Answer::Done));
    s.wait_until_due().claim("w2");
    assert_eq!(s.reports_without_token(Some("w2"), completed()), Ok(Answer::Done));
    assert_eq!(s.job.status, Status::Completed);
}

#[test]
fn require_lease_refuses_it_in_every_state() {
    let mut s = plain();
    s.ctx.require_lease = true;
    assert_eq!(s.reports_without_token(None, completed()), Err(Rejection::LeaseRequired));
    s.claim("w1");
    assert_eq!(s.reports_without_token(Some("w1"), completed()), Err(Rejection::LeaseRequired));
    s.operate(Action::Cancel { wait: false });
    assert_eq!(s.reports_without_token(None, completed()), Err(Rejection::LeaseRequired));
}

#[test]
fn with_no_lease_yet_nothing_is_running() {
    let mut s = plain();
    let refused = Err(Rejection::NotRunning { status: Status::Pending });
    assert_eq!(s.reports_without_token(None, completed()), refused);
    assert_eq!(s.reports_without_token(Some("w1"), released(0)), refused);
}

#[test]
fn another_worker_is_refused() {
    let mut s = plain();
    s.claim("w1");
    assert_eq!(s.reports_without_token(Some("w2"), completed()), Err(Rejection::LeaseRequired));
    s.wait(LEASE_MS).settle();
    assert_eq!(s.reports_without_token(Some("w2"), completed()), Err(Rejection::LeaseRequired));
    assert_eq!(s.reports_without_token(Some("w1"), completed()), Ok(Answer::Done), "late");
    assert!(s.newest().late);
}

#[test]
fn after_an_earlier_loss_a_slow_double_could_be_meant() {
    let mut s = plain();
    s.lose("w1");
    s.wait_until_due();
    let token = s.claim("w2");
    for worker in [None, Some("w1"), Some("w2")] {
        assert_eq!(s.reports_without_token(worker, completed()), Err(Rejection::LeaseRequired));
    }
    s.report(token, failed(ErrorClass::Transient));
    s.wait_until_due().claim("w2");
    assert_eq!(s.reports_without_token(None, completed()), Err(Rejection::LeaseRequired), "for good");
}

#[test]
fn a_late_report_that_took_the_place_of_the_loss_leaves_no_double() {
    let mut s = plain();
    s.lose("w1");
    assert_eq!(s.reports_without_token(None, released(0)), Ok(Answer::Done));
    s.claim("w2");
    assert_eq!(s.reports_without_token(None, completed()), Ok(Answer::Done));
}

#[test]
fn a_late_report_without_token_is_judged_like_one_with() {
    let mut s = plain();
    s.lose("w1");
    assert_eq!(s.reports_without_token(None, failed(ErrorClass::Permanent)), Ok(Answer::Done));
    assert_eq!((s.job.status, s.job.lease_losses), (Status::Failed, 0));
    s.retry();
    assert_eq!(
        s.reports_without_token(None, completed()),
        Err(Rejection::AlreadyReported { counted: AttemptEnd::Failed(ErrorClass::Permanent) })
    );
}

#[test]
fn after_a_person_acted_it_is_stale() {
    let mut s = plain();
    let token = s.lose("w1");
    s.report(token, failed(ErrorClass::Permanent)).retry();
    s.lose("w2");
    s.operate(Action::Cancel { wait: false });
    assert_eq!(s.reports_without_token(None, completed()), Err(Rejection::Cancelled));
    let mut s = crate::scene::scene(|new| new.max_retries = 0);
    s.lose("w1");
    s.retry();
    let stale = Err(Rejection::LeaseLost { may_report: false });
    assert_eq!(s.reports_without_token(None, completed()), stale);
}

#[test]
fn a_repetition_is_recognised() {
    let mut s = plain();
    s.claim("w1");
    assert_eq!(s.reports_without_token(None, completed()), Ok(Answer::Done));
    assert_eq!(s.reports_without_token(None, completed()), Ok(Answer::Replayed));
    assert_eq!(s.reports_without_token(Some("w1"), completed()), Ok(Answer::Replayed));
    assert_eq!(s.reports_without_token(Some("w2"), completed()), Err(Rejection::LeaseRequired));
    let counted = AttemptEnd::Completed;
    assert_eq!(s.reports_without_token(None, released(0)), Err(Rejection::AlreadyReported { counted }));
}

#[test]
fn a_cancelled_job_says_so() {
    let mut s = plain();
    s.operate(Action::Cancel { wait: false });
    assert_eq!(s.reports_without_token(None, completed()), Err(Rejection::Cancelled), "never started");
    let mut s = plain();
    s.lose("w1");
    s.wait_until_due().claim("w2");
    s.operate(Action::Cancel { wait: false });
    for worker in [None, Some("w1"), Some("w2")] {
        assert_eq!(s.reports_without_token(worker, completed()), Err(Rejection::Cancelled), "{worker:?}");
    }
}

#[test]
fn a_report_that_counted_is_repeated_on_a_cancelled_job_too() {
    let mut s = plain();
    s.claim("w1");
    assert_eq!(s.reports_without_token(None, released(0)), Ok(Answer::Done));
    s.operate(Action::Cancel { wait: false });
    assert_eq!(s.reports_without_token(None, released(0)), Ok(Answer::Replayed));
}

#[test]
fn when_the_newest_attempt_is_unknown_nothing_is_running() {
    let mut s = plain();
    let token = s.claim("w1");
    s.report(token, completed());
    let caller = Caller::NoToken { worker: Some("w1".to_owned()), newest: None };
    assert_eq!(
        s.happens(&Event::Report(caller, report(completed()))),
        Err(Rejection::NotRunning { status: Status::Completed })
    );
}
