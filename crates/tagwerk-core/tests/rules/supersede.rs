//! A newer version of the object that a job is about.

#![expect(clippy::unwrap_used, reason = "a test's helpers; clippy takes only `#[test]` functions for tests")]

use proptest::prelude::*;
use proptest::sample::Index;
use tagwerk_core::supersede::{Standing, standing};
use tagwerk_core::{
    Action, Answer, AttemptEnd, ErrorClass, Event, JobId, Outcome, Reason, Rejection, Status,
};

use crate::scene::{LEASE_MS, Scene, Token, completed, failed, plain, released, scene};

const BY: JobId = JobId(8);

fn running() -> (Scene, Token) {
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

/// Something that happens to the jobs about one object.
#[derive(Clone, Debug)]
enum Deed {
    Comes(i64),
    Claim(Index),
    Report(Index, Outcome),
    Lose(Index),
    Retry(Index),
    ForceRetry(Index),
}

fn deed() -> impl Strategy<Value = Deed> {
    let which = any::<Index>;
    let outcome = prop_oneof![
        Just(completed()),
        Just(released(0)),
        prop::sample::select(ErrorClass::ALL.to_vec()).prop_map(failed),
    ];
    prop_oneof![
        4 => (0..8_i64).prop_map(Deed::Comes),
        6 => which().prop_map(Deed::Claim),
        4 => (which(), outcome).prop_map(|(which, outcome)| Deed::Report(which, outcome)),
        1 => which().prop_map(Deed::Lose),
        1 => which().prop_map(Deed::Retry),
        2 => which().prop_map(Deed::ForceRetry),
    ]
}

/// A job about the object, and what the one who watches it knows.
struct Versioned {
    scene: Scene,
    version: i64,
    /// A higher version has come since it was created or retried by force.
    is_old: bool,
}

/// All jobs about one object, as a caller of the rules keeps them.
#[derive(Default)]
struct Object(Vec<Versioned>);

impl Object {
    /// A job with this version is accepted, and [`standing`] says who is out of date.
    fn comes(&mut self, version: i64) {
        let highest = self.0.iter().map(|job| job.version).max();
        let id = JobId(i64::try_from(self.0.len()).unwrap() + 1);
        let by = Event::Supersede { by: id };
        let mut scene = scene(|new| (new.id, new.max_retries) = (id, 1));
        let standing = standing(highest, version);
        if standing == Standing::Older {
            assert_eq!(scene.happens(&by), Ok(Answer::Done));
        }
        for old in self.0.iter_mut().filter(|_| standing == Standing::Newest) {
            let before = old.scene.job.clone();
            let is_final = matches!(before.status, Status::Completed | Status::Cancelled);
            let expected = if is_final { Answer::Replayed } else { Answer::Done };
            assert_eq!(old.scene.happens(&by), Ok(expected));
            let after = &old.scene.job;
            let cancelled = before.status == Status::Pending && after.status == Status::Cancelled;
            assert!(
                after.status == before.status || cancelled,
                "nothing is torn from a worker or from review"
            );
            assert_eq!((&after.lease, after.failure), (&before.lease, before.failure));
        }
        let is_old = highest.is_some_and(|highest| highest > version);
        for old in self.0.iter_mut().filter(|old| old.version < version && highest < Some(version)) {
            old.is_old = true;
        }
        self.0.push(Versioned { scene, version, is_old });
    }

    fn happens(&mut self, deed: Deed) {
        let (Deed::Claim(which)
        | Deed::Report(which, _)
        | Deed::Lose(which)
        | Deed::Retry(which)
        | Deed::ForceRetry(which)) = &deed
        else {
            if let Deed::Comes(version) = deed {
                self.comes(version);
            }
            return;
        };
        if self.0.is_empty() {
            return;
        }
        let Versioned { scene, is_old, .. } = which.get_mut(&mut self.0);
        let was = scene.job.status;
        match deed {
            Deed::Comes(_) => {}
            Deed::Claim(_) => {
                let answer = scene.wait_until_due().claims("w");
                assert_eq!(answer.is_ok(), was == Status::Pending);
                assert!(answer.is_err() || !*is_old, "what is out of date is never handed out");
            }
            Deed::Report(_, outcome) => drop(scene.reports(Token(scene.job.leases), outcome)),
            Deed::Lose(_) => drop(scene.wait(LEASE_MS).settle().job.id),
            Deed::Retry(_) => {
                let answer = scene.operates(Action::Retry { max_retries: None });
                assert_eq!(answer.is_ok(), was == Status::Failed && !*is_old, "only force runs it again");
            }
            Deed::ForceRetry(_) => {
                let answer = scene.operates(Action::ForceRetry { max_retries: None });
                assert_eq!(answer.is_ok(), was == Status::Failed);
                *is_old &= answer.is_err();
            }
        }
    }

    fn check(&self) {
        for Versioned { scene, version, is_old } in &self.0 {
            let job = &scene.job;
            match job.status {
                Status::Pending => assert!(!is_old, "version {version} waits, and a higher one has come"),
                Status::Running | Status::Failed => assert_eq!(job.superseded_by.is_some(), *is_old),
                // Nobody cancels here but a newer version.
                Status::Cancelled => assert!(is_old & job.superseded_by.is_some()),
                Status::Completed => assert!(*is_old || job.superseded_by.is_none()),
            }
        }
    }
}

proptest! {
    /// Jobs about one object come, run, fail, are lost and are taken out of review, in any order.
    #[test]
    fn only_the_highest_version_waits_and_no_worker_is_torn_from_a_lower_one(
        deeds in prop::collection::vec(deed(), 1..60),
    ) {
        let mut object = Object::default();
        for deed in deeds {
            object.happens(deed);
            object.check();
        }
    }
}
