//! Rows in which every field has a value of its own, so that two columns that were swapped cannot go unseen.

use tagwerk_core::idempotency::{OnDuplicate, OnMismatch, Scope};
use tagwerk_core::{
    Attempt, AttemptEnd, Before, Cause, Effect, EffectState, ErrorClass, Failure, FailureClass, Jitter, Job,
    JobId,
};
use tagwerk_core::{Lease, LeaseBits, OnHeadFailure, OnUnknown, Reason, ReportHash, RetryOverrides, Status};

use super::steps::{at, priority};
use crate::row::{Detail, JobRow, Lane, Note, Order, Ordering, Progress, Subject};

/// A running job with everything set. Different `salt`s share no value.
pub(super) fn running(id: JobId, lane: Lane, salt: u32) -> JobRow {
    let ms = |n: u32| at(i64::from(1_000 * salt + n));
    let long = |n: u32| i64::from(1_000 * salt + n);
    let job = Job {
        id,
        status: Status::Running,
        version: long(1),
        attempt: 1_000 * salt + 2,
        leases: 1_000 * salt + 3,
        started: true,
        retry_count: 1_000 * salt + 4,
        max_retries: 1_000 * salt + 5,
        lease_losses: 1_000 * salt + 6,
        max_lease_losses: 1_000 * salt + 7,
        release_count: 1_000 * salt + 8,
        available_at: ms(9),
        expires_at: Some(ms(10)),
        max_age_ms: Some(long(11)),
        on_unknown: OnUnknown::Review,
        verify: true,
        handles_verify: true,
        cancel_requested: true,
        superseded_by: Some(JobId(long(36))),
        acted: true,
        newest_lost: true,
        earlier_lost: true,
        failure: None,
        error: Some(format!("error {salt} 😀\n\"quoted\" \\u0000")),
        effects: effects(salt),
        lease: Some(Lease {
            bits: LeaseBits(0xF000_0000_0000_0000 | u64::from(salt)),
            worker: format!("worker-{salt}"),
            claimed_at: ms(12),
            expires_at: ms(13),
            time_limit_at: Some(ms(14)),
            lease_ms: long(15),
            request_id: Some(format!("request-{salt}")),
        }),
        created_at: ms(16),
        updated_at: ms(17),
        finished_at: None,
    };
    JobRow {
        job,
        lane,
        priority: priority(19),
        payload_bytes: 1_000 * salt + 20,
        note: note(salt),
        order: Some(Box::new(order(salt))),
    }
}

/// A journal with an effect in each state; none but the first is there for every salt.
fn effects(salt: u32) -> Vec<Effect> {
    let ms = |n: u32| at(i64::from(1_000 * salt + n));
    let effect = |n: u32, state: EffectState| Effect {
        name: format!("effect-{salt}.{n}").into(),
        state,
        key: format!("key {salt} {n} \u{df}").into(),
        seq: 1_000 * salt + n,
        begun_at: ms(n),
        ended_at: (state != EffectState::Open).then(|| ms(n + 1)),
        assumed: state == EffectState::Aborted,
        result: (state == EffectState::Done).then(|| format!("{{\"id\": {salt}, \"a\":\"\\u0000\"}}").into()),
    };
    let all = [(51, EffectState::Done), (53, EffectState::Open), (55, EffectState::Aborted)];
    all.iter().take(4 - salt.min(3) as usize).map(|(n, state)| effect(*n, *state)).collect()
}

/// The same job in review, with everything set that a job in review can have.
pub(super) fn in_review(running: &JobRow, salt: u32) -> JobRow {
    let mut row = running.clone();
    // It skips, so it has left the order.
    row.order = None;
    row.job.status = Status::Failed;
    row.job.version += 1;
    row.job.lease = None;
    row.job.finished_at = Some(at(i64::from(1_000 * salt + 18)));
    row.job.failure = Some(Failure {
        class: FailureClass::Unknown,
        reason: Reason::OutcomeUnknown,
        cause: Cause::LeaseExpired,
    });
    row
}

/// Of a job that runs, so it is not blocked.
fn order(salt: u32) -> Order {
    let key = format!("order-{salt}\u{0}é").into();
    Order { key, on_head_failure: OnHeadFailure::Skip, blocked: false }
}

fn note(salt: u32) -> Note {
    Note {
        result: Some(format!("{{ \"result\" : {salt} }}")),
        checkpoint: Some(format!("[\"checkpoint\", {salt}, \"\\u0000\"]")),
        progress: Some(Progress {
            done: Some(i64::from(1_000 * salt + 21)),
            total: Some(i64::from(1_000 * salt + 22)),
            message: Some(format!("progress {salt}")),
        }),
    }
}

/// A cold part with everything set.
pub(super) fn detail(salt: u32) -> Detail {
    let long = |n: u32| i64::from(1_000 * salt + n);
    Detail {
        payload: format!("{{\"payload\":{salt}}}"),
        subject: Some(Subject {
            kind: format!("subject-kind-{salt}"),
            id: format!("subject-id-{salt}"),
            version: Some(long(30)),
        }),
        correlation_id: Some(format!("correlation-{salt}")),
        traceparent: Some(format!("00-trace-{salt}-01")),
        key: Some(format!("key-{salt}")),
        scope: Some(Scope::Unfinished),
        ttl_ms: Some(long(31)),
        on_duplicate: Some(OnDuplicate::Replace),
        fingerprint: Some([0xA5; 16]),
        on_mismatch: Some(OnMismatch::Reject),
        lease_ms: Some(long(32)),
        timeout_ms: Some(long(33)),
        retry: RetryOverrides {
            base_ms: Some(long(34)),
            factor: Some(1.1 + f64::from(salt)),
            cap_ms: Some(long(35)),
            jitter: Some(Jitter::Full),
        },
        supersede: true,
        ordering: Some(Box::new(Ordering {
            key: order(salt).key,
            on_head_failure: Some(OnHeadFailure::Skip),
        })),
    }
}

/// An attempt with everything set.
pub(super) fn attempt(seq: u32, salt: u32) -> Attempt {
    let ms = |n: u32| at(i64::from(1_000 * salt + n));
    Attempt {
        seq,
        number: 1_000 * salt + 1,
        bits: LeaseBits(0xE000_0000_0000_0000 | u64::from(salt)),
        worker: format!("past-worker-{salt}"),
        claimed_at: ms(2),
        lease_expires_at: ms(3),
        ended_at: ms(4),
        end: AttemptEnd::Failed(ErrorClass::Unknown),
        error: Some(format!("past error {salt} 😀")),
        late: true,
        report: Some(ReportHash([salt.to_le_bytes()[0] | 0x80; 16])),
        before: Some(Before {
            retry_count: 1_000 * salt + 5,
            lease_losses: 1_000 * salt + 6,
            verify: true,
            error: Some(format!("error before {salt}")),
        }),
    }
}
