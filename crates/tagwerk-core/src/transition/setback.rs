//! What follows an attempt that did not succeed: another run or review. Reported failures, lost leases and time-outs
//! come through here alike, so that no way of ending a run can escape the count of retries.

use super::state;
use crate::{Cause, Ctx, ErrorClass, Failure, FailureClass, Job, OnUnknown, Reason, Timestamp, retry};

/// How an attempt came to its end without success.
#[derive(Clone, Copy)]
pub(super) enum Setback {
    /// The worker said so.
    Reported {
        /// How to understand it.
        class: ErrorClass,
        /// Lower edge for the back-off in milliseconds.
        retry_after_ms: Option<i64>,
    },
    /// The lease ran out.
    LeaseExpired,
    /// The time limit was reached.
    TimedOut,
}

impl Setback {
    const fn class(self) -> FailureClass {
        match self {
            Self::Reported { class: ErrorClass::Transient, .. } => FailureClass::Transient,
            Self::Reported { class: ErrorClass::Permanent, .. } => FailureClass::Permanent,
            Self::Reported { class: ErrorClass::Unknown, .. } | Self::LeaseExpired | Self::TimedOut => {
                FailureClass::Unknown
            }
        }
    }

    const fn cause(self) -> Cause {
        match self {
            Self::Reported { .. } => Cause::Reported,
            Self::LeaseExpired => Cause::LeaseExpired,
            Self::TimedOut => Cause::TimedOut,
        }
    }

    /// What the worker asked for at least, in milliseconds.
    fn retry_after_ms(self) -> i64 {
        match self {
            Self::Reported { retry_after_ms, .. } => retry_after_ms.unwrap_or(0).max(0),
            Self::LeaseExpired | Self::TimedOut => 0,
        }
    }
}

/// Requeues the job, whose attempt has ended, or sends it to review.
pub(super) fn follow(job: &mut Job, setback: Setback, ctx: &Ctx) {
    if matches!(setback, Setback::LeaseExpired) {
        job.lease_losses = job.lease_losses.saturating_add(1);
    }
    // Also when it goes to review: a retry from there must know that it may repeat something.
    job.verify = matches!(setback.class(), FailureClass::Unknown);
    if let Some(reason) = reason_for_review(job, setback) {
        let failure = Failure { class: setback.class(), reason, cause: setback.cause() };
        return state::review(job, failure, ctx.now);
    }
    let delay_ms = delay_ms(job, setback, ctx).max(setback.retry_after_ms());
    let due = ctx.now.plus_ms(delay_ms);
    if is_too_late(job, due) {
        state::review(job, expired(job, setback.cause()), ctx.now);
    } else {
        // What is cancelled instead has used no retry.
        let retries = u32::from(job.superseded_by.is_none());
        job.retry_count = job.retry_count.saturating_add(retries);
        state::requeue(job, due, ctx.now);
    }
}

/// Why the job may not run again, if it may not. The order of the questions is the order of what an operator should
/// hear: that a job kills its workers matters more than that its retries are used up.
fn reason_for_review(job: &Job, setback: Setback) -> Option<Reason> {
    let exhausted = job.is_last_attempt();
    match setback {
        Setback::LeaseExpired if job.lease_losses >= job.max_lease_losses => Some(Reason::WorkerLost),
        Setback::Reported { class: ErrorClass::Permanent, .. } => Some(Reason::Permanent),
        Setback::Reported { class: ErrorClass::Transient, .. } => {
            exhausted.then_some(Reason::RetriesExhausted)
        }
        Setback::Reported { class: ErrorClass::Unknown, .. } | Setback::LeaseExpired | Setback::TimedOut => {
            // A worker that does not know of effects in doubt would do again what was begun.
            let is_blind = !job.handles_verify && job.open_effects().next().is_some();
            (exhausted || is_blind || job.on_unknown == OnUnknown::Review).then_some(Reason::OutcomeUnknown)
        }
    }
}

/// Milliseconds until the next run. A first lost lease is usually a deploy or a dead machine, not the job's fault, so
/// it comes back at once, spread a little; only further losses back off.
fn delay_ms(job: &Job, setback: Setback, ctx: &Ctx) -> i64 {
    match (setback, job.lease_losses) {
        (Setback::LeaseExpired, 0 | 1) => retry::first_loss_ms(&ctx.retry, ctx.random),
        (Setback::LeaseExpired, losses) => retry::backoff_ms(&ctx.retry, losses - 1, ctx.random),
        (Setback::Reported { .. } | Setback::TimedOut, _) => {
            retry::backoff_ms(&ctx.retry, job.retry_count.saturating_add(1), ctx.random)
        }
    }
}

/// Whether a job that is due at `due` would reach its maximum age first. Then it goes to review at once instead of
/// waiting for a moment that cannot come.
pub(super) fn is_too_late(job: &Job, due: Timestamp) -> bool {
    job.expires_at.is_some_and(|at| due >= at)
}

/// The failure of a job that ran out of its maximum age.
pub(super) const fn expired(job: &Job, cause: Cause) -> Failure {
    let class = if job.verify { FailureClass::Unknown } else { FailureClass::Transient };
    Failure { class, reason: Reason::Expired, cause }
}
