//! A newer version of the object that a job is about.

use super::{History, Step, state};
use crate::{Job, JobId, Status, Timestamp};

/// Nothing is torn from a worker's hands, and nothing leaves review by itself: a job that waits is cancelled, one that runs or
/// is in review is marked. See `state::requeue` for what the mark does to one that runs.
pub(super) fn supersede(job: &Job, by: JobId, now: Timestamp) -> Step {
    let mut next = job.clone();
    next.superseded_by = Some(by);
    match job.status {
        Status::Pending => state::cancel(&mut next, now),
        Status::Running | Status::Failed => {}
        // What is final stays as it is, and was not made out of date in time.
        Status::Completed | Status::Cancelled => return Step::replayed(job),
    }
    state::done(next, History::Unchanged, now)
}
