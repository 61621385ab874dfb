//! What the server tells about queues, types, workers and itself.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::request::{Progress, QueueSettings, TypeSettings};
use crate::{Seconds, Time};

/// Jobs by status. `enqueued` is the sum of `pending`, `running`, `completed`, `failed`, `cancelled` and `pruned` at any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    /// Ever accepted.
    pub enqueued: i64,
    /// Wait for a worker, or for something else first.
    pub pending: i64,
    /// Of the pending ones: wait for another job with their ordering key.
    pub blocked: i64,
    /// Held by a worker.
    pub running: i64,
    /// Done.
    pub completed: i64,
    /// In review.
    pub failed: i64,
    /// Will not be run.
    pub cancelled: i64,
    /// Deleted by retention or by DELETE.
    pub pruned: i64,
}

/// One queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueInfo {
    /// Its name.
    pub queue: String,
    /// Its jobs.
    pub counts: Counts,
    /// Age of the oldest job that could be handed out; `null` if there is none.
    pub oldest_ready_age_seconds: Option<Seconds>,
    /// Time since a worker last asked this queue for work; `null` if none ever did.
    pub last_claim_age_seconds: Option<Seconds>,
    /// Its bounds.
    pub settings: QueueSettings,
    /// Why none of its jobs is handed out, oldest reason first; empty: they are.
    pub paused: Vec<QueuePause>,
    /// Why producers are refused; `null`: they are not.
    pub draining: Option<QueueDrain>,
    /// Producers are refused, and nothing is pending or running any more.
    pub drained: bool,
}

/// A reason for which a queue is paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueuePause {
    /// Why; `resume` lifts it by this name.
    pub reason: String,
    /// Who said so.
    pub by: Option<String>,
    /// When.
    pub since: Time,
}

/// Producers of a queue are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueDrain {
    /// Why.
    pub reason: Option<String>,
    /// Who said so.
    pub by: Option<String>,
    /// When.
    pub since: Time,
}

/// `GET /queues`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueList {
    /// Ascending by name.
    pub queues: Vec<QueueInfo>,
    /// What to give as `after` for the next page; `null` at the end.
    pub next: Option<String>,
}

/// One type: its settings, where it has any, and its jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TypeInfo {
    /// Its name.
    #[serde(rename = "type")]
    pub job_type: String,
    /// Whether settings were made for it. If not, they are all `null`.
    pub configured: bool,
    /// Defaults for its jobs; `null` means the server's.
    #[serde(flatten)]
    pub settings: TypeSettings,
    /// Its jobs.
    pub counts: Counts,
    /// Age of the oldest job that could be handed out; `null` if there is none.
    pub oldest_ready_age_seconds: Option<Seconds>,
}

/// `GET /types`: every type with settings or jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TypeList {
    /// Ascending by name.
    pub types: Vec<TypeInfo>,
    /// What to give as `after` for the next page; `null` at the end.
    pub next: Option<String>,
}

/// A job that a worker holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerJob {
    /// The job.
    pub id: i64,
    /// What it does.
    #[serde(rename = "type")]
    pub job_type: String,
    /// The capacity it draws on.
    pub queue: String,
    /// Which attempt.
    pub attempt: u32,
    /// Since when.
    pub claimed_at: Time,
    /// Until when without a heartbeat.
    pub lease_expires_at: Time,
    /// How far the work has come.
    pub progress: Option<Progress>,
}

/// One worker, as it calls itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerInfo {
    /// Its name.
    pub worker_id: String,
    /// Its last call of any kind; `null` if it has made none since the server's start.
    pub last_seen_at: Option<Time>,
    /// When it last asked for work; `null` if it has not since the server's start.
    pub last_claim_at: Option<Time>,
    /// Its last report, heartbeat or checkpoint; `null` if it has sent none since the server's start. One that is later
    /// than `last_claim_at` by far is of a worker that lives and asks for nothing.
    pub last_report_at: Option<Time>,
    /// The queues of its last claim; `null` for all.
    pub queues: Option<Vec<String>>,
    /// The types of its last claim; `null` for all.
    pub types: Option<Vec<String>>,
    /// Its software, from `User-Agent`.
    pub version: Option<String>,
    /// How many jobs it holds.
    pub running: u32,
    /// The first 100 of them.
    pub jobs: Vec<WorkerJob>,
}

/// `GET /workers`: who was seen lately or holds a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerList {
    /// Ascending by name.
    pub workers: Vec<WorkerInfo>,
    /// What to give as `after` for the next page; `null` at the end.
    pub next: Option<String>,
}

/// Events since the store was made; each equals the number of such events that clients saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Totals {
    /// Jobs accepted.
    pub enqueues: i64,
    /// Leases granted.
    pub claims: i64,
    /// Reports of completion that counted.
    pub completions: i64,
    /// Reports of a failure that counted.
    pub failures: i64,
    /// Attempts given back.
    pub releases: i64,
    /// Requeues after a failure, a loss or a time-out.
    pub retries: i64,
    /// Leases that ran out.
    pub lease_losses: i64,
    /// Attempts that reached their time limit.
    pub time_outs: i64,
    /// Entries into review.
    pub reviews: i64,
    /// Retries from review.
    pub review_retries: i64,
}

/// The store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoreStats {
    /// What it is, with its version: `sqlite 3.54.1`.
    pub kind: String,
    /// Version of its schema.
    pub schema: i64,
    /// Bytes of the database.
    pub size_bytes: Option<i64>,
    /// Bytes of the write-ahead log.
    pub wal_bytes: Option<i64>,
    /// Rows met since the start that could not be read. Lists show them as damaged.
    pub damaged_rows: i64,
}

/// Group commit since the server's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CommitStats {
    /// Transactions committed.
    pub commits: i64,
    /// Requests that they carried.
    pub requests: i64,
    /// Claims that wait for a job now.
    pub parked_claims: i64,
}

/// A service that runs by itself: retention, …
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServiceStats {
    /// Its name.
    pub name: String,
    /// Its last run.
    pub last_run_at: Option<Time>,
    /// What it has done since the server's start.
    pub report: Option<String>,
}

/// `GET /stats`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Stats {
    /// The server's clock.
    pub now: Time,
    /// When the server was started.
    pub started_at: Time,
    /// The server's version.
    pub version: String,
    /// Whether it is shutting down.
    pub draining: bool,
    /// All jobs.
    pub counts: Counts,
    /// Age of the oldest job that could be handed out; `null` if there is none.
    pub oldest_ready_age_seconds: Option<Seconds>,
    /// Time since a worker last asked for work; `null` if none ever did.
    pub last_claim_age_seconds: Option<Seconds>,
    /// Events.
    pub totals: Totals,
    /// Group commit.
    pub commits: CommitStats,
    /// The store.
    pub store: StoreStats,
    /// What runs by itself.
    pub services: Vec<ServiceStats>,
}

/// `GET /livez`: the process answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Livez {
    /// `alive`
    pub status: String,
}

/// One thing that readiness depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReadyzCheck {
    /// What was looked at: `store`, `committer`, `accepting`.
    pub name: String,
    /// Whether it is well.
    pub ok: bool,
    /// A sentence for people.
    pub detail: String,
}

/// `GET /readyz`: status 200 if work can be done, 503 if not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Readyz {
    /// `ready` or `not_ready`
    pub status: String,
    /// With `?verbose`: everything that was looked at; else `null`.
    pub checks: Option<Vec<ReadyzCheck>>,
}
