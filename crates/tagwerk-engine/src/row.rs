//! What stores keep: rows as the engine sees them. Plain data; conversions to SQL live in each store.

mod alert;
mod audit;
mod order;
mod queue;
mod space;
mod tally;
mod token;
mod version;

use std::sync::Arc;

use tagwerk_core::gate::{LimitSettings, Window};
use tagwerk_core::idempotency::{OnDuplicate, OnMismatch, Scope, Standing};
use tagwerk_core::{
    Attempt, Call, Job, JobId, OnHeadFailure, OnUnknown, Priority, RetryOverrides, Timestamp,
};

pub use alert::{Acknowledged, AlertQuery, AlertRow, Ways, Which};
pub use audit::{AuditQuery, AuditRow};
pub use order::{Order, OrderRows, Ordering, Place};
pub use queue::QueueRow;
pub use space::{in_space, without_space};
pub use tally::{Counter, Tally};
pub use token::{TokenHash, TokenRow};
pub use version::{VersionRow, VersionWrite, Versioned};

/// An interned (queue, type, space, limits, fair key). A job gets its lane at the enqueue and keeps it; lane ids are never used
/// again. A lane without limits and fair key is *plain*; jobs that use neither live in plain lanes and pay for nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane {
    /// The store's number for it.
    pub id: LaneId,
    /// Number of the plain lane of the same queue, type and space: what the ledger counts by. A plain lane is its own class.
    pub class: LaneId,
    /// Name of the queue.
    pub queue: Arc<str>,
    /// Name of the job type.
    pub kind: Arc<str>,
    /// The space that its jobs are in, if they are in one.
    pub space: Option<Arc<str>>,
    /// What makes it more than plain.
    pub special: Option<Arc<Special>>,
}

impl Lane {
    /// Limits that its jobs keep to, by name; at most two.
    #[must_use]
    pub fn limits(&self) -> &[LimitRef] {
        self.special.as_deref().map_or(&[], |special| &special.limits)
    }

    /// The key under which its jobs take turns with others of the queue.
    #[must_use]
    pub fn fair_key(&self) -> Option<&str> {
        self.special.as_deref()?.fair_key.as_deref()
    }
}

/// What makes a lane more than plain: at least one of both.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Special {
    /// Limits, sorted and each once.
    pub limits: Vec<LimitRef>,
    /// Fair key.
    pub fair_key: Option<String>,
}

/// A limit as a job names it: `crm`, or `crm:tenant-42` for a partition, which counts for itself under the settings of its
/// name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LimitRef {
    /// Name of the limit.
    pub name: String,
    /// Partition; empty = none.
    pub partition: String,
}

impl LimitRef {
    /// Takes a text apart at its first colon.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let (name, partition) = text.split_once(':').unwrap_or((text, ""));
        Self { name: name.to_owned(), partition: partition.to_owned() }
    }
}

impl std::fmt::Display for LimitRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        if self.partition.is_empty() { Ok(()) } else { write!(f, ":{}", self.partition) }
    }
}

/// A limit with its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitRow {
    /// Its name, without a partition.
    pub name: String,
    /// What it bounds.
    pub settings: LimitSettings,
}

/// How a limit, or a partition of it, is used at the moment.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitUse {
    /// Which.
    pub limit: LimitRef,
    /// Jobs that run under it.
    pub running: u32,
    /// Its starts within the rate's period.
    pub window: Window,
    /// Closed until then, whatever else it says.
    pub hold_until: Option<Timestamp>,
}

/// Number of a lane: of a plain one above 0, of a special one below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId(pub i64);

impl LaneId {
    /// Whether it is the number of a special lane: those are below 0.
    #[must_use]
    pub const fn is_special(self) -> bool {
        self.0 < 0
    }
}

/// The hot part of a job: what claims, reports and lists need. The payload is in [`Detail`].
#[derive(Clone, Debug, PartialEq)]
pub struct JobRow {
    /// The state that the rules decide on.
    pub job: Job,
    /// Queue and type.
    pub lane: Lane,
    /// Higher goes first.
    pub priority: Priority,
    /// Size of the payload in bytes, so that claim answers can be budgeted without reading payloads.
    pub payload_bytes: u32,
    /// What the worker has left behind.
    pub note: Note,
    /// Where it stands in the order of its key: some exactly while it stands there ([`tagwerk_core::order::stands`]).
    pub order: Option<Box<Order>>,
}

impl JobRow {
    /// Whether claims pass it over until its turn has come.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.order.as_ref().is_some_and(|order| order.blocked)
    }

    /// Bytes of the texts that an answer to a claim shows: payload, error, checkpoint, results of effects.
    #[must_use]
    pub fn answer_bytes(&self) -> u64 {
        let text = |text: &Option<String>| text.as_ref().map_or(0, |text| text.len() as u64);
        let results = self.job.effects.iter().filter_map(|effect| effect.result.as_ref());
        let effects: u64 = results.map(|result| result.len() as u64).sum();
        u64::from(self.payload_bytes) + text(&self.job.error) + text(&self.note.checkpoint) + effects
    }
}

/// What workers have left on a job. Kept apart from the hot columns; most jobs have none.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Note {
    /// JSON text of the result of `complete`.
    pub result: Option<String>,
    /// JSON text of the last checkpoint.
    pub checkpoint: Option<String>,
    /// Last progress.
    pub progress: Option<Progress>,
}

/// Progress as the worker reported it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Progress {
    /// Units done.
    pub done: Option<i64>,
    /// Units in all.
    pub total: Option<i64>,
    /// A sentence for people.
    pub message: Option<String>,
}

/// The business object that a job is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Kind, `order`.
    pub kind: String,
    /// Id within the kind.
    pub id: String,
    /// Version of the object, if it has one.
    pub version: Option<i64>,
}

/// The cold part of a job: written once at the enqueue, the payload again only by a replacing enqueue or a retry.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Detail {
    /// JSON text, byte for byte as it came.
    pub payload: String,
    /// Business object.
    pub subject: Option<Subject>,
    /// The caller's own id for a chain of work.
    pub correlation_id: Option<String>,
    /// W3C trace context of the enqueue.
    pub traceparent: Option<String>,
    /// Idempotency key, if it came with one.
    pub key: Option<String>,
    /// Hash of what was first sent with the key, so that a retry which takes the key back knows it. `Some` exactly with a
    /// key.
    pub fingerprint: Option<[u8; 16]>,
    /// Scope of the key as given.
    pub scope: Option<Scope>,
    /// Life of the key after the end in milliseconds, as given.
    pub ttl_ms: Option<i64>,
    /// As given.
    pub on_duplicate: Option<OnDuplicate>,
    /// As given.
    pub on_mismatch: Option<OnMismatch>,
    /// Lease length in milliseconds for this job.
    pub lease_ms: Option<i64>,
    /// Hard limit of one attempt in milliseconds for this job.
    pub timeout_ms: Option<i64>,
    /// Back-off fields for this job.
    pub retry: RetryOverrides,
    /// Whether its version supersedes, and is superseded by, others of its subject.
    pub supersede: bool,
    /// Ordering key, if it came with one. Kept when the job leaves the order, so that a retry puts it back.
    pub ordering: Option<Box<Ordering>>,
}

impl Detail {
    /// A copy with an empty payload.
    #[must_use]
    pub fn without_payload(&self) -> Self {
        Self {
            payload: String::new(),
            subject: self.subject.clone(),
            correlation_id: self.correlation_id.clone(),
            traceparent: self.traceparent.clone(),
            key: self.key.clone(),
            fingerprint: self.fingerprint,
            scope: self.scope,
            ttl_ms: self.ttl_ms,
            on_duplicate: self.on_duplicate,
            on_mismatch: self.on_mismatch,
            lease_ms: self.lease_ms,
            timeout_ms: self.timeout_ms,
            retry: self.retry,
            supersede: self.supersede,
            ordering: self.ordering.clone(),
        }
    }
}

/// A job with everything.
#[derive(Clone, Debug, PartialEq)]
pub struct FullJob {
    /// Hot part.
    pub row: JobRow,
    /// Cold part.
    pub detail: Detail,
}

/// An idempotency key. Outlives its job as a tombstone.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyRow {
    /// The key.
    pub key: String,
    /// The job that has it.
    pub owner: JobId,
    /// How long it holds.
    pub scope: Scope,
    /// Life after the end in milliseconds.
    pub ttl_ms: i64,
    /// Hash of what was first sent with it.
    pub fingerprint: [u8; 16],
    /// What is left of the job after it was pruned.
    pub tombstone: Option<Tombstone>,
}

/// What is left of a pruned job whose key lives on.
#[derive(Clone, Debug, PartialEq)]
pub struct Tombstone {
    /// Its type.
    pub kind: String,
    /// Its last state, for the rule.
    pub standing: Standing,
}

/// A write to the key table, guarded by what was there.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyWrite {
    /// A new key. The store's UNIQUE constraint refuses it if there is one.
    Insert(KeyRow),
    /// Takes the key over from `from`; refused if somebody else has it by now.
    Replace {
        /// The row as it is to be.
        row: KeyRow,
        /// The owner that was read.
        from: JobId,
    },
    /// Removes the key if `owner` has it.
    Delete {
        /// The key.
        key: String,
        /// Its owner.
        owner: JobId,
    },
}

/// An attempt with what the history adds: calls that were refused because they came too late.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptRow {
    /// The attempt.
    pub attempt: Attempt,
    /// Calls with its token that were refused as stale.
    pub refused_calls: u32,
    /// The last of them.
    pub last_refused: Option<(Call, Timestamp)>,
}

/// An operator's action, kept in the job's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionRow {
    /// The job.
    pub job: JobId,
    /// When.
    pub at: Timestamp,
    /// What was done.
    pub call: Call,
    /// Version of the job after it.
    pub version: i64,
    /// Reason or note as given.
    pub text: Option<String>,
}

/// Settings of a type: defaults for its jobs, and what these may ask for. `None` leaves a field to the server, or forbids
/// nothing.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TypeSettings {
    /// Queue for jobs that name none.
    pub queue: Option<String>,
    /// Priority for jobs that name none.
    pub priority: Option<Priority>,
    /// Retries allowed.
    pub max_retries: Option<u32>,
    /// Lease losses that end a job.
    pub max_lease_losses: Option<u32>,
    /// Lease length in milliseconds.
    pub lease_ms: Option<i64>,
    /// Hard limit of an attempt in milliseconds.
    pub timeout_ms: Option<i64>,
    /// Maximum age in milliseconds.
    pub max_age_ms: Option<i64>,
    /// Back-off fields.
    pub retry: RetryOverrides,
    /// What an unknown outcome leads to.
    pub on_unknown: Option<OnUnknown>,
    /// All workers of the type deal with what an earlier attempt may have done.
    pub handles_verify: bool,
    /// Scope of idempotency keys.
    pub scope: Option<Scope>,
    /// Life of idempotency keys after the end in milliseconds.
    pub ttl_ms: Option<i64>,
    /// Who is responsible; free text.
    pub owner: Option<String>,
    /// The queues that jobs may go to; `None`: any. Never empty.
    pub queues: Option<Vec<String>>,
    /// The highest priority that a job may ask for; one that asks for none gets at most this.
    pub priority_ceiling: Option<Priority>,
    /// Largest payload in bytes.
    pub payload_max_bytes: Option<u32>,
    /// Limits of jobs that name none, sorted and each once; at most two, mostly none.
    pub limits: Vec<LimitRef>,
    /// Fair key of jobs that have none.
    pub fair_key: Option<String>,
    /// Ordering key of jobs that have none: all of them run one after the other.
    pub ordering_key: Option<Arc<str>>,
    /// For jobs with an ordering key that do not say what their failure means for those behind them.
    pub on_head_failure: Option<OnHeadFailure>,
}
