//! What time alone does: lease end, time limit, maximum age.

use super::setback::{self, Setback};
use super::{Step, state};
use crate::{Attempt, AttemptEnd, Before, Call, Cause, Ctx, Job, Lease, Rejection, Timestamp};

/// The attempt is over without a report: a lost lease, or a time-out if the time limit was reached first.
pub(super) fn attempt_over(job: &Job, ctx: &Ctx) -> Result<Step, Rejection> {
    let Some(lease) = &job.lease else {
        return Err(Rejection::DoesNotApply { id: job.id, status: job.status, call: Call::Time });
    };
    let (end, setback) = if lease.ends_by_time_limit() {
        (AttemptEnd::TimedOut, Setback::TimedOut)
    } else {
        (AttemptEnd::LeaseExpired, Setback::LeaseExpired)
    };
    let error = Some(loss_text(lease));
    let mut next = job.clone();
    // The attempt ended when its lease did, however much later that is noticed.
    let ended = state::end_attempt(&mut next, end, lease.ends_at());
    if job.cancel_requested {
        // No late report can follow on a cancelled job, so there is nothing to go back to.
        state::cancel(&mut next, ctx.now);
        let attempt = ended.map(|attempt| Attempt { error, ..attempt });
        return Ok(state::done(next, state::appended(attempt), ctx.now));
    }
    let before = Before {
        retry_count: job.retry_count,
        lease_losses: job.lease_losses,
        verify: job.verify,
        error: job.error.clone(),
    };
    next.error.clone_from(&error);
    setback::follow(&mut next, setback, ctx);
    let attempt = ended.map(|attempt| Attempt { error, before: Some(before), ..attempt });
    Ok(state::done(next, state::appended(attempt), ctx.now))
}

/// The maximum age is reached while the job waits.
pub(super) fn expire(job: &Job, now: Timestamp) -> Step {
    let mut next = job.clone();
    state::review(&mut next, setback::expired(job, Cause::MaxAge), now);
    state::done(next, super::History::Unchanged, now)
}

/// Without times, so that review can group equal losses.
fn loss_text(lease: &Lease) -> String {
    let worker = &lease.worker;
    if lease.ends_by_time_limit() {
        format!("timed out: worker {worker} did not report within the time limit of the attempt")
    } else {
        format!("lease lost: worker {worker} neither reported nor sent a heartbeat before its lease ended")
    }
}
