//! The audit log: what operators did to anything.

use tagwerk_core::Timestamp;

/// An entry of the audit log. Never a payload, a result or a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    /// Its number, rising; given by the store when it is appended.
    pub n: i64,
    /// When.
    pub at: Timestamp,
    /// Who: the name of a token, or `local` for a caller without one.
    pub who: String,
    /// What was done, `queue.pause`.
    pub action: String,
    /// On what: the id of a job, the name of a queue, limit, type or token.
    pub target: String,
    /// Reason or note as given.
    pub note: Option<String>,
}

/// Which entries of the audit log are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditQuery {
    /// Go on behind this number.
    pub after: i64,
    /// Only from then on.
    pub since: Option<Timestamp>,
    /// Only before then.
    pub until: Option<Timestamp>,
    /// At most this many.
    pub limit: usize,
}
