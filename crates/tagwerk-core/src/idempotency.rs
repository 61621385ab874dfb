//! How long an idempotency key holds, and what a second use of it leads to.
//!
//! Pure rules only. That two callers at the same moment cannot both have the key is the store's unique constraint.

use crate::names::names;
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

names!(Scope {
    Waiting => "waiting",
    Unfinished => "unfinished",
    Ttl => "ttl",
    Forever => "forever",
});

/// What an enqueue with a key that holds does to the job that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnDuplicate {
    /// Nothing: the existing job is the answer.
    #[default]
    Existing,
    /// Rewrites payload, priority and time if the job never started and is of the same type and queue; else nothing.
    Replace,
    /// Nothing, and the caller is refused.
    Conflict,
}

names!(OnDuplicate { Existing => "existing", Replace => "replace", Conflict => "conflict" });

/// What an enqueue with a key that holds leads to if it says something else than the first one did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnMismatch {
    /// The existing job is the answer, with `payload_differs: true`.
    #[default]
    Flag,
    /// The caller is refused.
    Reject,
}

names!(OnMismatch { Flag => "flag", Reject => "reject" });

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

/// Whether the key still belongs to the job that has it, so that an enqueue with the key is answered with that job.
///
/// | scope | pending, never started | pending again | running | failed | completed | cancelled, never started | cancelled after a start |
/// |---|---|---|---|---|---|---|---|
/// | `waiting` | yes | no | no | no | no | no | no |
/// | `unfinished` | yes | yes | yes | no | no | no | no |
/// | `ttl` | yes | yes | yes | yes | until the ttl ends | no | until the ttl ends |
/// | `forever` | yes | yes | yes | yes | yes | yes | yes |
///
/// The ttl counts from the job's end in milliseconds; at `finished_at + ttl_ms` it has ended.
#[must_use]
pub fn holds(scope: Scope, ttl_ms: i64, standing: &Standing, now: Timestamp) -> bool {
    match (scope, standing.status) {
        (Scope::Forever, _)
        | (Scope::Unfinished | Scope::Ttl, Status::Pending | Status::Running)
        | (Scope::Ttl, Status::Failed) => true,
        (Scope::Waiting, Status::Pending) => !standing.started,
        (Scope::Ttl, Status::Completed) => is_within_ttl(ttl_ms, standing, now),
        (Scope::Ttl, Status::Cancelled) => standing.started && is_within_ttl(ttl_ms, standing, now),
        (Scope::Waiting, Status::Running)
        | (Scope::Waiting | Scope::Unfinished, Status::Completed | Status::Failed | Status::Cancelled) => {
            false
        }
    }
}

/// Whether the row of a key whose job is gone may go too: it can answer nobody any more.
#[must_use]
pub fn tombstone_free(scope: Scope, ttl_ms: i64, standing: &Standing, now: Timestamp) -> bool {
    !holds(scope, ttl_ms, standing, now)
}

/// A settled job always has a finish time. If it were missing, holding the key is the error that does no harm.
fn is_within_ttl(ttl_ms: i64, standing: &Standing, now: Timestamp) -> bool {
    standing.finished_at.is_none_or(|finished_at| now < finished_at.plus_ms(ttl_ms))
}
