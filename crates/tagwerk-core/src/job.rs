//! The job as the rules see it: the state that transitions read and write.
//!
//! What no rule looks at (type, queue, payload, subject …) is not here; the engine keeps it beside this.

use crate::names::names;
use crate::{Effect, Lease, Timestamp};

/// Identity of a job: a positive integer below 2^53, so that every JSON reader holds it exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub i64);

impl std::fmt::Display for JobId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a job stands. `Failed` is the review queue; `Completed` and `Cancelled` are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Waits for a worker: new, scheduled, or to be run again.
    Pending,
    /// Held by one worker under a lease.
    Running,
    /// Reported as done. Reached only by an explicit report.
    Completed,
    /// In review until a person or an API call decides.
    Failed,
    /// Will not be run: cancelled, or discarded from review.
    Cancelled,
}

impl Status {
    /// Every status, in the order in which a job usually meets them.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Running, Self::Completed, Self::Failed, Self::Cancelled];

    /// The name used on the wire and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether the job has come to rest: completed, failed (in review) or cancelled.
    #[must_use]
    pub const fn is_settled(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// What an unknown outcome (lease lost, time-out, `fail` with class `unknown`) leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnUnknown {
    /// Run again, told to verify first (`verify: true`).
    #[default]
    Verify,
    /// Straight to review.
    Review,
}

names!(OnUnknown { Verify => "verify", Review => "review" });

/// How the failure that brought a job to review is to be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureClass {
    /// May succeed later without change.
    Transient,
    /// Will not succeed without change.
    Permanent,
    /// Nobody knows whether the work was done.
    Unknown,
}

names!(FailureClass { Transient => "transient", Permanent => "permanent", Unknown => "unknown" });

/// Why a job is in review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// All retries are used up.
    RetriesExhausted,
    /// The worker said that repeating is pointless.
    Permanent,
    /// Nobody knows whether the work was done, and it may not be repeated blindly.
    OutcomeUnknown,
    /// Too many leases were lost: it probably kills its workers.
    WorkerLost,
    /// It reached its maximum age before it could run (again).
    Expired,
    /// An operator ended the running attempt.
    Forced,
}

names!(Reason {
    RetriesExhausted => "retries_exhausted",
    Permanent => "permanent",
    OutcomeUnknown => "outcome_unknown",
    WorkerLost => "worker_lost",
    Expired => "expired",
    Forced => "forced",
});

/// What ended the last attempt or the waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The worker's own report.
    Reported,
    /// The lease ran out without a report.
    LeaseExpired,
    /// The time limit of the attempt was reached.
    TimedOut,
    /// The maximum age was reached while the job was pending.
    MaxAge,
    /// An operator.
    Operator,
}

names!(Cause {
    Reported => "reported",
    LeaseExpired => "lease_expired",
    TimedOut => "timed_out",
    MaxAge => "max_age",
    Operator => "operator",
});

/// Why a failed job failed; present exactly while the job is in review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// How to understand it.
    pub class: FailureClass,
    /// Why it is in review.
    pub reason: Reason,
    /// What brought it there.
    pub cause: Cause,
}

/// The part of a job that transitions read and write.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own; they do not make up one state")]
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Identity.
    pub id: JobId,
    /// Where it stands.
    pub status: Status,
    /// Rises by one with every change of state or by an operator, never with heartbeats and checkpoints.
    pub version: i64,
    /// Number of the current or last attempt; 0 before the first. A release gives the number back.
    pub attempt: u32,
    /// Leases ever granted: the sequence number of the newest one in the history. Never goes back.
    pub leases: u32,
    /// Whether it was ever handed out. Stays true after a release; idempotency scopes look at it.
    pub started: bool,
    /// Retries used since the enqueue or the last retry from review.
    pub retry_count: u32,
    /// Retries allowed.
    pub max_retries: u32,
    /// Leases lost since the enqueue or the last retry from review.
    pub lease_losses: u32,
    /// The loss that ends it: 0 and 1 both mean that it is never requeued after a loss.
    pub max_lease_losses: u32,
    /// How often a worker gave it back.
    pub release_count: u32,
    /// Not handed out before.
    pub available_at: Timestamp,
    /// Maximum age: from this instant a pending job is expired.
    pub expires_at: Option<Timestamp>,
    /// The maximum age as a length in milliseconds, when it was given as one; a retry from review counts it anew.
    pub max_age_ms: Option<i64>,
    /// What an unknown outcome leads to.
    pub on_unknown: OnUnknown,
    /// An earlier attempt ended and nobody knows whether its effect happened.
    pub verify: bool,
    /// Whoever was given the newest lease, or the type of the job, deals with what an earlier attempt may have done.
    pub handles_verify: bool,
    /// `cancel {wait: true}` was called: the attempt that runs is the last thing that happens.
    pub cancel_requested: bool,
    /// The job that made it out of date: it carries a higher version of the same object. Never runs again by itself.
    pub superseded_by: Option<JobId>,
    /// A person has acted on the job since the newest lease was granted, so that lease no longer counts as late.
    pub acted: bool,
    /// The newest lease ended without a report of its own.
    pub newest_lost: bool,
    /// A lease before the newest one ended without a report of its own, so a report without token could be its.
    pub earlier_lost: bool,
    /// Why it is in review; `Some` exactly while `status` is `Failed`.
    pub failure: Option<Failure>,
    /// Last error text; kept through a requeue and after completion.
    pub error: Option<String>,
    /// The effect journal, in the order in which effects were first begun. Mostly empty.
    pub effects: Vec<Effect>,
    /// Who holds it; `Some` exactly while `status` is `Running`.
    pub lease: Option<Lease>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// Last change of state or by an operator.
    pub updated_at: Timestamp,
    /// When it was completed, failed or cancelled; `None` while pending or running.
    pub finished_at: Option<Timestamp>,
}

/// What the rules need to know of a job that is about to be accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    /// Identity given by the store.
    pub id: JobId,
    /// Retries allowed.
    pub max_retries: u32,
    /// Lease losses that end it.
    pub max_lease_losses: u32,
    /// Not handed out before.
    pub available_at: Timestamp,
    /// Maximum age as an instant.
    pub expires_at: Option<Timestamp>,
    /// Maximum age as a length, if it was given as one.
    pub max_age_ms: Option<i64>,
    /// What an unknown outcome leads to.
    pub on_unknown: OnUnknown,
    /// The time of acceptance.
    pub now: Timestamp,
}

impl Job {
    /// A job as it stands right after it was accepted: pending, version 1, no attempt.
    #[must_use]
    pub fn accepted(new: &NewJob) -> Self {
        Self {
            id: new.id,
            status: Status::Pending,
            version: 1,
            attempt: 0,
            leases: 0,
            started: false,
            retry_count: 0,
            max_retries: new.max_retries,
            lease_losses: 0,
            max_lease_losses: new.max_lease_losses,
            release_count: 0,
            available_at: new.available_at,
            expires_at: new.expires_at,
            max_age_ms: new.max_age_ms,
            on_unknown: new.on_unknown,
            verify: false,
            handles_verify: false,
            cancel_requested: false,
            superseded_by: None,
            acted: false,
            newest_lost: false,
            earlier_lost: false,
            failure: None,
            error: None,
            effects: Vec::new(),
            lease: None,
            created_at: new.now,
            updated_at: new.now,
            finished_at: None,
        }
    }

    /// Runs that may still begin: after the running one, or from now on if it is pending. 0 when it has come to rest.
    #[must_use]
    pub const fn attempts_left(&self) -> u32 {
        let retries_left = self.max_retries.saturating_sub(self.retry_count);
        match self.status {
            Status::Pending => retries_left.saturating_add(1),
            Status::Running => retries_left,
            Status::Completed | Status::Failed | Status::Cancelled => 0,
        }
    }

    /// Whether any failure or loss of the current attempt must end in review.
    #[must_use]
    pub const fn is_last_attempt(&self) -> bool {
        self.retry_count >= self.max_retries
    }
}
