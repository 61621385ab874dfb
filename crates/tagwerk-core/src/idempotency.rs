//! How long an idempotency key holds.

use crate::{Status, Timestamp};

/// How long a key holds, given with it and stored with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Scope {
    /// While the job waits for its first start.
    Waiting,
    /// While the job is pending or running.
    Unfinished,
    /// Until some time after the job's end.
    #[default]
    Ttl,
    /// For ever.
    Forever,
}

/// What the rule needs to know of the job (or of the tombstone) that has the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Where it stands, or stood when it was pruned.
    pub status: Status,
    /// Whether it was ever handed out.
    pub started: bool,
    /// When it came to rest.
    pub finished_at: Option<Timestamp>,
}
