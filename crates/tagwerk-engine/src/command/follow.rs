//! Follow-ups: jobs that come with a `complete` and are created in the transaction that completes it.

use tagwerk_core::JobId;

use super::{BulkMode, Enqueue, EnqueueJob};

/// Jobs that a completed one leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct FollowUps {
    /// The jobs, in order, all or none. `on_duplicate: conflict` and `on_mismatch: reject` mean nothing here: a known key is no
    /// error.
    pub enqueue: Enqueue,
    /// The list as it was sent, byte for byte: a repeated report must have the same.
    pub sent: String,
}

impl FollowUps {
    /// These jobs, sent like this.
    #[must_use]
    pub const fn new(jobs: Vec<EnqueueJob>, sent: String) -> Self {
        Self { enqueue: Enqueue { jobs, mode: BulkMode::Atomic, reach: None }, sent }
    }
}

/// What became of one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowedUp {
    /// The job.
    pub id: JobId,
    /// Whether it is new; if not, its idempotency key belongs to this job.
    pub created: bool,
}
