//! Which jobs may be deleted by age: completed and cancelled ones, by the time that has passed since their end.
//!
//! What waits, runs or stands in review is never deleted by age; there is no setting for it to get wrong. Deliberately
//! absent: that jobs of an open operation are spared (a fact of another row), and what goes with a job (the store's).

use crate::limits;
use crate::{Status, Timestamp};

/// How long finished jobs are kept, in milliseconds since their end. 0 = not at all, `None` = for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Completed ones.
    pub completed_ms: Option<i64>,
    /// Cancelled ones.
    pub cancelled_ms: Option<i64>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            completed_ms: Some(limits::RETENTION_COMPLETED_DEFAULT_MS),
            cancelled_ms: Some(limits::RETENTION_CANCELLED_DEFAULT_MS),
        }
    }
}

/// Jobs of this status that ended at or before this instant may be deleted; `None`: none may, whatever their age.
#[must_use]
pub fn cutoff(status: Status, policy: &Policy, now: Timestamp) -> Option<Timestamp> {
    let age_ms = match status {
        Status::Completed => policy.completed_ms,
        Status::Cancelled => policy.cancelled_ms,
        Status::Pending | Status::Running | Status::Failed => None,
    };
    age_ms.map(|ms| now.plus_ms(-ms.max(0)))
}

/// Whether a job of this status that ended then may be deleted.
#[must_use]
pub fn is_prunable(status: Status, finished_at: Option<Timestamp>, policy: &Policy, now: Timestamp) -> bool {
    match (finished_at, cutoff(status, policy, now)) {
        (Some(finished_at), Some(cutoff)) => finished_at <= cutoff,
        _ => false,
    }
}
