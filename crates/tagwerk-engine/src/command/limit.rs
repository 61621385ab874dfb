//! Commands about limits.

use tagwerk_core::Timestamp;
use tagwerk_core::gate::LimitSettings;

use crate::row::{LimitRef, LimitRow, LimitUse};

/// A limit to be held back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// Which; a partition for itself.
    pub limit: LimitRef,
    /// For how long from now in milliseconds.
    pub for_ms: i64,
}

/// A call about limits.
#[derive(Clone, Debug, PartialEq)]
pub enum LimitCall {
    /// All of them.
    List,
    /// One, by its name without a partition.
    Show(String),
    /// Makes one, or changes its settings.
    Put(String, LimitSettings),
    /// Removes one that neither a job nor a type names.
    Delete(String),
    /// Lifts what workers have held back: of a limit with all its partitions, or of one partition.
    Open(LimitRef),
}

/// A limit as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitState {
    /// Name and settings.
    pub row: LimitRow,
    /// How it and its partitions are used, by partition.
    pub uses: Vec<LimitUse>,
    /// When they were looked at, which is what the starts of a rate are judged by.
    pub at: Timestamp,
}

/// Answer to a [`LimitCall`].
#[derive(Clone, Debug, PartialEq)]
pub enum LimitAnswer {
    /// The limits that were asked for, by name.
    Limits(Vec<LimitState>),
    /// It was written; whether it is new.
    Put {
        /// As it is now.
        limit: Box<LimitState>,
        /// There was none of this name.
        is_new: bool,
    },
    /// It is gone.
    Deleted,
}
