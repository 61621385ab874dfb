//! Reports in time and repeated reports.

use tagwerk_core::{
    Answer, Attempt, AttemptEnd, Cause, ErrorClass, Failure, FailureClass, Job, OnUnknown, Outcome, Reason,
    Rejection, Status,
};

use crate::scene::{BASE_MS, LEASE_MS, at, bits, completed, failed, plain, released, report, scene};

fn attempt(outcome: &Outcome, end: AttemptEnd, error: Option<&str>) -> Attempt {
    Attempt {
        seq: 1,
        number: 1,
        bits: bits(1),
        worker: "w1".to_owned(),
        claimed_at: at(0),
        lease_expires_at: at(LEASE_MS),
        ended_at: at(2_000),
        end,
        error: error.map(str::to_owned),
        late: false,
        report: Some(report(outcome.clone()).hash),
        before: None,
    }
}

fn failure(class: FailureClass, reason: Reason) -> Failure {
    Failure { class, reason, cause: Cause::Reported }
}

#[test]
fn complete_sets_exactly_what_it_should() {
    let mut s = plain();
    let token = s.claim("w1");
    let running = s.job.clone();
    s.wait(2_000).report(token, completed());
    let expected = Job {
        status: Status::Completed,
        version: 3,
        lease: None,
        updated_at: at(2_000),
        finished_at: Some(at(2_000)),
        ..running
    };
    assert_eq!(s.job, expected);
    assert_eq!(s.history, [attempt(&completed(), AttemptEnd::Completed, None)]);
}

#[test]
fn fail_transient_requeues() {
    let mut s = plain();
    let token = s.claim("w1");
    let running = s.job.clone();
    let outcome = failed(ErrorClass::Transient);
    s.wait(2_000).report(token, outcome.clone());
    let expected = Job {
        status: Status::Pending,
        version: 3,
        retry_count: 1,
        available_at: at(2_000 + BASE_MS),
        lease: None,
        error: Some("transient trouble".to_owned()),
        updated_at: at(2_000),
        ..running
    };
    assert_eq!(s.job, expected);
    let end = AttemptEnd::Failed(ErrorClass::Transient);
    assert_eq!(s.history, [attempt(&outcome, end, Some("transient trouble"))]);
}

#[test]
fn f043_fail_permanent_goes_to_review_at_once() {
    let mut s = plain();
    let token = s.claim("w1");
    let running = s.job.clone();
    let outcome = failed(ErrorClass::Permanent);
    s.wait(2_000).report(token, outcome.clone());
    let expected = Job {
        status: Status::Failed,
        version: 3,
        lease: None,
        error: Some("permanent trouble".to_owned()),
        failure: Some(failure(FailureClass::Permanent, Reason::Permanent)),
        updated_at: at(2_000),
        finished_at: Some(at(2_000)),
        ..running
    };
    assert_eq!(s.job, expected);
    let end = AttemptEnd::Failed(ErrorClass::Permanent);
    assert_eq!(s.history, [attempt(&outcome, end, Some("permanent trouble"))]);
}

#[test]
fn fail_unknown_is_repeated_with_verify() {
    let mut s = plain();
    let token = s.claim("w1");
    s.wait(2_000).report(token, failed(ErrorClass::Unknown));
    assert_eq!((s.job.status, s.job.verify, s.job.retry_count), (Status::Pending, true, 1));
    assert_eq!((s.due_in(), s.job.lease_losses), (BASE_MS, 0));
    let token = s.wait_until_due().claim("w1");
    s.report(token, failed(ErrorClass::Unknown));
    assert_eq!((s.due_in(), s.job.retry_count), (2 * BASE_MS, 2), "ordinary back-off");
}

#[test]
fn fail_unknown_goes_to_review_if_it_may_not_be_repeated() {
    for (max_retries, on_unknown) in [(3, OnUnknown::Review), (0, OnUnknown::Verify), (0, OnUnknown::Review)]
    {
        let mut s = scene(|new| {
            new.max_retries = max_retries;
            new.on_unknown = on_unknown;
        });
        let token = s.claim("w1");
        s.report(token, failed(ErrorClass::Unknown));
        assert_eq!(s.job.failure, Some(failure(FailureClass::Unknown, Reason::OutcomeUnknown)));
        assert!(s.job.verify, "a retry from review has to know");
    }
}

#[test]
fn f042_no_retries_means_none_even_with_retry_after() {
    for retry_after_ms in [None, Some(0), Some(10_000)] {
        let mut s = scene(|new| new.max_retries = 0);
        let token = s.claim("w1");
        s.report(token, Outcome::Failed { class: ErrorClass::Transient, error: None, retry_after_ms });
        assert_eq!(s.job.failure, Some(failure(FailureClass::Transient, Reason::RetriesExhausted)));
    }
}

#[test]
fn f079_retry_after_is_a_lower_edge() {
    let class = [ErrorClass::Transient, ErrorClass::Unknown];
    for (class, (asked, given)) in class.into_iter().flat_map(|class| {
        [(0, BASE_MS), (BASE_MS - 1, BASE_MS), (BASE_MS + 1, BASE_MS + 1), (-5, BASE_MS), (i64::MIN, BASE_MS)]
            .map(|pair| (class, pair))
    }) {
        let mut s = plain();
        let token = s.claim("w1");
        s.report(token, Outcome::Failed { class, error: None, retry_after_ms: Some(asked) });
        assert_eq!(s.due_in(), given, "{class:?} {asked}");
    }
}

#[test]
fn absurd_delays_saturate() {
    let mut s = plain();
    let token = s.claim("w1");
    let retry_after_ms = Some(i64::MAX);
    s.report(token, Outcome::Failed { class: ErrorClass::Transient, error: None, retry_after_ms });
    assert_eq!(s.job.available_at, tagwerk_core::Timestamp::MAX);
    let mut s = plain();
    let token = s.claim("w1");
    s.report(token, released(i64::MAX));
    assert_eq!(s.job.available_at, tagwerk_core::Timestamp::MAX);
}

#[test]
fn known_outcomes_end_verify() {
    for outcome in [completed(), failed(ErrorClass::Transient), failed(ErrorClass::Permanent)] {
        let mut s = plain();
        s.lose("w1");
        assert!(s.job.verify);
        let token = s.wait_until_due().claim("w2");
        assert!(s.job.verify, "the claim is told");
        s.report(token, outcome);
        assert!(!s.job.verify);
    }
}

#[test]
fn error_is_that_of_the_last_failure_and_survives_completion() {
    let mut s = plain();
    let token = s.claim("w1");
    s.report(token, failed(ErrorClass::Transient));
    let token = s.wait_until_due().claim("w1");
    assert_eq!(s.job.error.as_deref(), Some("transient trouble"));
    s.report(token, completed());
    assert_eq!(s.job.error.as_deref(), Some("transient trouble"));
    assert_eq!(s.newest().error, None);
}

#[test]
fn release_changes_no_counter_and_no_error() {
    let mut s = plain();
    let token = s.claim("w1");
    s.report(token, failed(ErrorClass::Transient));
    let token = s.wait_until_due().claim("w1");
    let running = s.job.clone();
    s.wait(2_000).report(token, released(700));
    let expected = Job {
        status: Status::Pending,
        version: running.version + 1,
        attempt: 1,
        release_count: 1,
        available_at: at(BASE_MS + 2_700),
        lease: None,
        updated_at: at(BASE_MS + 2_000),
        ..running
    };
    assert_eq!(s.job, expected);
    assert_eq!((s.newest().end, s.newest().number), (AttemptEnd::Released, 2));
}

#[test]
fn release_at_once_and_with_a_senseless_delay() {
    for delay_ms in [0, -1, i64::MIN] {
        let mut s = plain();
        let token = s.claim("w1");
        s.wait(5).report(token, released(delay_ms));
        assert_eq!(s.due_in(), 0);
    }
}

#[test]
fn release_keeps_verify() {
    let mut s = plain();
    s.lose("w1");
    let token = s.wait_until_due().claim("w2");
    s.report(token, released(0));
    assert!(s.job.verify, "who gives it back has verified nothing");
}

#[test]
fn a_repeated_report_is_answered_as_before() {
    for outcome in [
        completed(),
        failed(ErrorClass::Transient),
        failed(ErrorClass::Permanent),
        failed(ErrorClass::Unknown),
        released(0),
    ] {
        let mut s = plain();
        let token = s.claim("w1");
        s.report(token, outcome.clone());
        let (job, history) = (s.job.clone(), s.history.clone());
        s.wait(1);
        assert_eq!(s.reports(token, outcome), Ok(Answer::Replayed));
        assert_eq!((s.job, s.history), (job, history));
    }
}

#[test]
fn a_repeated_report_is_answered_whatever_has_become_of_the_job() {
    let mut s = plain();
    let first = s.claim("w1");
    s.report(first, failed(ErrorClass::Transient));
    let same = |s: &mut crate::scene::Scene| s.reports(first, failed(ErrorClass::Transient));
    let second = s.wait_until_due().claim("w2");
    assert_eq!((s.job.status, same(&mut s)), (Status::Running, Ok(Answer::Replayed)));
    s.report(second, failed(ErrorClass::Permanent));
    assert_eq!((s.job.status, same(&mut s)), (Status::Failed, Ok(Answer::Replayed)));
    s.retry();
    assert_eq!((s.job.status, same(&mut s)), (Status::Pending, Ok(Answer::Replayed)));
    s.operate(tagwerk_core::Action::Cancel { wait: false });
    assert_eq!((s.job.status, same(&mut s)), (Status::Cancelled, Ok(Answer::Replayed)));
}

#[test]
fn another_report_of_the_same_lease_is_refused_with_the_one_that_counted() {
    let mut s = plain();
    let token = s.claim("w1");
    s.report(token, completed());
    for outcome in [failed(ErrorClass::Transient), released(0)] {
        let counted = AttemptEnd::Completed;
        assert_eq!(s.reports(token, outcome), Err(Rejection::AlreadyReported { counted }));
    }
    assert_eq!(s.job.status, Status::Completed);
}

#[test]
fn f055_release_and_fail_of_one_lease_count_once() {
    for (first, second) in
        [(released(0), failed(ErrorClass::Transient)), (failed(ErrorClass::Transient), released(0))]
    {
        let mut s = plain();
        let token = s.claim("w1");
        s.report(token, first);
        let job = s.job.clone();
        assert!(matches!(s.reports(token, second), Err(Rejection::AlreadyReported { .. })));
        assert_eq!(s.job, job);
        assert!(s.job.attempt <= 1);
    }
}

#[test]
fn a_server_release_counts_like_the_workers_own() {
    let mut s = plain();
    let token = s.claim("w1");
    s.report(token, released(0));
    s.claim("w2");
    let counted = AttemptEnd::Released;
    assert_eq!(s.reports(token, completed()), Err(Rejection::AlreadyReported { counted }));
}
