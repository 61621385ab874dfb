//! The store contract. A store orders, filters, locks, compares-and-sets, enforces uniqueness and commits. It knows
//! rows, not rules: what may become of a job is decided by `tagwerk_core` and only written here.
//!
//! Guarantees that every store gives, and that the conformance suite (`testing::conformance`) checks:
//!
//! 1. [`Tx::commit`] returns `Ok` only when everything in the transaction survives a crash of process and machine.
//! 2. A transaction is all or nothing. After an error from any method the transaction is only good for dropping.
//! 3. Rows returned by [`Tx::load`], [`Tx::claimable`], [`Tx::overdue`], [`Tx::expired`], [`Tx::prunable`],
//!    [`Tx::keys`] and [`Tx::versions`] are locked until the end of the transaction: nobody else changes them meanwhile.
//! 4. [`Tx::put`] and [`Tx::put_keys`] are guarded: if the row is not what was read, nothing is written and
//!    [`StoreError::Conflict`] says so.
//! 5. Ids rise: if one transaction committed before another began, its ids are lower. Ids are never used again, not even
//!    after the row was deleted, and stay below 2^53.
//! 6. Claim order is exact within a transaction's view, see [`Tx::claimable`].
//! 7. Methods are plural, so that a store with a network between may answer each in one round trip.
//! 8. A row that cannot be decoded stands in nobody's way: every search passes it over, [`Read`] shows it as
//!    [`Listed::Damaged`], and [`Tx::load`] and [`Tx::details`] say [`Unreadable`] in its place and give all others; the
//!    transaction goes on. It can be erased like any other.

mod alerts;

use std::sync::Arc;

use tagwerk_core::gate::LimitSettings;
use tagwerk_core::{Attempt, Call, JobId, Status, Timestamp};

use crate::row::{
    ActionRow, AttemptRow, AuditQuery, AuditRow, Detail, FullJob, JobRow, KeyRow, KeyWrite, Lane, LaneId,
    LimitRef, LimitRow, LimitUse, OrderRows, Place, QueueRow, Special, Tally, TokenRow, TypeSettings,
    VersionRow, VersionWrite, Versioned,
};

pub use alerts::{AlertRead, AlertTx};

/// What can go wrong in a store, by what the caller does next.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else holds the store; wait and try again.
    #[error("the store is busy")]
    Busy,
    /// No space is left on the device. Reads still work; free space and go on, no restart is needed.
    #[error("the disk that holds the store is full; free some space, the server goes on by itself")]
    Full,
    /// The store cannot be written.
    #[error("the store is read-only; check the permissions of its file and folder")]
    ReadOnly,
    /// The store is damaged.
    #[error("the store is damaged: {0}; stop the server, run `tagwerk check --integrity`, restore a backup")]
    Damaged(String),
    /// The files of the store are not there any more, or are others. Nothing in them is damaged.
    #[error(
        "{0} was deleted or replaced while it was served; put the file back, the server goes on by itself"
    )]
    Gone(String),
    /// One row cannot be read; all others can, so this is no reason to take the store out of service.
    #[error("{0}")]
    DamagedRow(String),
    /// A guard failed: the row is not what was read. Roll back and do it again.
    #[error("a row changed between read and write")]
    Conflict,
    /// The commit got no answer and nobody knows whether it happened.
    #[error("the outcome of a commit is unknown")]
    OutcomeUnknown,
    /// Anything else.
    #[error("the store failed: {0}")]
    Other(String),
}

/// Result of a store call.
pub type StoreResult<T> = Result<T, StoreError>;

/// A row that is there and cannot be decoded; what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

impl From<Unreadable> for StoreError {
    fn from(Unreadable(why): Unreadable) -> Self {
        Self::DamagedRow(why)
    }
}

/// What stands where one row was asked for; `None` where there is none.
pub type Found<T> = Option<Result<T, Unreadable>>;

/// A store, as the committer holds it. One per committer; a store on a database server may be opened several times.
pub trait Store: Send + 'static {
    /// Begins a writing transaction.
    fn begin(&mut self) -> StoreResult<Box<dyn Tx + '_>>;
    /// Where snapshots for reading come from; shared by all threads.
    fn readers(&self) -> Arc<dyn Readers>;
    /// The store's secret: key of the hash that turns lease bits into tokens. Made once, when the store is created.
    fn secret(&self) -> [u8; 32];
    /// Work of the store's own that is best done while no transaction is open (SQLite: a passive checkpoint). Called
    /// about once a second by the committer; must be short.
    fn housekeeping(&mut self) -> StoreResult<()>;
}

/// A row to be inserted.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// Hot part, with the id from [`Tx::next_ids`].
    pub row: JobRow,
    /// Cold part.
    pub detail: Detail,
}

/// A guarded change of a row. Guard: id, version, status and lease bits are still those of `before`.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The row as it was read in this transaction.
    pub before: JobRow,
    /// The row as it is to be. `lane` and `id` never change.
    pub after: JobRow,
}

/// What becomes of the old payload when a new one is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldPayload {
    /// It was never handed out and is overwritten.
    Forget,
    /// It is kept in the job's history.
    Keep,
}

/// A new payload for a job. `payload_bytes` of the row is changed by [`Tx::put`].
#[derive(Clone, Debug, PartialEq)]
pub struct PayloadWrite {
    /// The job.
    pub job: JobId,
    /// The new JSON text.
    pub payload: String,
    /// What becomes of the old one.
    pub old: OldPayload,
    /// Time of the change.
    pub at: Timestamp,
}

/// Which jobs a claim may take. An empty list lets nothing pass.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Filter {
    /// Names of queues; `None` = all.
    pub queues: Option<Vec<String>>,
    /// Names of types; `None` = all.
    pub types: Option<Vec<String>>,
    /// Only this space; `None` = all, and what is in none.
    pub space: Option<String>,
}

impl Filter {
    /// Whether it lets some jobs of this queue pass.
    #[must_use]
    pub fn asks(&self, queue: &str) -> bool {
        self.queues.as_ref().is_none_or(|names| names.iter().any(|name| name == queue))
    }

    /// Whether jobs of this lane pass.
    #[must_use]
    pub fn matches(&self, lane: &Lane) -> bool {
        let passes = |names: &Option<Vec<String>>, name: &str| {
            names.as_ref().is_none_or(|names| names.iter().any(|candidate| candidate == name))
        };
        let is_here = self.space.as_ref().is_none_or(|space| lane.space.as_deref() == Some(space));
        is_here && passes(&self.queues, &lane.queue) && passes(&self.types, &lane.kind)
    }
}

/// A lane that is more than plain.
#[derive(Clone, Copy, Debug)]
pub struct SpecialName<'a> {
    /// Name of the queue.
    pub queue: &'a str,
    /// Name of the job type.
    pub kind: &'a str,
    /// The space.
    pub space: Option<&'a str>,
    /// What makes it special; at least one of both.
    pub special: &'a Special,
}

/// A wish for claimable rows.
#[derive(Clone, Copy, Debug)]
pub struct ClaimQuery<'a> {
    /// Which lanes.
    pub filter: &'a Filter,
    /// At most this many rows.
    pub wanted: usize,
    /// Stop before the rows add up to more than this ([`JobRow::answer_bytes`]); the first row is given whatever its size.
    pub max_bytes: u64,
    /// Leave these out.
    pub skip: &'a [JobId],
}

/// Which rows retention may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneQuery {
    /// Go on behind this id.
    pub after: JobId,
    /// Completed jobs that finished at or before this.
    pub completed_until: Option<Timestamp>,
    /// Cancelled jobs that finished at or before this.
    pub cancelled_until: Option<Timestamp>,
    /// End the scan at the first row that was created after this; `None` looks at all. Ids rise with time, and what was
    /// created after a cut-off cannot have ended before it.
    pub created_until: Option<Timestamp>,
    /// Look at no more than this many rows.
    pub scan: usize,
    /// Return no more than this many.
    pub wanted: usize,
}

/// What a retention scan found.
#[derive(Clone, Debug, PartialEq)]
pub struct Prunable {
    /// The rows, with their idempotency key, in id order.
    pub rows: Vec<(JobRow, Option<String>)>,
    /// Where to go on; `None` when the scan has come to its end.
    pub next: Option<JobId>,
}

/// A writing transaction. Dropped without [`Tx::commit`] it rolls back.
pub trait Tx: AlertTx {
    /// The lanes for these (queue, type) pairs outside of all spaces, made if they are new.
    fn intern(&mut self, names: &[(&str, &str)]) -> StoreResult<Vec<Lane>> {
        self.intern_in(None, names)
    }
    /// The lanes for these (queue, type) pairs in this space, made if they are new.
    fn intern_in(&mut self, space: Option<&str>, names: &[(&str, &str)]) -> StoreResult<Vec<Lane>>;
    /// The special lanes for these, made if they are new. Beyond [`limits::LANES_MAX`] lanes new fair keys and partitions
    /// share a few hashed ones.
    fn intern_special(&mut self, names: &[SpecialName<'_>]) -> StoreResult<Vec<Lane>>;
    /// All limits, by name.
    fn limits(&mut self) -> StoreResult<Vec<LimitRow>>;
    /// Writes the settings of a limit; `None` deletes it with its partitions. Returns whether there was one. What waits
    /// behind it is looked at anew.
    fn put_limit(&mut self, name: &str, settings: Option<&LimitSettings>) -> StoreResult<bool>;
    /// How a limit and its partitions are used, those that are or were lately, by partition.
    fn limit_use(&mut self, name: &str) -> StoreResult<Vec<LimitUse>>;
    /// Pending and running jobs that name this limit, with any partition.
    fn limit_jobs(&mut self, name: &str) -> StoreResult<(u64, u64)>;
    /// Closes a limit until then, with all its partitions if none is named; a later end that it has already stands.
    fn hold_limit(&mut self, limit: &LimitRef, until: Timestamp) -> StoreResult<()>;
    /// Takes back what [`Tx::hold_limit`] has closed: of a partition, or without one of the limit and all its partitions.
    /// Returns whether there was anything. What waits behind it is looked at anew.
    fn open_limit(&mut self, limit: &LimitRef) -> StoreResult<bool>;
    /// Reserves `n` consecutive ids and returns the first.
    fn next_ids(&mut self, n: usize) -> StoreResult<JobId>;
    /// Inserts jobs.
    fn insert(&mut self, jobs: &[Insert]) -> StoreResult<()>;
    /// Reads and locks rows. Any order, duplicates allowed.
    fn load(&mut self, ids: &[JobId]) -> StoreResult<Vec<Found<JobRow>>>;
    /// Reads the cold part.
    fn details(&mut self, ids: &[JobId]) -> StoreResult<Vec<Found<Detail>>>;
    /// Writes changed rows, guarded. All or none.
    fn put(&mut self, changes: &[Change]) -> StoreResult<()>;
    /// Writes new payloads.
    fn put_payloads(&mut self, payloads: &[PayloadWrite]) -> StoreResult<()>;
    /// Reads and locks claimable rows (pending, not blocked, due at `now`, expired or not, in a queue that is not paused) for each wish,
    /// in claim order; no row is given twice.
    ///
    /// Order: what limits exclude is passed over; then the highest priority; within a queue and priority fair keys take
    /// turns, the one that was given something least recently first (jobs without one are a key of their own, in a queue
    /// that knows fair keys); then due time, then id. The best of several queues compare by priority, due time, id. A row
    /// that is given counts as running for its limits until it is changed, and spends a start of each rate for good.
    ///
    /// What a call returned must be changed by [`Tx::put`] to something that is no longer claimable before
    /// the transaction commits or `claimable` is called again: the store may have moved its own hints past these rows.
    fn claimable(&mut self, now: Timestamp, queries: &[ClaimQuery<'_>]) -> StoreResult<Vec<Vec<JobRow>>>;
    /// When time alone may next make something claimable that passes the filter: the earliest due time after `now` of a
    /// pending row that is not blocked, in a queue that is not paused; for due rows that wait for a limit, its next opening or the end of the first lease under it.
    fn next_due(&mut self, now: Timestamp, filter: &Filter) -> StoreResult<Option<Timestamp>>;
    /// Running rows whose attempt is over at `now`, oldest end first, then by id.
    fn overdue(&mut self, now: Timestamp, limit: usize) -> StoreResult<Vec<JobRow>>;
    /// Pending rows, blocked or not, whose maximum age is reached at `now`, oldest first, then by id.
    fn expired(&mut self, now: Timestamp, limit: usize) -> StoreResult<Vec<JobRow>>;
    /// Running rows of this worker claimed with this `request_id`, in id order.
    fn claimed_by_request(&mut self, worker: &str, request_id: &str) -> StoreResult<Vec<JobRow>>;
    /// Reads and locks, of each of these ordering keys, the rows that decide whose turn it is.
    fn orders(&mut self, keys: &[&str]) -> StoreResult<Vec<OrderRows>>;
    /// The ordering key in whose order this job stands. May read all rows of all orders: it is for jobs whose own rows
    /// cannot say.
    fn order_of(&mut self, id: JobId) -> StoreResult<Option<String>>;
    /// Reads and locks keys; `None` where there is none.
    fn keys(&mut self, keys: &[&str]) -> StoreResult<Vec<Option<KeyRow>>>;
    /// Writes keys in this order, guarded. All or none.
    fn put_keys(&mut self, writes: &[KeyWrite]) -> StoreResult<()>;
    /// Keys with a tombstone, in key order behind `after`.
    fn tombstones(&mut self, after: &str, limit: usize) -> StoreResult<Vec<KeyRow>>;
    /// The kept histories of these jobs, oldest attempt first.
    fn attempts(&mut self, ids: &[JobId]) -> StoreResult<Vec<Vec<Attempt>>>;
    /// Adds attempts or replaces those with the same `seq`. Keeps the first 10 and the last 90 of each job.
    fn put_attempts(&mut self, attempts: &[(JobId, Attempt)]) -> StoreResult<()>;
    /// Notes a call that was refused as stale on the attempt with this `seq`; nothing if the history does not have it.
    fn note_refused(&mut self, refused: &[(JobId, u32, Call, Timestamp)]) -> StoreResult<()>;
    /// Adds operator actions to the histories.
    fn append_actions(&mut self, actions: &[ActionRow]) -> StoreResult<()>;
    /// Adds entries to the audit log, with rising numbers above all that there ever were.
    fn append_audit(&mut self, entries: &[AuditRow]) -> StoreResult<()>;
    /// Notes when tokens, by name, were used. A name that is gone by now is passed over.
    fn touch_tokens(&mut self, used: &[(String, Timestamp)]) -> StoreResult<()>;
    /// The key of which this job is the owner. May read all keys: it is for jobs whose own rows cannot say.
    fn key_of(&mut self, owner: JobId) -> StoreResult<Option<KeyRow>>;
    /// The ledger by lane.
    fn ledger(&mut self) -> StoreResult<Vec<(Lane, Tally)>>;
    /// Rows counted by lane and status; those are left out whose lane or status cannot be read. Reads all rows: it is for
    /// jobs whose own rows cannot say where they count.
    fn counts(&mut self) -> StoreResult<Vec<(Lane, Status, i64)>>;
    /// Blocked rows counted by plain lane. Reads all that stand in an order: it is for jobs whose own rows cannot say where
    /// they count.
    fn blocked(&mut self) -> StoreResult<Vec<(Lane, i64)>>;
    /// Adds to the ledger.
    fn add_ledger(&mut self, deltas: &[(LaneId, Tally)]) -> StoreResult<()>;
    /// Looks for rows that retention may delete.
    fn prunable(&mut self, query: &PruneQuery) -> StoreResult<Prunable>;
    /// Erases jobs with everything that belongs to them except keys and ledger.
    fn erase(&mut self, ids: &[JobId]) -> StoreResult<()>;
    /// All type settings by name.
    fn types(&mut self) -> StoreResult<Vec<(String, TypeSettings)>>;
    /// Writes the settings of a type; `None` deletes them. Returns whether there were any before.
    fn put_type(&mut self, kind: &str, settings: Option<&TypeSettings>) -> StoreResult<bool>;
    /// Reads and locks the versions of these objects, in the order of the question.
    fn versions(&mut self, of: &[&Versioned]) -> StoreResult<Vec<Option<VersionRow>>>;
    /// Writes versions, in order.
    fn put_versions(&mut self, writes: &[VersionWrite]) -> StoreResult<()>;
    /// What is said about queues, by name; those about which nothing is said are left out.
    fn queue_rows(&mut self) -> StoreResult<Vec<QueueRow>>;
    /// Writes what is said about a queue, over what was said before. From here on in this transaction, and for good once
    /// it is committed, no row of a paused queue is claimable.
    fn put_queue(&mut self, row: &QueueRow) -> StoreResult<()>;
    /// Pending and running jobs of a queue by the ledger, as [`Tx::add_ledger`] last wrote it: one entry for each plain
    /// lane of the queue, also those without jobs.
    fn depth(&mut self, queue: &str) -> StoreResult<Vec<(LaneId, i64)>>;
    /// Until when somebody has certainly served this store.
    fn served_until(&mut self) -> StoreResult<Option<Timestamp>>;
    /// Writes that, and the last claim time of queues that were claimed from since.
    fn set_served(&mut self, until: Timestamp, claims: &[(String, Timestamp)]) -> StoreResult<()>;
    /// Moves lease end and time limit of all running rows by `ms`. Returns how many.
    fn shift_leases(&mut self, ms: i64) -> StoreResult<u64>;
    /// Makes everything durable.
    fn commit(self: Box<Self>) -> StoreResult<()>;
}

/// Where snapshots come from.
pub trait Readers: Send + Sync {
    /// A consistent view of what was committed last. Blocks while too many are in use; [`StoreError::Busy`] after a
    /// bounded wait.
    fn snapshot(&self) -> StoreResult<Box<dyn Read + '_>>;
}

/// A row in a list: a job, or the trace of one that cannot be read.
#[derive(Clone, Debug, PartialEq)]
pub enum Listed {
    /// A job. In lists and scans payload, result and checkpoint may be left empty; in lists they are.
    Job(Box<FullJob>),
    /// A row that cannot be decoded; it stays where it is and is shown as damaged.
    Damaged {
        /// Its id.
        id: JobId,
        /// What is wrong with it.
        why: String,
    },
}

/// Which jobs a list shows.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListQuery {
    /// Only these statuses; empty = all.
    pub statuses: Vec<Status>,
    /// Only this type.
    pub kind: Option<String>,
    /// Only this queue.
    pub queue: Option<String>,
    /// Only this kind of subject.
    pub subject_kind: Option<String>,
    /// Only this subject.
    pub subject_id: Option<String>,
    /// Only this correlation id.
    pub correlation_id: Option<String>,
    /// Only jobs that came with this key. Each has been its owner at some time ([`Tx::put_keys`]).
    pub key: Option<String>,
    /// Created at or after.
    pub since: Option<Timestamp>,
    /// Created before.
    pub until: Option<Timestamp>,
    /// Go on behind this id.
    pub after: Option<JobId>,
    /// At most this many.
    pub limit: usize,
}

/// A page of a list. A page may be short or empty and still have a `next`: the scan behind it is bounded.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing {
    /// The rows, ascending id.
    pub rows: Vec<Listed>,
    /// Where to go on.
    pub next: Option<JobId>,
}

/// What is ready in a lane.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneReady {
    /// The lane.
    pub lane: Lane,
    /// Due time of its oldest ready job over all priorities.
    pub oldest_due: Timestamp,
}

/// Size and health of the store.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StoreFacts {
    /// Kind and version, `sqlite 3.54.1`.
    pub engine: String,
    /// Version of the schema.
    pub schema: i64,
    /// Bytes of the main file or database.
    pub bytes: u64,
    /// Bytes of the write-ahead log.
    pub wal_bytes: u64,
    /// Rows met since the start that could not be read.
    pub damaged_rows: u64,
}

/// A snapshot for reading.
pub trait Read: AlertRead {
    /// Jobs with everything; `None` where there is none. A damaged row is [`Listed::Damaged`].
    fn jobs(&mut self, ids: &[JobId]) -> StoreResult<Vec<Option<Listed>>>;
    /// A page of jobs without payload, result and checkpoint.
    fn list(&mut self, query: &ListQuery) -> StoreResult<Listing>;
    /// The kept history of a job behind `after_seq`, oldest first.
    fn attempts(&mut self, id: JobId, after_seq: u32, limit: usize) -> StoreResult<Vec<AttemptRow>>;
    /// What operators did to a job, oldest first.
    fn actions(&mut self, id: JobId) -> StoreResult<Vec<ActionRow>>;
    /// Entries of the audit log, by number.
    fn audit(&mut self, query: &AuditQuery) -> StoreResult<Vec<AuditRow>>;
    /// All API tokens by name. They are made and removed beside the server, not by it.
    fn tokens(&mut self) -> StoreResult<Vec<TokenRow>>;
    /// The ledger by lane.
    fn ledger(&mut self) -> StoreResult<Vec<(Lane, Tally)>>;
    /// Rows counted by lane and status, from the rows themselves. Reads the whole table.
    fn counts(&mut self) -> StoreResult<Vec<(Lane, Status, i64)>>;
    /// Per lane with ready jobs: the oldest. Costs one seek per lane and priority in use.
    fn ready(&mut self, now: Timestamp) -> StoreResult<Vec<LaneReady>>;
    /// How many ready jobs of its queue come before this pending one in claim order, counted up to `cap`.
    fn ahead(&mut self, row: &JobRow, now: Timestamp, cap: usize) -> StoreResult<usize>;
    /// Running rows in id order behind `after`.
    fn running(&mut self, after: JobId, limit: usize) -> StoreResult<Vec<JobRow>>;
    /// Of this ordering key the rows that decide whose turn it is.
    fn order(&mut self, key: &str) -> StoreResult<OrderRows>;
    /// How many jobs of this ordering key wait behind a job, counted up to `cap`.
    fn followers(&mut self, key: &str, behind: JobId, cap: usize) -> StoreResult<usize>;
    /// Places in the orders of ordering keys behind this one, by key and job, for `check`.
    fn places(&mut self, after: (&str, JobId), limit: usize) -> StoreResult<Vec<Place>>;
    /// A key.
    fn key(&mut self, key: &str) -> StoreResult<Option<KeyRow>>;
    /// All type settings by name.
    fn types(&mut self) -> StoreResult<Vec<(String, TypeSettings)>>;
    /// What is said about queues, by name; those about which nothing is said are left out.
    fn queue_rows(&mut self) -> StoreResult<Vec<QueueRow>>;
    /// Last claim time by queue as last written, for all queues ever used.
    fn queues(&mut self) -> StoreResult<Vec<(String, Option<Timestamp>)>>;
    /// Until when somebody has certainly served this store.
    fn served_until(&mut self) -> StoreResult<Option<Timestamp>>;
    /// Rows in id order behind `after`, for `check`. Damaged rows included.
    fn scan(&mut self, after: JobId, limit: usize) -> StoreResult<Vec<Listed>>;
    /// The store's own check of everything it holds (SQLite: `integrity_check`). Empty when clean.
    fn integrity(&mut self) -> StoreResult<Vec<String>>;
    /// Rows about queues, lanes and limits that name something that is not there, or that cannot be meant, each with what
    /// to do about it, for `check`. Empty when clean.
    fn loose_ends(&mut self) -> StoreResult<Vec<String>>;
    /// Size and health.
    fn facts(&mut self) -> StoreResult<StoreFacts>;
}
