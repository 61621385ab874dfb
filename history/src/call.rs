//! What a client writes down: one call, what it asked, what it was told.
//!
//! A call that concerns several jobs (a bulk call, a claim that got several) is written as several entries with the same
//! times, one for each job. Times are nanoseconds of one clock that only goes forward and that all clients share; what ends
//! in `_ms` is what the server said of its own clock.

use serde::{Deserialize, Serialize};

/// One call, as far as it concerns one job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Who called.
    pub client: u32,
    /// Before anything was sent.
    pub start_ns: u64,
    /// After the answer was read, or the hope for one was given up.
    pub end_ns: u64,
    /// What was asked.
    pub asked: Asked,
    /// What was told.
    pub told: Told,
}

/// An idempotency key and how long it holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The key.
    pub name: String,
    /// How long it holds.
    pub scope: Scope,
    /// For [`Scope::Ttl`]: milliseconds after the job's end.
    pub ttl_ms: i64,
}

/// How long a key holds: section "Idempotency" of the semantics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// While the job waits for its first start.
    Waiting,
    /// While it is pending or running.
    Unfinished,
    /// Until some time after its end.
    Ttl,
    /// For ever.
    Forever,
}

/// What a call asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// A new job.
    Enqueue {
        /// A text that this call alone gives to its job (`correlation_id`), so that the job of a call without an answer is
        /// known when it turns up.
        mark: Option<String>,
        /// Its key.
        key: Option<Key>,
    },
    /// Any job.
    Claim {
        /// Who.
        worker: String,
        /// `request_id`
        request: Option<String>,
        /// Length of the lease that was asked for.
        lease_ms: Option<i64>,
    },
    /// The end of an attempt.
    Report {
        /// The job.
        job: i64,
        /// Who says so.
        by: By,
        /// What.
        said: Said,
    },
    /// The attempt goes on.
    Heartbeat {
        /// The job.
        job: i64,
        /// Who says so.
        by: By,
    },
    /// A cursor to keep.
    Checkpoint {
        /// The job.
        job: i64,
        /// Who says so.
        by: By,
        /// As JSON.
        value: String,
    },
    /// What people do.
    Operate {
        /// The job.
        job: i64,
        /// What.
        action: Action,
        /// The version that was seen.
        seen_version: Option<i64>,
    },
    /// `GET /jobs/{id}`, or the job in a list.
    Get {
        /// The job.
        job: i64,
    },
    /// `GET /jobs/{id}/attempts`, all of them.
    Attempts {
        /// The job.
        job: i64,
    },
}

/// Who makes a call about an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct By {
    /// The token of the lease, or any text that stands for it alone.
    pub lease: Option<String>,
    /// `worker_id` in the body.
    pub worker: Option<String>,
}

/// What a report says. Two reports with equal content are repetitions of each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// Done.
    Completed {
        /// The result as JSON.
        result: Option<String>,
    },
    /// Not done.
    Failed {
        /// `transient`, `permanent` or `unknown`.
        class: Class,
    },
    /// Given back.
    Released,
}

/// Class of a reported failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// It may succeed later.
    Transient,
    /// It will not.
    Permanent,
    /// Nobody knows whether it happened.
    Unknown,
}

/// What people do to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// `cancel`
    Cancel {
        /// Let the attempt that runs come to its holder's next call.
        wait: bool,
    },
    /// `retry`
    Retry {
        /// A new number of retries.
        max_retries: Option<u32>,
    },
    /// `discard`
    Discard,
    /// `force-fail`
    ForceFail,
    /// `DELETE`
    Delete,
}

/// What a client was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// Nothing: the connection broke, or the server said that it does not know. It was done wholly or not at all.
    Nothing,
    /// It was done (201 for an enqueue), and the job is this.
    Job(View),
    /// It was done and the job is handed out under this lease.
    Lease {
        /// The job.
        view: View,
        /// The token, or any text that stands for it alone.
        lease: String,
        /// The claim had been answered before.
        again: bool,
    },
    /// It had been done before (a known key, a repeated report), nothing changed, and the job is this.
    Again(View),
    /// The key's job is gone, this is left of it.
    Tombstone {
        /// The job.
        job: i64,
        /// How it ended.
        status: Status,
    },
    /// It was done, and there is no job to show.
    Done {
        /// A heartbeat: until when the lease holds.
        until_ms: Option<i64>,
    },
    /// The history.
    Attempts(Vec<Attempt>),
    /// It was refused.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The problem's code.
        code: String,
        /// To a worker: whether a report may still count.
        may_report: Option<bool>,
    },
}

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It waits.
    Pending,
    /// Somebody has it.
    Running,
    /// Done.
    Completed,
    /// In review.
    Failed,
    /// Never to run again.
    Cancelled,
}

/// A job as an answer shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The job.
    pub id: i64,
    /// Where it stands.
    pub status: Status,
    /// Its version.
    pub version: i64,
    /// Number of the attempt.
    pub attempt: u32,
    /// Retries used.
    pub retry_count: u32,
    /// Retries allowed.
    pub max_retries: u32,
    /// Leases lost.
    pub lease_losses: u32,
    /// The loss that ends it.
    pub max_lease_losses: u32,
    /// How often it was given back.
    pub release_count: u32,
    /// The next attempt has to look first.
    pub verify: bool,
    /// It is to be cancelled at its holder's next call.
    pub cancel_requested: bool,
    /// `on_unknown: review`
    pub review_unknown: bool,
    /// Not handed out before.
    pub due_ms: i64,
    /// Not handed out from then on.
    pub expires_ms: Option<i64>,
    /// The maximum age, if it is a length of time.
    pub max_age_ms: Option<i64>,
    /// The hard limit of an attempt.
    pub timeout_ms: Option<i64>,
    /// Who holds it.
    pub worker: Option<String>,
    /// Since when.
    pub claimed_ms: Option<i64>,
    /// Until when.
    pub until_ms: Option<i64>,
    /// Why it is in review: `retries_exhausted`.
    pub reason: Option<String>,
    /// Its mark.
    pub mark: Option<String>,
    /// Its key.
    pub key: Option<String>,
    /// Jobs with the same one run one after the other, by id.
    #[serde(default)]
    pub ordering_key: Option<String>,
    /// What its failure means for those behind it, if it says so: `skip` lets them go on.
    #[serde(default)]
    pub on_head_failure: Option<String>,
    /// Limits that it keeps to, as it names them.
    #[serde(default)]
    pub limits: Vec<String>,
    /// What only whole answers show; `None` in lists.
    pub whole: Option<Whole>,
}

/// What only whole answers show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whole {
    /// The result as JSON.
    pub result: Option<String>,
    /// The checkpoint as JSON.
    pub checkpoint: Option<String>,
}

/// An attempt as the history shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Who.
    pub worker: String,
    /// Since when.
    pub claimed_ms: i64,
    /// How it ended; `None` while it runs.
    pub outcome: Option<String>,
    /// The class of a failure.
    pub class: Option<Class>,
}

impl Asked {
    /// The job that it names.
    #[must_use]
    pub const fn job(&self) -> Option<i64> {
        match self {
            Self::Enqueue { .. } | Self::Claim { .. } => None,
            Self::Report { job, .. }
            | Self::Heartbeat { job, .. }
            | Self::Checkpoint { job, .. }
            | Self::Operate { job, .. }
            | Self::Get { job }
            | Self::Attempts { job } => Some(*job),
        }
    }

    /// Whether it can change anything.
    #[must_use]
    pub const fn changes(&self) -> bool {
        !matches!(self, Self::Get { .. } | Self::Attempts { .. })
    }
}

impl Told {
    /// The job that it shows.
    #[must_use]
    pub const fn view(&self) -> Option<&View> {
        match self {
            Self::Job(view) | Self::Again(view) | Self::Lease { view, .. } => Some(view),
            _ => None,
        }
    }
}

impl Call {
    /// The job that it is about, as far as its caller can tell.
    #[must_use]
    pub fn job(&self) -> Option<i64> {
        match &self.told {
            Told::Tombstone { job, .. } => Some(*job),
            told => told.view().map(|view| view.id).or_else(|| self.asked.job()),
        }
    }
}
