//! The audit log.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Time;

/// Something that an operator did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Its number, rising.
    pub n: i64,
    /// When.
    pub at: Time,
    /// Who: the name of an API token, or `local` for a caller without one.
    pub who: String,
    /// What: `job.cancel`, `job.retry`, `job.discard`, `job.force_fail`, `job.unblock`, `job.delete`, `queue.put`,
    /// `queue.pause`, `queue.resume`, `queue.drain`, `queue.open`, `limit.put`, `limit.delete`, `limit.open`, `type.put`,
    /// `type.delete`, `alert.ack`, `token.create`, `token.revoke`.
    pub action: String,
    /// On what: the id of a job, the name of a queue, limit, type or token, the number of an alert.
    pub target: String,
    /// Reason or note as given; bounds as written.
    pub note: Option<String>,
}

/// `GET /audit`, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    /// The entries of this page.
    pub entries: Vec<AuditEntry>,
    /// What to give as `after` for the next page; `null` at the end.
    pub next: Option<String>,
}
