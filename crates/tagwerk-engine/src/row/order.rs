//! Ordering keys, as stores keep them.

use std::sync::Arc;

use tagwerk_core::{JobId, OnHeadFailure};

use super::JobRow;

/// Place of a job in the order of its ordering key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The ordering key.
    pub key: Arc<str>,
    /// What the job's failure means for those behind it.
    pub on_head_failure: OnHeadFailure,
    /// It waits and it is not its turn: claims do not see it. Never set while it does not wait.
    pub blocked: bool,
}

/// The ordering key with which a job came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ordering {
    /// The key.
    pub key: Arc<str>,
    /// As given.
    pub on_head_failure: Option<OnHeadFailure>,
}

/// A place in the order of a key, as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The ordering key.
    pub key: Arc<str>,
    /// Whose place it is.
    pub job: JobId,
    /// The job runs, or waits and is not blocked.
    pub open: bool,
}

/// Those that count in the order of a key. Damaged rows are passed over.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OrderRows {
    /// The job with the lowest id that stands in it.
    pub lowest: Option<JobRow>,
    /// Those that run, and those that wait and are not blocked, in id order.
    pub open: Vec<JobRow>,
}
