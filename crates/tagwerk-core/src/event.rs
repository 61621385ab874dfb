//! What can happen to a job.

use std::sync::Arc;

use crate::{Assumed, Attempt, Call, EffectCall, ErrorClass, JobId, LeaseBits, RetryPolicy, Timestamp};

/// Everything a decision depends on besides the job and the event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ctx {
    /// The one clock's time.
    pub now: Timestamp,
    /// 64 random bits for jitter.
    pub random: u64,
    /// The back-off policy that applies to this job.
    pub retry: RetryPolicy,
    /// Whether reports without a lease token are refused.
    pub require_lease: bool,
}

/// A lease about to be granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Fresh random bits.
    pub bits: LeaseBits,
    /// Who claims.
    pub worker: String,
    /// Length of the lease in milliseconds.
    pub lease_ms: i64,
    /// Hard limit of the attempt in milliseconds.
    pub timeout_ms: Option<i64>,
    /// The worker, or the type of the job, deals with what an earlier attempt may have done.
    pub handles_verify: bool,
    /// The claim's `request_id`.
    pub request_id: Option<String>,
}

/// Who makes a call about an attempt, as far as the token tells. The engine resolves tokens to this.
#[derive(Clone, Debug, PartialEq)]
pub enum Caller {
    /// The token of the live lease with these bits.
    Live(LeaseBits),
    /// The token of a lease that has ended and is in the history.
    Past(Box<Attempt>),
    /// A token that belongs to no attempt in the job's history.
    Stranger,
    /// No token. `newest` is the newest ended attempt, given when the job is not running.
    NoToken {
        /// The `worker_id` in the body, if any.
        worker: Option<String>,
        /// The newest attempt that has ended.
        newest: Option<Box<Attempt>>,
    },
}

/// Hash over what a report says (outcome, class, result, follow-ups), made by the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportHash(pub [u8; 16]);

/// What a worker reports.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Done.
    Completed,
    /// Not done, or unknown.
    Failed {
        /// How to understand it.
        class: ErrorClass,
        /// Error text, already cleaned, redacted and cut.
        error: Option<String>,
        /// Lower edge for the back-off in milliseconds.
        retry_after_ms: Option<i64>,
    },
    /// Given back unused.
    Released {
        /// Not handed out again before this many milliseconds have passed.
        delay_ms: i64,
        /// Why, already cleaned, redacted and cut. Kept with the attempt; the job's error stays as it was.
        reason: Option<String>,
    },
}

/// A report with its hash.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What is reported.
    pub outcome: Outcome,
    /// Its hash, to tell a repetition from a contradiction.
    pub hash: ReportHash,
}

/// What an operator does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Do not run it. With `wait` a running attempt is allowed to reach its next call.
    Cancel {
        /// Leave a running attempt its slot until its next call or its lease end.
        wait: bool,
    },
    /// Run it again from review.
    Retry {
        /// New number of retries allowed.
        max_retries: Option<u32>,
    },
    /// Run it again from review although a newer version has superseded it; it counts as not superseded from then on.
    ForceRetry {
        /// New number of retries allowed.
        max_retries: Option<u32>,
    },
    /// Take it out of review for good.
    Discard,
    /// End the running attempt and put the job into review.
    ForceFail {
        /// Becomes the job's error text.
        error: String,
    },
    /// Cancel it if it has not ended; the engine then erases it.
    Delete,
    /// `on_duplicate: replace`: give a job that never started a new due time.
    Replace {
        /// The new due time.
        available_at: Timestamp,
    },
    /// Let those behind a job in review go on without it. It stays in review.
    Unblock,
}

/// Something that happens to a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A worker claims it.
    Claim(Grant),
    /// The holder asks for more time.
    Heartbeat(Caller),
    /// The holder stores a checkpoint.
    Checkpoint(Caller),
    /// A worker says something about the effect with this name.
    Effect(Caller, Arc<str>, EffectCall),
    /// The holder reports.
    Report(Caller, Report),
    /// The live lease with these bits is given back by the server, since nobody has heard of it.
    Unheard(LeaseBits, Report),
    /// The live lease or the time limit of the attempt has ended (see [`crate::overdue`]).
    AttemptOver,
    /// The maximum age has been reached while pending.
    Expire,
    /// A job with a higher version of the same object was accepted, or had been before this one was.
    Supersede {
        /// That job.
        by: JobId,
    },
    /// A person has looked up the effects in doubt. Comes with a retry out of review.
    Assume(Assumed),
    /// An operator acts, optionally only if the job still has the version that was seen.
    Operate {
        /// What is done.
        action: Action,
        /// The version that the operator saw.
        seen_version: Option<i64>,
    },
}

impl Report {
    /// The call by which this is reported.
    #[must_use]
    pub const fn call(&self) -> Call {
        match self.outcome {
            Outcome::Completed => Call::Complete,
            Outcome::Failed { .. } => Call::Fail,
            Outcome::Released { .. } => Call::Release,
        }
    }
}

impl Action {
    /// The call by which this is done.
    #[must_use]
    pub const fn call(&self) -> Call {
        match self {
            Self::Cancel { .. } => Call::Cancel,
            Self::Retry { .. } | Self::ForceRetry { .. } => Call::Retry,
            Self::Discard => Call::Discard,
            Self::ForceFail { .. } => Call::ForceFail,
            Self::Delete => Call::Delete,
            Self::Replace { .. } => Call::Replace,
            Self::Unblock => Call::Unblock,
        }
    }
}

impl Event {
    /// The call that makes this event.
    #[must_use]
    pub const fn call(&self) -> Call {
        match self {
            Self::Claim(_) => Call::Claim,
            Self::Heartbeat(_) => Call::Heartbeat,
            Self::Checkpoint(_) => Call::Checkpoint,
            Self::Effect(_, _, EffectCall::Begin { .. }) => Call::EffectBegin,
            Self::Effect(_, _, EffectCall::Finish { .. }) => Call::EffectFinish,
            Self::Effect(_, _, EffectCall::Abort) => Call::EffectAbort,
            Self::Report(_, report) | Self::Unheard(_, report) => report.call(),
            Self::Assume(_) => Call::Retry,
            Self::AttemptOver | Self::Expire => Call::Time,
            Self::Supersede { .. } => Call::Supersede,
            Self::Operate { action, .. } => action.call(),
        }
    }
}
