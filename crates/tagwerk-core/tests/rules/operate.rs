//! Retry, discard, force-fail, delete, replace, and the version that was seen.

use tagwerk_core::{
    Action, Answer, AttemptEnd, Cause, ErrorClass, Event, Failure, FailureClass, Job, Reason, Rejection,
    Status,
};

use crate::scene::{BASE_MS, LEASE_MS, Scene, at, completed, failed, force_fail, plain, scene};

const RETRY: Action = Action::Retry { max_retries: None };

/// One scene for each status, by the name of the status.
fn in_each_status() -> [Scene; 5] {
    let pending = plain();
    let mut running = plain();
    running.claim("w1");
    let mut done = running.clone();
    let token = crate::scene::Token(1);
    done.report(token, completed());
    let mut review = running.clone();
    review.report(token, failed(ErrorClass::Permanent));
    let mut cancelled = pending.clone();
    cancelled.operate(Action::Cancel { wait: false });
    [pending, running, done, review, cancelled]
}

fn answers(action: &Action) -> [Result<Answer, Rejection>; 5] {
    in_each_status().map(|mut s| {
        let before = (s.job.clone(), s.history.clone());
        let answer = s.wait(1).operates(action.clone());
        let changed = answer == Ok(Answer::Done);
        assert_eq!(
            (&s.job, &s.history) != (&before.0, &before.1),
            changed,
            "{action:?} {}",
            before.0.status.name()
        );
        assert_eq!(s.job.version, before.0.version + i64::from(changed));
        assert_eq!(s.job.updated_at == s.ctx.now, changed);
        assert!(!changed || s.job.acted);
        answer
    })
}

#[test]
fn retry_in_each_status() {
    let not_failed = |status| Err(Rejection::NotFailed { status });
    assert_eq!(
        answers(&RETRY),
        [
            not_failed(Status::Pending),
            not_failed(Status::Running),
            not_failed(Status::Completed),
            Ok(Answer::Done),
            not_failed(Status::Cancelled),
        ]
    );
}

#[test]
fn discard_in_each_status() {
    assert_eq!(
        answers(&Action::Discard),
        [
            Err(Rejection::UseCancel { status: Status::Pending }),
            Err(Rejection::UseCancel { status: Status::Running }),
            Err(Rejection::NotFailed { status: Status::Completed }),
            Ok(Answer::Done),
            Ok(Answer::Replayed),
        ]
    );
}

#[test]
fn force_fail_in_each_status() {
    assert_eq!(
        answers(&force_fail()),
        [
            Err(Rejection::NotRunning { status: Status::Pending }),
            Ok(Answer::Done),
            Err(Rejection::NotRunning { status: Status::Completed }),
            Ok(Answer::Replayed),
            Err(Rejection::Cancelled),
        ]
    );
}

#[test]
fn delete_in_each_status() {
    let done = || Ok(Answer::Done);
    let replayed = || Ok(Answer::Replayed);
    assert_eq!(answers(&Action::Delete), [done(), done(), replayed(), done(), replayed()]);
}

#[test]
fn replace_in_each_status() {
    let started = || Err(Rejection::AlreadyStarted);
    let replace = Action::Replace { available_at: at(9_000) };
    assert_eq!(answers(&replace), [Ok(Answer::Done), started(), started(), started(), started()]);
}

#[test]
fn retry_sets_exactly_what_it_should() {
    let mut s = scene(|new| new.max_lease_losses = 2);
    s.lose("w1");
    s.wait_until_due().lose("w2");
    let failed = s.job.clone();
    assert_eq!((failed.retry_count, failed.lease_losses, failed.verify), (1, 2, true));
    s.wait(5_000).retry();
    let expected = Job {
        status: Status::Pending,
        version: failed.version + 1,
        retry_count: 0,
        lease_losses: 0,
        available_at: s.ctx.now,
        acted: true,
        failure: None,
        updated_at: s.ctx.now,
        finished_at: None,
        ..failed
    };
    assert_eq!(s.job, expected, "verify, error and the numbering go on");
    s.claim("w3");
    assert_eq!((s.job.attempt, s.job.acted, s.job.earlier_lost), (3, false, true));
}

#[test]
fn retry_of_a_job_without_retries_is_one_run_more() {
    let mut s = scene(|new| new.max_retries = 0);
    for attempt in 1..=3 {
        let token = s.claim("w1");
        assert_eq!((s.job.attempt, s.job.is_last_attempt()), (attempt, true));
        s.report(token, failed(ErrorClass::Transient));
        assert_eq!(s.job.status, Status::Failed);
        s.retry();
    }
}

#[test]
fn retry_can_change_the_number_of_retries() {
    let mut s = scene(|new| new.max_retries = 0);
    let token = s.claim("w1");
    s.report(token, failed(ErrorClass::Transient));
    s.operate(Action::Retry { max_retries: Some(2) });
    assert_eq!((s.job.max_retries, s.job.attempts_left()), (2, 3));
}

#[test]
fn f019_the_second_click_is_refused_and_runs_nothing() {
    let mut s = plain();
    let token = s.claim("w1");
    s.report(token, failed(ErrorClass::Permanent));
    let event = Event::Operate { action: RETRY, seen_version: Some(s.job.version) };
    assert_eq!(s.happens(&event), Ok(Answer::Done));
    let job = s.job.clone();
    for _ in 0..19 {
        assert_eq!(s.happens(&event), Err(Rejection::NotFailed { status: Status::Pending }));
    }
    assert_eq!(s.job, job);
}

#[test]
fn f019_a_click_on_an_older_review_is_refused() {
    let mut s = scene(|new| new.max_retries = 0);
    let token = s.claim("w1");
    s.report(token, failed(ErrorClass::Transient));
    let seen = s.job.version;
    s.retry();
    let token = s.claim("w1");
    s.report(token, failed(ErrorClass::Transient));
    let event = Event::Operate { action: RETRY, seen_version: Some(seen) };
    let current = s.job.version;
    assert_eq!(s.happens(&event), Err(Rejection::VersionChanged { seen, current }));
    assert_eq!(s.job.status, Status::Failed);
}

#[test]
fn a_version_counts_for_every_action_that_would_change_something() {
    let actions = [
        RETRY,
        Action::Cancel { wait: false },
        Action::Cancel { wait: true },
        Action::Discard,
        force_fail(),
        Action::Delete,
        Action::Replace { available_at: at(1) },
        Action::Unblock,
    ];
    for action in actions {
        for mut s in in_each_status() {
            let plain = s.clone().operates(action.clone());
            let (job, current) = (s.job.clone(), s.job.version);
            let with_other = Event::Operate { action: action.clone(), seen_version: Some(current + 1) };
            // To erase what has ended is no second click either.
            let erases = action == Action::Delete;
            let expected = match plain.clone() {
                Ok(Answer::Done | Answer::Replayed) if erases => {
                    Err(Rejection::VersionChanged { seen: current + 1, current })
                }
                Ok(Answer::Done) => Err(Rejection::VersionChanged { seen: current + 1, current }),
                other => other,
            };
            assert_eq!(s.happens(&with_other), expected, "{action:?} {}", job.status.name());
            assert_eq!(s.job, job);
            let with_same = Event::Operate { action: action.clone(), seen_version: Some(current) };
            assert_eq!(s.happens(&with_same), plain);
        }
    }
}

#[test]
fn heartbeats_do_not_make_a_version_out_of_date() {
    let mut s = plain();
    let token = s.claim("w1");
    let seen_version = Some(s.job.version);
    assert_eq!(s.wait(10).heartbeat(token), Ok(Answer::Done));
    assert_eq!(s.checkpoint(token), Ok(Answer::Done));
    assert_eq!(s.happens(&Event::Operate { action: force_fail(), seen_version }), Ok(Answer::Done));
}

#[test]
fn discard_takes_a_job_out_of_review() {
    let mut s = scene(|new| new.max_retries = 0);
    let token = s.lose("w1");
    let failed = s.job.clone();
    s.wait(5).operate(Action::Discard);
    let expected = Job {
        status: Status::Cancelled,
        version: failed.version + 1,
        acted: true,
        failure: None,
        updated_at: s.ctx.now,
        finished_at: Some(s.ctx.now),
        ..failed
    };
    assert_eq!(s.job, expected);
    assert_eq!(s.reports(token, completed()), Err(Rejection::Cancelled));
}

#[test]
fn force_fail_sets_exactly_what_it_should() {
    let mut s = plain();
    s.claim("w1");
    let running = s.job.clone();
    s.wait(100).operate(force_fail());
    let error = Some("stuck, says Ada".to_owned());
    let expected = Job {
        status: Status::Failed,
        version: 3,
        verify: true,
        acted: true,
        newest_lost: true,
        failure: Some(Failure {
            class: FailureClass::Unknown,
            reason: Reason::Forced,
            cause: Cause::Operator,
        }),
        error: error.clone(),
        lease: None,
        updated_at: at(100),
        finished_at: Some(at(100)),
        ..running
    };
    assert_eq!(s.job, expected, "the outcome of what ran is unknown: a retry is told to verify");
    assert_eq!(
        (s.newest().end, &s.newest().error, s.newest().ended_at),
        (AttemptEnd::Forced, &error, at(100))
    );
    s.retry();
    s.claim("w2");
    assert!(s.job.verify && s.job.earlier_lost);
}

#[test]
fn delete_cancels_what_has_not_ended() {
    let mut s = plain();
    s.claim("w1");
    s.wait(5).operate(Action::Delete);
    assert_eq!((s.job.status, s.newest().end), (Status::Cancelled, AttemptEnd::Cancelled));
}

#[test]
fn replace_moves_the_due_time_of_a_job_that_never_started() {
    let mut s = plain();
    let pending = s.job.clone();
    s.wait(5).operate(Action::Replace { available_at: at(9_000) });
    let expected = Job { version: 2, available_at: at(9_000), acted: true, updated_at: at(5), ..pending };
    assert_eq!(s.job, expected);
}

#[test]
fn replace_leaves_a_job_alone_that_was_ever_handed_out() {
    let replace = Action::Replace { available_at: at(1) };
    let mut s = plain();
    let token = s.claim("w1");
    s.report(token, crate::scene::released(0));
    assert_eq!(s.operates(replace.clone()), Err(Rejection::AlreadyStarted), "also if it was given back");
    let mut s = plain();
    s.lose("w1");
    assert_eq!(s.operates(replace), Err(Rejection::AlreadyStarted));
}

#[test]
fn operators_find_overdue_jobs_settled() {
    let mut s = plain();
    s.claim("w1");
    s.wait(LEASE_MS);
    assert_eq!(s.operates(force_fail()), Err(Rejection::NotRunning { status: Status::Pending }));
    let mut s = scene(|new| new.expires_at = Some(at(BASE_MS)));
    s.wait(BASE_MS);
    assert_eq!(s.operates(Action::Cancel { wait: false }), Err(Rejection::UseDiscard));
}
