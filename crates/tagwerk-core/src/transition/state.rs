//! The only places where `status` is written, so that what belongs together stays together: a lease exactly while
//! running, a failure exactly while in review, a finish time exactly while settled.

use super::{Answer, History, Step};
use crate::{Attempt, AttemptEnd, Failure, Job, Lease, Status, Timestamp};

/// A step that was done: `version` and `updated_at` say so.
pub(super) fn done(mut job: Job, history: History, now: Timestamp) -> Step {
    job.version = job.version.saturating_add(1);
    job.updated_at = now;
    Step { job, history, answer: Answer::Done }
}

/// The job goes to its new holder.
pub(super) fn run(job: &mut Job, lease: Lease) {
    job.status = Status::Running;
    job.lease = Some(lease);
}

/// The job waits (again), due at `due`.
pub(super) fn wait(job: &mut Job, due: Timestamp) {
    job.status = Status::Pending;
    job.available_at = due;
    job.failure = None;
    job.finished_at = None;
}

/// The job would wait for another run. One that was superseded is cancelled instead: the newer version runs.
pub(super) fn requeue(job: &mut Job, due: Timestamp, now: Timestamp) {
    if job.superseded_by.is_some() {
        cancel(job, now);
    } else {
        wait(job, due);
    }
}

/// The job is done.
pub(super) fn complete(job: &mut Job, now: Timestamp) {
    settle(job, Status::Completed, now);
}

/// The job goes to review.
pub(super) fn review(job: &mut Job, failure: Failure, now: Timestamp) {
    settle(job, Status::Failed, now);
    job.failure = Some(failure);
}

/// The job is never run again.
pub(super) fn cancel(job: &mut Job, now: Timestamp) {
    settle(job, Status::Cancelled, now);
}

fn settle(job: &mut Job, status: Status, now: Timestamp) {
    job.status = status;
    job.failure = None;
    job.finished_at = Some(now);
}

/// Takes the lease away and says what the history keeps of the attempt; `None` if nothing was running.
///
/// The caller adds error, report and what to go back to.
pub(super) fn end_attempt(job: &mut Job, end: AttemptEnd, at: Timestamp) -> Option<Attempt> {
    let lease = job.lease.take()?;
    job.cancel_requested = false;
    job.newest_lost = !end.is_reported();
    Some(Attempt {
        seq: job.leases,
        number: job.attempt,
        bits: lease.bits,
        worker: lease.worker,
        claimed_at: lease.claimed_at,
        lease_expires_at: lease.expires_at,
        ended_at: at,
        end,
        error: None,
        late: false,
        report: None,
        before: None,
    })
}

/// The history entry for an attempt that may have ended with this step.
pub(super) fn appended(attempt: Option<Attempt>) -> History {
    attempt.map_or(History::Unchanged, |attempt| History::Append(Box::new(attempt)))
}
