//! Order within an ordering key: which of its jobs may be handed out.
//!
//! The jobs that stand in the order of a key are those that wait, run, or failed and hold it. At most one of them may be
//! handed out, and only while none runs: the one with the lowest id, if it waits. A job that comes back out of review with
//! a lower id than the one whose turn it was takes its turn, unless that one runs already.

use crate::names::names;
use crate::{JobId, Status};

/// What a job that goes to review means for those behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnHeadFailure {
    /// They wait until it is retried, discarded or unblocked.
    #[default]
    Block,
    /// They go on without it.
    Skip,
}

names!(OnHeadFailure { Block => "block", Skip => "skip" });

/// Whether a job in this status stands in the order of its key. One that a person has unblocked does not, whatever this
/// says; a retry puts it back.
#[must_use]
pub const fn stands(status: Status, on_head_failure: OnHeadFailure) -> bool {
    match status {
        Status::Pending | Status::Running => true,
        Status::Failed => matches!(on_head_failure, OnHeadFailure::Block),
        Status::Completed | Status::Cancelled => false,
    }
}

/// The one job of a key that may be handed out. `lowest` is the job with the lowest id that stands in its order, `running`
/// the one that runs.
#[must_use]
pub fn turn(lowest: Option<(JobId, Status)>, running: Option<JobId>) -> Option<JobId> {
    lowest.filter(|(_, status)| *status == Status::Pending && running.is_none()).map(|(id, _)| id)
}
