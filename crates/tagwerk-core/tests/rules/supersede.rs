//! A newer version of the object that a job is about.

use proptest::prelude::*;
use tagwerk_core::supersede::{Standing, standing};
use tagwerk_core::{Action, Answer, AttemptEnd, ErrorClass, Event, JobId, Reason, Rejection, Status};

use crate::scene::{LEASE_MS, Scene, completed, failed, plain, released};

const BY: JobId = JobId(8);

fn running() -> (Scene, crate::scene::Token) {
    let mut s = plain();
    let token = s.claim("w");
    s.supersede();
    (s, token)
}

#[test]
fn a_job_that_waits_is_cancelled_and_says_by_whom() {
    let after_failure = |s: &mut Scene| {
        let token = s.claim("w");
        s.report(token, failed(ErrorClass::Transient));
    };
    let after_loss = |s: &mut Scene| {
        s.lose("w");
    };
    for prelude in [|_: &mut Scene| {}, after_failure, after_loss] {
        let mut s = plain();
        prelude(&mut s);
        let version = s.job.version;
        s.supersede();
        assert_eq!((s.job.status, s.job.superseded_by), (Status::Cancelled, Some(BY)));
        assert_eq!((s.job.version, s.job.finished_at), (version + 1, Some(s.ctx.now)));
        s.wait_until_due();
        assert_eq!(s.claims("w"), Err(Rejection::NotClaimable));
    }
}

#[test]
fn a_job_that_runs_goes_on_and_may_complete() {
    let (mut s, token) = running();
    assert_eq!((s.job.status, s.job.superseded_by), (Status::Running, Some(BY)));
    assert_eq!(s.heartbeat(token), Ok(Answer::Done));
    assert_eq!(s.checkpoint(token), Ok(Answer::Done));
    s.report(token, completed());
    assert_eq!((s.job.status, s.job.superseded_by), (Status::Completed, Some(BY)));
}

#[test]
fn where_it_would_be_requeued_it_is_cancelled_and_uses_no_retry() {
    let unknown = failed(ErrorClass::Unknown);
    for outcome in [failed(ErrorClass::Transient), unknown, released(0), released(5_000)] {
        let (mut s, token) = running();
        s.report(token, outcome.clone());
        assert_eq!((s.job.status, s.job.retry_count), (Status::Cancelled, 0), "{outcome:?}");
        assert_eq!(s.reports(token, outcome), Ok(Answer::Replayed));
    }
    let (mut s, token) = running();
    s.wait(LEASE_MS).settle();
    assert_eq!((s.job.status, s.job.lease_losses), (Status::Cancelled, 1));
    assert_eq!(s.newest().end, AttemptEnd::LeaseExpired);
    let told = Rejection::Superseded { by: BY, may_force: false };
    assert_eq!(s.heartbeat(token), Err(told.clone()));
    assert_eq!(s.reports(token, completed()), Err(told.clone()));
    assert_eq!(s.reports_without_token(None, completed()), Err(told));
    let mut s = plain();
    s.claim_limited("w", 10_000);
    s.supersede().wait(10_000).settle();
    assert_eq!(s.job.status, Status::Cancelled);
}

#[test]
fn what_would_go_to_review_still_does() {
    let (mut s, token) = running();
    s.report(token, failed(ErrorClass::Permanent));
    assert_eq!(s.job.failure.map(|failure| failure.reason), Some(Reason::Permanent));
    let mut s = plain();
    s.job.max_retries = 0;
    let token = s.claim("w");
    s.supersede().report(token, failed(ErrorClass::Transient));
    assert_eq!(s.job.failure.map(|failure| failure.reason), Some(Reason::RetriesExhausted));
    assert_eq!(s.job.superseded_by, Some(BY));
}

#[test]
fn a_job_in_review_stays_there_and_only_force_runs_it_again() {
    let mut s = plain();
    let token = s.claim("w");
    s.report(token, failed(ErrorClass::Permanent)).supersede();
    assert_eq!((s.job.status, s.job.superseded_by), (Status::Failed, Some(BY)));
    let before = s.job.clone();
    let refused = Err(Rejection::Superseded { by: BY, may_force: true });
    assert_eq!(s.operates(Action::Retry { max_retries: None }), refused);
    assert_eq!(s.job, before);
    s.operate(Action::ForceRetry { max_retries: Some(1) });
    assert_eq!((s.job.status, s.job.superseded_by, s.job.max_retries), (Status::Pending, None, 1));
    let token = s.claim("w");
    s.report(token, failed(ErrorClass::Transient));
    assert_eq!(s.job.status, Status::Pending, "from then on it is a job like any other");
    s.supersede();
    assert_eq!(s.job.status, Status::Cancelled, "until a newer version comes again");
}

#[test]
fn discarding_and_cancelling_need_no_force() {
    let mut s = plain();
    let token = s.claim("w");
    s.report(token, failed(ErrorClass::Permanent)).supersede().operate(Action::Discard);
    assert_eq!((s.job.status, s.job.superseded_by), (Status::Cancelled, Some(BY)));
    let (mut s, _) = running();
    s.operate(Action::Cancel { wait: false });
    assert_eq!(s.job.status, Status::Cancelled);
}

#[test]
fn force_is_not_needed_and_does_no_harm_where_nothing_superseded_the_job() {
    let mut s = plain();
    assert_eq!(
        s.operates(Action::ForceRetry { max_retries: None }),
        Err(Rejection::NotFailed { status: Status::Pending })
    );
    let token = s.claim("w");
    s.report(token, failed(ErrorClass::Permanent)).operate(Action::ForceRetry { max_retries: None });
    assert_eq!(s.job.status, Status::Pending);
}

#[test]
fn what_is_final_stays_unmarked() {
    let mut s = plain();
    let token = s.claim("w");
    s.report(token, completed());
    let before = s.job.clone();
    assert_eq!(s.happens(&Event::Supersede { by: BY }), Ok(Answer::Replayed));
    assert_eq!(s.job, before);
}

#[test]
fn a_late_report_of_a_superseded_job_in_review_counts_but_requeues_nothing() {
    for (outcome, status) in
        [(completed(), Status::Completed), (failed(ErrorClass::Transient), Status::Cancelled)]
    {
        let mut s = plain();
        s.job.max_lease_losses = 1;
        let token = s.lose("w");
        s.supersede().report(token, outcome);
        assert_eq!((s.job.status, s.newest().late), (status, true));
    }
}

proptest! {
    #[test]
    fn whatever_the_order_in_which_versions_come_only_the_highest_stands(
        versions in prop::collection::vec(0..6_i64, 1..20),
    ) {
        let mut highest = None;
        let mut jobs: Vec<(i64, bool)> = Vec::new();
        for version in versions {
            match standing(highest, version) {
                Standing::Newest => {
                    for (_, waits) in &mut jobs {
                        *waits = false;
                    }
                    highest = Some(version);
                    jobs.push((version, true));
                }
                Standing::Equal => jobs.push((version, true)),
                Standing::Older => jobs.push((version, false)),
            }
            let top = jobs.iter().map(|(version, _)| *version).max();
            for (version, waits) in &jobs {
                prop_assert_eq!(*waits, Some(*version) == top);
            }
        }
    }
}
