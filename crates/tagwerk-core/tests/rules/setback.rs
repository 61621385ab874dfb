//! What follows a lost lease or a time-out, and the budgets that end a job.

use tagwerk_core::{
    Attempt, AttemptEnd, Before, Cause, ErrorClass, Failure, FailureClass, Jitter, Job, OnUnknown, Reason,
    Status,
};

use crate::scene::{BASE_MS, LEASE_MS, Scene, at, bits, completed, failed, plain, scene};

const LOST: &str = "lease lost: worker w1 neither reported nor sent a heartbeat before its lease ended";
const TIMED_OUT: &str = "timed out: worker w1 did not report within the time limit of the attempt";

fn unknown(reason: Reason, cause: Cause) -> Failure {
    Failure { class: FailureClass::Unknown, reason, cause }
}

#[test]
fn f078_a_lost_lease_with_retries_left_is_requeued() {
    let mut s = plain();
    s.claim("w1");
    let running = s.job.clone();
    s.ctx.random = u64::MAX;
    s.wait(LEASE_MS + 400).settle();
    let expected = Job {
        status: Status::Pending,
        version: 3,
        retry_count: 1,
        lease_losses: 1,
        available_at: at(LEASE_MS + 1_400),
        verify: true,
        newest_lost: true,
        error: Some(LOST.to_owned()),
        lease: None,
        updated_at: at(LEASE_MS + 400),
        ..running
    };
    assert_eq!(s.job, expected);
    let entry = Attempt {
        seq: 1,
        number: 1,
        bits: bits(1),
        worker: "w1".to_owned(),
        claimed_at: at(0),
        lease_expires_at: at(LEASE_MS),
        ended_at: at(LEASE_MS),
        end: AttemptEnd::LeaseExpired,
        error: Some(LOST.to_owned()),
        late: false,
        report: None,
        before: Some(Before { retry_count: 0, lease_losses: 0, verify: false, error: None }),
    };
    assert_eq!(s.history, [entry]);
}

#[test]
fn a_first_loss_comes_back_within_a_second() {
    for (base_ms, random, due_in) in [
        (BASE_MS, 0, 0),
        (BASE_MS, u64::MAX, 1_000),
        (BASE_MS, u64::MAX / 2, 500),
        (300, u64::MAX, 300),
        (0, u64::MAX, 0),
    ] {
        for jitter in Jitter::ALL {
            let mut s = plain();
            s.ctx.retry.base_ms = base_ms;
            s.ctx.retry.jitter = *jitter;
            s.ctx.random = random;
            s.lose("w1");
            assert_eq!(s.due_in(), due_in, "base {base_ms} random {random}");
        }
    }
}

#[test]
fn later_losses_back_off_by_their_own_count() {
    let mut s = scene(|new| {
        new.max_retries = 25;
        new.max_lease_losses = 100;
    });
    let token = s.claim("w1");
    s.report(token, failed(ErrorClass::Transient));
    assert_eq!(s.due_in(), BASE_MS, "a reported failure counts for the retries only");
    for expected in [0, BASE_MS, 2 * BASE_MS, 4 * BASE_MS] {
        s.wait_until_due().lose("w1");
        assert_eq!(s.due_in(), expected, "after loss {}", s.job.lease_losses);
    }
    assert_eq!((s.job.retry_count, s.job.lease_losses), (5, 4));
}

#[test]
fn f041_a_job_that_kills_its_workers_goes_to_review() {
    for (max_lease_losses, runs) in [(0, 1), (1, 1), (2, 2), (4, 4)] {
        let mut s = scene(|new| {
            new.max_retries = 25;
            new.max_lease_losses = max_lease_losses;
        });
        for _ in 0..runs {
            assert_eq!(s.job.status, Status::Pending);
            s.wait_until_due().lose("w1");
        }
        assert_eq!(s.job.failure, Some(unknown(Reason::WorkerLost, Cause::LeaseExpired)));
        assert_eq!(s.job.lease_losses, runs);
        assert_eq!(s.job.retry_count, runs - 1, "the loss that ends it is no retry");
        assert!(s.job.verify, "a retry from review has to know");
    }
}

#[test]
fn f042_a_job_without_retries_is_not_run_again_after_a_loss() {
    let mut s = scene(|new| new.max_retries = 0);
    s.lose("w1");
    assert_eq!(s.job.failure, Some(unknown(Reason::OutcomeUnknown, Cause::LeaseExpired)));
    assert_eq!((s.job.retry_count, s.job.lease_losses), (0, 1));
    s.wait(1_000_000);
    assert!(s.claims("w2").is_err());
}

#[test]
fn worker_lost_is_named_before_retries_that_are_used_up() {
    let mut s = scene(|new| {
        new.max_retries = 0;
        new.max_lease_losses = 1;
    });
    s.lose("w1");
    assert_eq!(s.job.failure, Some(unknown(Reason::WorkerLost, Cause::LeaseExpired)));
}

#[test]
fn on_unknown_review_sends_losses_and_timeouts_to_review() {
    let mut s = scene(|new| new.on_unknown = OnUnknown::Review);
    s.lose("w1");
    assert_eq!(s.job.failure, Some(unknown(Reason::OutcomeUnknown, Cause::LeaseExpired)));
    let mut s = scene(|new| new.on_unknown = OnUnknown::Review);
    s.time_out("w1");
    assert_eq!(s.job.failure, Some(unknown(Reason::OutcomeUnknown, Cause::TimedOut)));
    assert_eq!(s.job.error.as_deref(), Some(TIMED_OUT));
}

#[test]
fn a_timeout_is_no_lost_lease() {
    let mut s = scene(|new| new.max_lease_losses = 0);
    s.time_out("w1");
    assert_eq!((s.job.status, s.job.lease_losses), (Status::Pending, 0));
    assert_eq!((s.job.retry_count, s.job.verify, s.due_in()), (1, true, BASE_MS));
    assert_eq!(s.newest().end, AttemptEnd::TimedOut);
    assert_eq!((s.newest().ended_at, s.newest().lease_expires_at), (at(10_000), at(10_000)));
    s.wait_until_due().time_out("w1");
    assert_eq!(s.due_in(), 2 * BASE_MS, "ordinary back-off");
    s.wait_until_due().time_out("w1");
    s.wait_until_due().time_out("w1");
    assert_eq!(s.job.failure, Some(unknown(Reason::OutcomeUnknown, Cause::TimedOut)));
}

#[test]
fn lease_end_and_time_limit_together_are_a_timeout() {
    let mut s = plain();
    s.claim_limited("w1", LEASE_MS);
    s.wait(LEASE_MS).settle();
    assert_eq!((s.newest().end, s.job.lease_losses), (AttemptEnd::TimedOut, 0));
    let mut s = plain();
    s.claim_limited("w1", LEASE_MS + 1);
    s.wait(LEASE_MS + 1).settle();
    assert_eq!((s.newest().end, s.job.lease_losses), (AttemptEnd::LeaseExpired, 1));
}

#[test]
fn losses_are_not_forgotten_by_runs_that_end_well_known() {
    let mut s = scene(|new| {
        new.max_retries = 25;
        new.max_lease_losses = 2;
    });
    s.lose("w1");
    let token = s.wait_until_due().claim("w1");
    s.report(token, failed(ErrorClass::Transient));
    s.wait_until_due().lose("w1");
    assert_eq!(s.job.failure, Some(unknown(Reason::WorkerLost, Cause::LeaseExpired)));
}

#[test]
fn the_loss_remembers_the_error_before_it() {
    let mut s = plain();
    let token = s.claim("w1");
    s.report(token, failed(ErrorClass::Transient));
    s.wait_until_due().lose("w1");
    assert_eq!(s.job.error.as_deref(), Some(LOST));
    let before = s.newest().before.clone().unwrap();
    assert_eq!(before.error.as_deref(), Some("transient trouble"));
    assert_eq!((before.retry_count, before.lease_losses, before.verify), (1, 0, false));
}

#[test]
fn equal_losses_have_equal_texts() {
    let text = |wait_ms| {
        let mut s = plain();
        s.wait(wait_ms).lose("w1");
        s.job.error
    };
    assert_eq!(text(0), text(86_400_123), "review groups by the text");
}

#[test]
fn reported_and_lost_runs_share_one_budget() {
    let run = |s: &mut Scene, how: u32| {
        s.wait_until_due();
        match how {
            0 => {
                s.lose("w1");
            }
            1 => {
                s.time_out("w1");
            }
            2 => {
                let token = s.claim("w1");
                s.report(token, failed(ErrorClass::Transient));
            }
            _ => {
                let token = s.claim("w1");
                s.report(token, failed(ErrorClass::Unknown));
            }
        }
    };
    for ways in 0..64 {
        let mut s = scene(|new| new.max_retries = 2);
        for nth in 0..3 {
            assert_eq!(s.job.status, Status::Pending, "run {nth} of {ways}");
            run(&mut s, (ways >> (2 * nth)) & 3);
        }
        assert_eq!(s.job.status, Status::Failed, "three runs, whatever ended them: {ways}");
        assert_eq!(s.job.retry_count, 2);
    }
}

#[test]
fn a_success_after_losses_is_a_success() {
    let mut s = plain();
    s.lose("w1");
    let token = s.wait_until_due().claim("w2");
    s.report(token, completed());
    assert_eq!((s.job.status, s.job.verify), (Status::Completed, false));
    assert_eq!(s.job.error.as_deref(), Some(LOST), "what went wrong on the way stays visible");
}
