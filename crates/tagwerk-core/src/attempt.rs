//! Attempts: one run of a job by one worker under one lease, and what is kept of it.

use crate::{ReportHash, Timestamp};

/// The 64 random bits of a lease. What the worker gets is a keyed hash of these and the job's id, never the bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseBits(pub u64);

impl std::fmt::Debug for LeaseBits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LeaseBits(…)")
    }
}

/// The live lease of a running job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Random bits that fence this lease against every other.
    pub bits: LeaseBits,
    /// Who holds it, as the worker calls itself.
    pub worker: String,
    /// When it was granted.
    pub claimed_at: Timestamp,
    /// When it ends unless a heartbeat extends it. Never after the time limit.
    pub expires_at: Timestamp,
    /// When the attempt ends, heartbeats or not.
    pub time_limit_at: Option<Timestamp>,
    /// Length of the lease in milliseconds, fixed at the claim; a heartbeat extends by this from now.
    pub lease_ms: i64,
    /// The claim's `request_id`, by which a repeated claim finds its leases again.
    pub request_id: Option<String>,
}

impl Lease {
    /// The instant from which the attempt is over for every rule: lease end or time limit, whichever comes first.
    #[must_use]
    pub fn ends_at(&self) -> Timestamp {
        self.time_limit_at.map_or(self.expires_at, |limit| limit.min(self.expires_at))
    }

    /// Whether the end at [`Lease::ends_at`] is a time-out. If lease end and time limit fall together, it is one.
    #[must_use]
    pub fn ends_by_time_limit(&self) -> bool {
        self.time_limit_at.is_some_and(|limit| limit <= self.expires_at)
    }
}

/// Class of a reported failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ErrorClass {
    /// It certainly did not happen and may succeed later without change.
    #[default]
    Transient,
    /// It certainly did not happen and will not without change.
    Permanent,
    /// The worker cannot tell whether it happened.
    Unknown,
}

impl ErrorClass {
    /// Every class.
    pub const ALL: [Self; 3] = [Self::Transient, Self::Permanent, Self::Unknown];

    /// The name used on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Permanent => "permanent",
            Self::Unknown => "unknown",
        }
    }

    /// The class with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// The worker reported it done.
    Completed,
    /// The worker reported a failure.
    Failed(ErrorClass),
    /// The worker (or the server, when the answer could not be delivered) gave it back.
    Released,
    /// The lease ran out without a report.
    LeaseExpired,
    /// The time limit was reached without a report.
    TimedOut,
    /// The job was cancelled while it ran.
    Cancelled,
    /// An operator ended it.
    Forced,
}

impl AttemptEnd {
    /// Whether the worker's own report (or release) ended it.
    #[must_use]
    pub const fn is_reported(self) -> bool {
        matches!(self, Self::Completed | Self::Failed(_) | Self::Released)
    }

    /// The name used on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed(_) => "failed",
            Self::Released => "released",
            Self::LeaseExpired => "lease_expired",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Forced => "forced",
        }
    }
}

/// What a loss overwrote, so that a late report can take the place of the loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Before {
    /// `retry_count` before the loss.
    pub retry_count: u32,
    /// `lease_losses` before the loss.
    pub lease_losses: u32,
    /// `verify` before the loss.
    pub verify: bool,
    /// `error` before the loss.
    pub error: Option<String>,
}

/// An attempt that has ended, as the history keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Sequence number of its lease among all leases of the job, from 1. Never reused.
    pub seq: u32,
    /// The attempt number that the worker was told. Released attempts share theirs with the next.
    pub number: u32,
    /// The bits of its lease.
    pub bits: LeaseBits,
    /// Who ran it.
    pub worker: String,
    /// When the lease was granted.
    pub claimed_at: Timestamp,
    /// When the lease ended or would have ended.
    pub lease_expires_at: Timestamp,
    /// When the attempt ended.
    pub ended_at: Timestamp,
    /// How it ended.
    pub end: AttemptEnd,
    /// Its error text: the worker's, or ours for a loss. For a release: its reason.
    pub error: Option<String>,
    /// The report came after the lease had ended and took the place of the loss.
    pub late: bool,
    /// Hash of the report that ended it, to tell a repetition from a contradiction. `None` for losses.
    pub report: Option<ReportHash>,
    /// For losses: what to go back to when a late report takes its place.
    pub before: Option<Before>,
}
