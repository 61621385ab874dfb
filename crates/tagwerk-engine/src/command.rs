//! Commands: what callers ask of the engine, already checked at the door, and what they are answered.

mod alert;
mod effect;
mod error;
mod follow;
mod limit;
mod queue;

use std::sync::Arc;

use tagwerk_core::access::{OutOfReach, Reach};
use tagwerk_core::idempotency::{OnDuplicate, OnMismatch, Scope};
use tagwerk_core::{
    Action, Assumed, JobId, OnUnknown, Outcome, Priority, Rejection, RetryOverrides, Timestamp, limits,
};

use crate::row::{FullJob, Ordering, Progress, Special, Subject, Tombstone, TypeSettings};
use crate::store::{Filter, Listed};

pub use alert::{AlertAnswer, AlertCall, Judgement, Turn};
pub use effect::EffectSaid;
pub use error::EngineError;
pub use follow::{FollowUps, FollowedUp};
pub use limit::{LimitAnswer, LimitCall, LimitState, Throttle};
pub use queue::{ControlQueue, QueueAnswer, QueueControl, QueueRefusal};

/// When a new job becomes due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Start {
    /// At once.
    #[default]
    Now,
    /// After this many milliseconds.
    AfterMs(i64),
    /// At this time; at once if it has passed.
    At(Timestamp),
}

/// Maximum age of a new job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxAge {
    /// Counted from the enqueue (and anew from a retry out of review), in milliseconds.
    AfterMs(i64),
    /// An instant.
    At(Timestamp),
}

/// A job to be accepted. `None` leaves a field to the type's settings and then to the server's.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct EnqueueJob {
    /// Its type.
    pub kind: String,
    /// Its queue.
    pub queue: Option<String>,
    /// JSON text, byte for byte. `None` = `{}`.
    pub payload: Option<String>,
    /// Higher goes first.
    pub priority: Option<Priority>,
    /// When it becomes due.
    pub start: Start,
    /// Maximum age.
    pub max_age: Option<MaxAge>,
    /// Retries allowed.
    pub max_retries: Option<u32>,
    /// Lease losses that end it.
    pub max_lease_losses: Option<u32>,
    /// Lease length in milliseconds.
    pub lease_ms: Option<i64>,
    /// Hard limit of one attempt in milliseconds.
    pub timeout_ms: Option<i64>,
    /// Back-off fields.
    pub retry: RetryOverrides,
    /// What an unknown outcome leads to.
    pub on_unknown: Option<OnUnknown>,
    /// Idempotency key.
    pub key: Option<String>,
    /// Scope of the key.
    pub scope: Option<Scope>,
    /// Life of the key after the end in milliseconds.
    pub ttl_ms: Option<i64>,
    /// What a second enqueue with the key does.
    pub on_duplicate: Option<OnDuplicate>,
    /// What a second enqueue with other content does.
    pub on_mismatch: Option<OnMismatch>,
    /// Business object.
    pub subject: Option<Subject>,
    /// The caller's own id for a chain of work.
    pub correlation_id: Option<String>,
    /// W3C trace context.
    pub traceparent: Option<String>,
    /// Limits and fair key, if it has any.
    pub special: Option<Arc<Special>>,
    /// Whether the version of its subject supersedes, and is superseded by, those of others.
    pub supersede: bool,
    /// Ordering key with what a failure means for those behind.
    pub ordering: Option<Box<Ordering>>,
}

/// Jobs to be accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Enqueue {
    /// The jobs.
    pub jobs: Vec<EnqueueJob>,
    /// Whether one refused job refuses all.
    pub mode: BulkMode,
    /// What the caller may make and see; `None`: everything.
    pub reach: Option<Arc<Reach>>,
}

/// How the items of a bulk enqueue hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkMode {
    /// Each is judged by itself.
    Each,
    /// All or none.
    Atomic,
}

/// What became of one job of an [`Enqueue`]. Payloads are there only if it was the only one.
#[derive(Clone, Debug, PartialEq)]
pub enum Enqueued {
    /// It was created.
    Created(Box<FullJob>),
    /// The key belongs to this job.
    Existing {
        /// The job that has the key.
        job: Box<FullJob>,
        /// What was sent differs from what was first sent with the key.
        payload_differs: bool,
        /// `on_duplicate: replace` was asked for: whether the job was rewritten. Only a job of the same type and queue is.
        replaced: Option<bool>,
    },
    /// The key belongs to a job that retention has pruned.
    Pruned {
        /// Its id.
        id: JobId,
        /// What is left of it.
        tombstone: Tombstone,
        /// What was sent differs from what was first sent with the key.
        payload_differs: bool,
        /// `on_duplicate: replace` was asked for: never done, there is nothing left to rewrite.
        replaced: Option<bool>,
    },
}

/// A claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Who claims.
    pub worker: String,
    /// Which jobs.
    pub filter: Filter,
    /// At most this many.
    pub max_jobs: usize,
    /// Lease length in milliseconds, over all other settings.
    pub lease_ms: Option<i64>,
    /// The worker deals with what an earlier attempt may have done.
    pub handles_verify: bool,
    /// How long to wait for a job in milliseconds; 0 answers at once.
    pub wait_ms: i64,
    /// Repeating the claim with the same value returns the same leases.
    pub request_id: Option<String>,
    /// The worker's software, for the list of workers.
    pub agent: Option<String>,
}

impl Claim {
    /// How much it may add to a batch, in bytes: jobs are reckoned at a fixed size, since it is not known before what they
    /// weigh, and no claim gets more than its budget.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.max_jobs.saturating_mul(limits::JOB_WEIGHT_BYTES).min(limits::CLAIM_BUDGET_BYTES)
    }
}

/// A job handed out.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// The job, running.
    pub job: FullJob,
    /// The token that fences its lease.
    pub token: String,
}

/// Answer to a [`Claim`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ClaimAnswer {
    /// The jobs handed out.
    pub jobs: Vec<Claimed>,
    /// They had been handed out before to the same `request_id`.
    pub replayed: bool,
    /// When none: the next due time that time alone will bring, if any.
    pub next_due_at: Option<Timestamp>,
}

/// Who makes a call about an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Holder {
    /// The lease token, if one was sent.
    pub token: Option<String>,
    /// The `worker_id`, if one was sent.
    pub worker: Option<String>,
}

/// What a worker says about a job that it holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// `complete`, `fail`, `release`.
    Report {
        /// The outcome.
        outcome: Outcome,
        /// JSON text of the result (only for completed).
        result: Option<String>,
    },
    /// A failure that holds back a limit, because what stands behind it said so.
    Throttle {
        /// The failure.
        outcome: Outcome,
        /// What is held back. Happens only if the report counts.
        throttle: Box<Throttle>,
    },
    /// `complete` with jobs that it leads to.
    Lead {
        /// JSON text of the result.
        result: Option<String>,
        /// The jobs. Created only if the report counts, and all or none.
        follow_ups: Box<FollowUps>,
    },
    /// `heartbeat`.
    Heartbeat {
        /// Progress, if it came along.
        progress: Option<Progress>,
    },
    /// `checkpoint`: JSON text.
    Checkpoint(String),
    /// Something about the effect with this name.
    Effect(Arc<str>, EffectSaid),
}

/// One call of a worker about one job.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerCall {
    /// The job.
    pub id: JobId,
    /// Who calls.
    pub holder: Holder,
    /// What it says.
    pub said: Said,
}

/// Calls of a worker, and optionally a claim in the same round trip (which never waits).
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// The calls, each judged by itself, in order.
    pub calls: Vec<WorkerCall>,
    /// A claim to be served behind them.
    pub claim: Option<Claim>,
}

/// Answer to one accepted [`WorkerCall`]. The payload is there only if it was the only call, without a claim; for a
/// heartbeat only the row is.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerAnswer {
    /// The job as it is now.
    pub job: Box<FullJob>,
    /// The same report had been accepted before.
    pub replayed: bool,
    /// It was to hold back a limit that there is not. The report counts all the same.
    pub unknown_limit: bool,
    /// What became of the jobs that came along, in order. `None` without any, and after a repeated report, whose jobs were
    /// created before.
    pub enqueued: Option<Vec<FollowedUp>>,
}

/// Answer to [`Work`].
#[derive(Clone, Debug, PartialEq)]
pub struct WorkAnswer {
    /// One per call, in order.
    pub results: Vec<Result<WorkerAnswer, Refusal>>,
    /// The jobs claimed, if a claim came along.
    pub claimed: Option<ClaimAnswer>,
}

/// What to do with the job's idempotency key when it is cancelled or discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum KeyFate {
    /// Its scope decides.
    #[default]
    ByScope,
    /// Free it.
    Free,
}

/// An operator's call.
#[derive(Clone, Debug, PartialEq)]
pub struct Operate {
    /// The job.
    pub id: JobId,
    /// What is done. [`Action::Replace`] is not an operator's and is refused.
    pub action: Action,
    /// The version that was seen.
    pub seen_version: Option<i64>,
    /// Reason or note, kept in the job's history.
    pub text: Option<String>,
    /// A new payload (only with a retry).
    pub payload: Option<String>,
    /// What the operator has found out about the effects in doubt (only with a retry).
    pub assume: Option<Assumed>,
    /// What becomes of the key.
    pub key: KeyFate,
}

impl Operate {
    /// What the history and the audit log keep of it: what the operator said, and what was found out about effects.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let found = self.assume.as_ref().map(|assumed| format!("assumed {}", assumed.words()));
        match (&self.text, found) {
            (Some(text), Some(found)) => Some(format!("{text} ({found})")),
            (text, found) => found.or_else(|| text.clone()),
        }
    }
}

/// Answer to [`Operate`].
#[derive(Clone, Debug, PartialEq)]
pub struct OperateAnswer {
    /// The job as it is now; for DELETE as it was last. Damaged: only after a DELETE of a job that could not be read.
    pub job: Listed,
    /// Nothing was left to do.
    pub replayed: bool,
}

/// Settings of a type to be written or deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct PutType {
    /// The type.
    pub kind: String,
    /// The settings; `None` deletes them.
    pub settings: Option<TypeSettings>,
}

/// Why one item was refused. Nothing has changed for it (but see [`Rejection::Cancelled`] after `cancel {wait}`).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// No such job.
    #[error("there is no job {0}; it may have been deleted by retention")]
    NoSuchJob(JobId),
    /// Its row cannot be read.
    #[error(
        "the row of job {0} is damaged and cannot be read; a backup may still have it, and DELETE /jobs/{0} without a version removes it"
    )]
    JobDamaged(JobId),
    /// The rules say no.
    #[error("{rejection}")]
    Rejected {
        /// Why.
        rejection: Rejection,
        /// The job as it is.
        job: Box<FullJob>,
    },
    /// `on_duplicate: conflict` and the key is held.
    #[error("idempotency key already belongs to job {}", .0.row.job.id)]
    Duplicate(Box<FullJob>),
    /// `on_mismatch: reject` and something else was sent with the key before.
    #[error("idempotency key was first used by job {0} with other content; use a new key for new work")]
    KeyReused(JobId),
    /// The same, and that job was pruned since.
    #[error(
        "idempotency key was first used by job {0}, which retention has deleted, with other content; use a new key for new work"
    )]
    KeyReusedPruned(JobId, Tombstone),
    /// The key belongs to a pruned job and `on_duplicate: conflict` was asked for.
    #[error("idempotency key already belongs to job {0}, which retention has deleted")]
    DuplicatePruned(JobId, Tombstone),
    /// The key belongs to an earlier job of the same atomic request, which was not stored, and `on_duplicate: conflict` was
    /// asked for.
    #[error("job {index} of this request has the same idempotency key")]
    DuplicateHere {
        /// Index of that job.
        index: usize,
    },
    /// The key belongs to an earlier job of the same atomic request, which was not stored, with other content, and
    /// `on_mismatch: reject` was asked for.
    #[error(
        "job {index} of this request has the same idempotency key with other content; use a new key for new work"
    )]
    KeyReusedHere {
        /// Index of that job.
        index: usize,
    },
    /// A retry cannot take the job's key back: another job holds it.
    #[error("job {0} holds the idempotency key by now; settle that job first")]
    KeyHeld(JobId),
    /// An item of an atomic bulk is fine, but another was refused.
    #[error("not stored, because job {index} of this atomic request was refused")]
    NotAtomic {
        /// Index of the first refused item.
        index: usize,
    },
    /// The server takes only known types, and this one has no settings.
    #[error("type {kind:?} is not known here; only types with settings are taken (types.strict)")]
    UnknownType {
        /// The type as it was sent.
        kind: String,
        /// The types that are known, for whoever looks for the one that was meant.
        known: std::sync::Arc<[String]>,
    },
    /// The payload is larger than its type allows.
    #[error("payload: has {bytes} bytes; the type allows at most {max}")]
    PayloadTooLarge {
        /// Its size.
        bytes: usize,
        /// What the type allows.
        max: u32,
    },
    /// It names a limit that there is not.
    #[error("there is no limit {name}; PUT /limits/{name} makes one")]
    UnknownLimit {
        /// As it was named, without the partition.
        name: String,
        /// Those that there are, or some of very many.
        known: Vec<String>,
    },
    /// The limit cannot be deleted, because jobs name it.
    #[error(
        "{waiting} waiting or failed and {running} running jobs{} name limit {name}; raise its bounds instead, or let them end first",
        of_types(types)
    )]
    LimitInUse {
        /// Its name.
        name: String,
        /// Jobs that wait or may come back from review.
        waiting: u64,
        /// Jobs that run.
        running: u64,
        /// Types whose settings put new jobs under it, or some of very many.
        types: Vec<String>,
    },
    /// There is no such limit.
    #[error("there is no limit {0}")]
    NoSuchLimit(String),
    /// As many jobs are pending or running in its queue as may be.
    #[error("queue {queue} has its {max_depth} jobs; send it again when some are done")]
    QueueFull {
        /// The queue.
        queue: String,
        /// Its bound.
        max_depth: u64,
    },
    /// Its queue takes no new jobs.
    #[error("queue {queue} is being drained and takes no new jobs{}", because(.reason.as_deref()))]
    QueueDraining {
        /// The queue.
        queue: String,
        /// Why, if that was said.
        reason: Option<String>,
    },
    /// It is in review, but nobody waits for it: it has no ordering key, skips, or was unblocked before.
    #[error("the job holds back nobody; there is nothing to unblock")]
    NotHolding(Box<FullJob>),
    /// One of the jobs that came with a `complete` cannot be created, so nothing has changed and the lease lives.
    #[error("enqueue[{index}]: {refusal}")]
    FollowUp {
        /// Which one.
        index: usize,
        /// Why.
        refusal: Box<Refusal>,
    },
    /// It is not for this caller to make.
    #[error(transparent)]
    OutOfReach(OutOfReach),
    /// Its key belongs to a job that is not for this caller to see.
    #[error("the idempotency key belongs to a job that the token may not see; use another key")]
    KeyTaken,
    /// A value that only the engine can judge.
    #[error("{field}: {message}")]
    Invalid {
        /// Field on the wire.
        field: &'static str,
        /// What is wrong and what to do.
        message: String,
    },
}

fn of_types(types: &[String]) -> String {
    match types {
        [] => String::new(),
        [one] => format!(" and the settings of type {one:?}"),
        many => format!(" and the settings of {} types", many.len()),
    }
}

fn because(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!(" ({reason})"))
}
