//! What time brings about, and what follows a run without success. Section 3 of the semantics.

use tagwerk_core::{
    AttemptEnd, Cause, ErrorClass, Failure, FailureClass, Jitter, OnUnknown, Reason, RetryPolicy, Status,
};

use super::eye::Eye;
use super::job::{Job, Undo};

/// How a run came to its end without success.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Setback {
    Reported(ErrorClass, Option<i64>),
    Lost,
    TimedOut,
}

/// What a decision of the model is made with.
pub(crate) struct Moment<'e, 'a> {
    pub(crate) now: i64,
    pub(crate) policy: RetryPolicy,
    pub(crate) eye: &'e Eye<'a>,
}

/// Smallest and largest delay that the rules allow, both included.
type Bounds = (i64, i64);

/// The longest wait after a first lost lease.
const FIRST_LOSS_MS: i64 = 1_000;

/// An attempt that is over ends, a pending job past its maximum age goes to review. Whoever calls this raises the version.
pub(crate) fn pass(job: &mut Job, moment: &Moment<'_, '_>) {
    if job.status == Status::Pending {
        let failure = expired(job, Cause::MaxAge);
        job.rest(Status::Failed, Some(failure), moment.now);
        return;
    }
    let Some(lease) = &job.lease else { return };
    let (setback, end) = if lease.ends_by_limit() {
        (Setback::TimedOut, AttemptEnd::TimedOut)
    } else {
        (Setback::Lost, AttemptEnd::LeaseExpired)
    };
    let (ended_at, stopping) = (lease.ends_at(), job.stopping);
    job.end_attempt(end, ended_at);
    // The wording of a loss is free; that it says who was lost is not.
    let written = moment.eye.attempts.get(&(job.id, job.leases)).and_then(|attempt| attempt.error.clone());
    let lost = moment.eye.at(job.id, job.version + 1).filter(|_| !stopping);
    let text = lost.map_or(written, |row| row.job.error.clone());
    let undo = Undo {
        retry_count: job.retry_count,
        lease_losses: job.lease_losses,
        verify: job.verify,
        error: job.error.clone(),
    };
    if let Some(past) = job.history.last_mut() {
        past.error.clone_from(&text);
        past.undo = (!stopping).then_some(undo);
    }
    if stopping {
        job.rest(Status::Cancelled, None, moment.now);
        return;
    }
    job.error = text;
    follow(job, setback, moment);
}

/// Requeues the job or sends it to review.
pub(crate) fn follow(job: &mut Job, setback: Setback, moment: &Moment<'_, '_>) {
    let now = moment.now;
    if matches!(setback, Setback::Lost) {
        job.lease_losses += 1;
    }
    let class = class_of(setback);
    job.verify = class == FailureClass::Unknown;
    let cause = match setback {
        Setback::Reported(..) => Cause::Reported,
        Setback::Lost => Cause::LeaseExpired,
        Setback::TimedOut => Cause::TimedOut,
    };
    if let Some(reason) = review(job, setback) {
        job.rest(Status::Failed, Some(Failure { class, reason, cause }), now);
        return;
    }
    let (low, high) = bounds(job, setback, &moment.policy);
    let seen = moment.eye.at(job.id, job.version + 1);
    let drawn = moment.eye.from(job.id, job.version + 1);
    let due = drawn.map(|row| row.job.available_at.as_millis());
    let late = |at: i64| job.expires_at.is_some_and(|expires| at >= expires);
    let goes_to_review = match seen {
        Some(row) if late(now + low) != late(now + high) => row.job.status == Status::Failed,
        _ => late(now + low),
    };
    if goes_to_review {
        let failure = expired(job, cause);
        job.rest(Status::Failed, Some(failure), now);
        return;
    }
    if job.superseded_by.is_none() {
        job.retry_count += 1;
    }
    // A draw outside of its bounds is not taken over, so that the comparison of the rows finds it.
    let fits = |due: &i64| (now + low..=now + high).contains(due) && !late(*due);
    job.requeue(due.filter(fits).unwrap_or(now + low), now);
}

const fn class_of(setback: Setback) -> FailureClass {
    match setback {
        Setback::Reported(ErrorClass::Transient, _) => FailureClass::Transient,
        Setback::Reported(ErrorClass::Permanent, _) => FailureClass::Permanent,
        Setback::Reported(ErrorClass::Unknown, _) | Setback::Lost | Setback::TimedOut => {
            FailureClass::Unknown
        }
    }
}

/// Why it may not run again, in the order of section 3.
fn review(job: &Job, setback: Setback) -> Option<Reason> {
    let used_up = job.retry_count >= job.max_retries;
    match setback {
        Setback::Lost if job.lease_losses >= job.max_lease_losses => Some(Reason::WorkerLost),
        Setback::Reported(ErrorClass::Permanent, _) => Some(Reason::Permanent),
        Setback::Reported(ErrorClass::Transient, _) if used_up => Some(Reason::RetriesExhausted),
        Setback::Reported(ErrorClass::Transient, _) => None,
        // Who does not know of effects in doubt would do them again.
        _ if !job.knows_doubt && job.open_effects().next().is_some() => Some(Reason::OutcomeUnknown),
        _ if used_up || job.on_unknown == OnUnknown::Review => Some(Reason::OutcomeUnknown),
        _ => None,
    }
}

/// The failure of a job that ran out of its maximum age.
pub(crate) const fn expired(job: &Job, cause: Cause) -> Failure {
    let class = if job.verify { FailureClass::Unknown } else { FailureClass::Transient };
    Failure { class, reason: Reason::Expired, cause }
}

/// Between which delays the next run may come.
fn bounds(job: &Job, setback: Setback, policy: &RetryPolicy) -> Bounds {
    match setback {
        Setback::Lost if job.lease_losses <= 1 => (0, policy.base_ms.min(policy.cap_ms).min(FIRST_LOSS_MS)),
        Setback::Lost => backoff(policy, job.lease_losses - 1),
        Setback::TimedOut => backoff(policy, job.retry_count + 1),
        Setback::Reported(_, after) => {
            let (low, high) = backoff(policy, job.retry_count + 1);
            let edge = after.unwrap_or(0);
            (low.max(edge), high.max(edge))
        }
    }
}

/// `min(cap, base · factor^(n-1))`, then jitter: half to all of it, nothing to all of it, or exactly it.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "delays of a simulation are small"
)]
fn backoff(policy: &RetryPolicy, n: u32) -> Bounds {
    let grown = policy.base_ms as f64 * policy.factor.powi(i32::try_from(n).unwrap_or(i32::MAX) - 1);
    let delay = grown.min(policy.cap_ms as f64) as i64;
    // Factors like 1.5 leave fractions of a millisecond, which may be rounded either way.
    let slack = i64::from(policy.factor.fract() != 0.0 && delay < policy.cap_ms && delay > 0);
    match policy.jitter {
        Jitter::None => (delay - slack, delay + slack),
        Jitter::Equal => (delay / 2 - slack, delay + slack),
        Jitter::Full => (0, delay + slack),
    }
}
