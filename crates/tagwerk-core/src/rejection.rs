//! Why a call about a job was refused. Each is a stable problem code on the wire.

use std::sync::Arc;

use crate::{AttemptEnd, JobId, Status, limits};

/// The call that was refused, for the history and the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// `claim`.
    Claim,
    /// `heartbeat`.
    Heartbeat,
    /// `checkpoint`.
    Checkpoint,
    /// `complete`.
    Complete,
    /// `fail`.
    Fail,
    /// `release`.
    Release,
    /// `cancel`.
    Cancel,
    /// `retry`.
    Retry,
    /// `discard`.
    Discard,
    /// `force-fail`.
    ForceFail,
    /// `DELETE`.
    Delete,
    /// `on_duplicate: replace`.
    Replace,
    /// The end of an attempt, or of the waiting.
    Time,
    /// A newer version of the job's object.
    Supersede,
    /// `unblock`.
    Unblock,
    /// `effects/{name}/begin`.
    EffectBegin,
    /// `effects/{name}/finish`.
    EffectFinish,
    /// `effects/{name}/abort`.
    EffectAbort,
}

/// A refused call. Nothing has changed, unless it came in [`crate::Answer::Refused`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The lease of this token is over.
    #[error("the lease of this token is over{}", if *may_report { "; finish and report, begin nothing new" } else { "; stop, another attempt or a person decides now" })]
    LeaseLost {
        /// The caller may still report its outcome (late).
        may_report: bool,
    },
    /// The time limit of the attempt is over.
    #[error("the time limit of this attempt is over{}", if *may_report { "; finish and report, begin nothing new" } else { "; stop" })]
    TimedOut {
        /// The caller may still report its outcome (late).
        may_report: bool,
    },
    /// The job was cancelled; stop.
    #[error("the job was cancelled; stop and drop its work")]
    Cancelled,
    /// A newer version of the same object has made the job out of date.
    #[error("job {by} carries a newer version of the same object; {}", if *may_force { "retry with force if this one must run all the same" } else { "stop and drop the work" })]
    Superseded {
        /// The job with the newer version.
        by: JobId,
        /// It is in review, and a person may run it all the same.
        may_force: bool,
    },
    /// The job is not running.
    #[error("the job is {}, not running; claim it first", .status.name())]
    NotRunning {
        /// Where it stands.
        status: Status,
    },
    /// The attempt was already reported, with other content.
    #[error("this attempt was already reported as {}; that report counts", .counted.name())]
    AlreadyReported {
        /// The outcome that counted.
        counted: AttemptEnd,
    },
    /// A report without token could be somebody else's.
    #[error("send the lease token of the claim: without it this report could be another attempt's")]
    LeaseRequired,
    /// Something was begun, and it is not said what became of it.
    #[error("nobody has said yet what became of {}; finish or abort first", .names.join(", "))]
    EffectsOpen {
        /// The open effects.
        names: Vec<Arc<str>>,
    },
    /// The job has no effect of this name.
    #[error("no effect of this name was begun")]
    EffectNotBegun,
    /// The effect is done, with another result, or cannot be undone by words.
    #[error("the effect was finished before; what was stored then stands")]
    EffectFinished,
    /// The journal of the job is full.
    #[error(
        "the job has {} effects; use fewer names, or let the work of each be a job of its own",
        limits::EFFECTS_PER_JOB
    )]
    TooManyEffects,
    /// Only a job in review can be retried or discarded.
    #[error("the job is {}, not in review", .status.name())]
    NotFailed {
        /// Where it stands.
        status: Status,
    },
    /// A job in review is discarded, not cancelled.
    #[error("the job is in review; use discard")]
    UseDiscard,
    /// A job that has not ended is cancelled, not discarded.
    #[error("the job is {}; use cancel", .status.name())]
    UseCancel {
        /// Where it stands.
        status: Status,
    },
    /// The job is completed and can no longer be cancelled.
    #[error("the job is completed and can no longer be cancelled")]
    AlreadyCompleted,
    /// The job changed since the operator looked.
    #[error("the job changed: it has version {current}, not {seen}; look again and repeat")]
    VersionChanged {
        /// The version that the operator saw.
        seen: i64,
        /// The version that it has.
        current: i64,
    },
    /// It was handed out before, so it can no longer be replaced.
    #[error("the job has already been started and is left as it is")]
    AlreadyStarted,
    /// Not claimable now: not pending, not due, or expired. The engine skips it.
    #[error("the job is not claimable now")]
    NotClaimable,
    /// An internal caller asked for something that makes no sense here. A bug in the engine.
    #[error("event {call:?} does not apply to job {id} in status {}", .status.name())]
    DoesNotApply {
        /// The job.
        id: JobId,
        /// Where it stands.
        status: Status,
        /// What was asked.
        call: Call,
    },
}
