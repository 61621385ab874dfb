//! Closed lists of names on the wire. All of them are `snake_case`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An enum of this file, for code that reads any of them.
pub(crate) trait Named: Copy + 'static {
    /// Every name, in the order of the documentation.
    const NAMES: &'static [&'static str];

    /// The value with this name.
    fn named(name: &str) -> Option<Self>;
}

/// Declares an enum with its wire names, once, for serde, `OpenAPI`, the door and people.
macro_rules! wire_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $wire:tt,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $wire)] $variant,)+
        }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];
            /// Every name, in the same order.
            pub const NAMES: &'static [&'static str] = &[$($wire,)+];

            /// The name on the wire.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $wire,)+ }
            }

            /// The value with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($wire => Some(Self::$variant),)+ _ => None }
            }
        }

        impl Named for $name {
            const NAMES: &'static [&'static str] = Self::NAMES;

            fn named(name: &str) -> Option<Self> {
                Self::from_name(name)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

wire_enum! {
    /// Where a job stands. `failed` is the review queue; `completed` and `cancelled` are final.
    Status {
        /// Waits for a worker: new, scheduled, or to be run again.
        Pending = "pending",
        /// Held by one worker under a lease.
        Running = "running",
        /// Reported as done.
        Completed = "completed",
        /// In review until a person or an API call decides.
        Failed = "failed",
        /// Will not be run: cancelled, or discarded from review.
        Cancelled = "cancelled",
    }
}

wire_enum! {
    /// The named levels of priority; each stands for a number (0, 10, 20, 30).
    PriorityLabel {
        /// 0
        Low = "low",
        /// 10, the default
        Medium = "medium",
        /// 20
        High = "high",
        /// 30
        Critical = "critical",
    }
}

impl PriorityLabel {
    /// The number that this level stands for.
    #[must_use]
    pub const fn value(self) -> u8 {
        match self {
            Self::Low => 0,
            Self::Medium => 10,
            Self::High => 20,
            Self::Critical => 30,
        }
    }

    /// The highest level that is not above this number.
    #[must_use]
    pub const fn of(value: u8) -> Self {
        match value {
            0..10 => Self::Low,
            10..20 => Self::Medium,
            20..30 => Self::High,
            30.. => Self::Critical,
        }
    }
}

wire_enum! {
    /// What an unknown outcome (lease lost, time-out, `fail` with class `unknown`) leads to.
    OnUnknown {
        /// Run again, told to verify first (`verify: true`). The default.
        Verify = "verify",
        /// Straight to review.
        Review = "review",
    }
}

wire_enum! {
    /// How long an idempotency key holds.
    IdempotencyScope {
        /// While the job waits for its first start.
        Waiting = "waiting",
        /// While the job is pending or running.
        Unfinished = "unfinished",
        /// Until `idempotency_ttl_seconds` after the job's end. The default.
        Ttl = "ttl",
        /// For ever.
        Forever = "forever",
    }
}

wire_enum! {
    /// What an enqueue with a known key does.
    OnDuplicate {
        /// Answers with the existing job. The default.
        Existing = "existing",
        /// Rewrites payload, priority and time of a job that never started.
        Replace = "replace",
        /// Is refused with `duplicate`.
        Conflict = "conflict",
    }
}

wire_enum! {
    /// What happens when an enqueue with a known key differs from the first one.
    OnMismatch {
        /// The answer says `payload_differs: true`. The default for a key in the body.
        Flag = "flag",
        /// Refused with `idempotency-key-reused`. The default for a key in the header.
        Reject = "reject",
    }
}

wire_enum! {
    /// What a failure that goes to review means for the jobs behind it with the same ordering key.
    OnHeadFailure {
        /// They wait until it is retried, discarded or unblocked. The default.
        Block = "block",
        /// They go on without it.
        Skip = "skip",
    }
}

wire_enum! {
    /// What is known of an effect: to who begins it, what to do now.
    EffectState {
        /// Go ahead, with `key`.
        New = "new",
        /// An earlier attempt began it and never said what became of it: look it up by `key` first.
        InDoubt = "in_doubt",
        /// It happened; `result` is what came of it. Skip it.
        Done = "done",
        /// It certainly did not happen.
        Aborted = "aborted",
    }
}

wire_enum! {
    /// What a person has found out about the effects in doubt.
    Assume {
        /// They happened.
        Done = "done",
        /// They did not.
        NotDone = "not_done",
    }
}

wire_enum! {
    /// How a failure is to be understood.
    ErrorClass {
        /// It certainly did not happen and may succeed later without change. The default of `fail`.
        Transient = "transient",
        /// It certainly did not happen and will not without change.
        Permanent = "permanent",
        /// Nobody can tell whether it happened.
        Unknown = "unknown",
    }
}

wire_enum! {
    /// Why a job is in review.
    FailureReason {
        /// All retries are used up.
        RetriesExhausted = "retries_exhausted",
        /// The worker said that repeating is pointless.
        Permanent = "permanent",
        /// Nobody knows whether the work was done, and it may not be repeated blindly.
        OutcomeUnknown = "outcome_unknown",
        /// Too many leases were lost: it probably kills its workers.
        WorkerLost = "worker_lost",
        /// It reached its maximum age before it could run (again).
        Expired = "expired",
        /// An operator ended the running attempt.
        Forced = "forced",
    }
}

wire_enum! {
    /// What brought a job into review.
    FailureCause {
        /// The worker's own report.
        Reported = "reported",
        /// The lease ran out without a report.
        LeaseExpired = "lease_expired",
        /// The time limit of the attempt was reached.
        TimedOut = "timed_out",
        /// The maximum age was reached while the job was pending.
        MaxAge = "max_age",
        /// An operator.
        Operator = "operator",
    }
}

wire_enum! {
    /// How chance spreads a back-off of length d.
    Jitter {
        /// Exactly d.
        None = "none",
        /// Uniform in [d/2, d]. The default.
        Equal = "equal",
        /// Uniform in [0, d].
        Full = "full",
    }
}

wire_enum! {
    /// What one entry of a bulk report says.
    ReportOutcome {
        /// As `complete`.
        Completed = "completed",
        /// As `fail`.
        Failed = "failed",
        /// As `release`.
        Released = "released",
        /// As `heartbeat`.
        Heartbeat = "heartbeat",
    }
}

wire_enum! {
    /// How an attempt ended.
    AttemptOutcome {
        /// The worker reported it done.
        Completed = "completed",
        /// The worker reported a failure.
        Failed = "failed",
        /// The worker gave it back, or the server did because its answer could not be delivered.
        Released = "released",
        /// The lease ran out without a report.
        LeaseExpired = "lease_expired",
        /// The time limit was reached without a report.
        TimedOut = "timed_out",
        /// The job was cancelled while it ran.
        Cancelled = "cancelled",
        /// An operator ended it.
        Forced = "forced",
    }
}

wire_enum! {
    /// What an operator or a producer did to a job, as its history keeps it.
    OperatorAction {
        /// `cancel`
        Cancel = "cancel",
        /// `retry`
        Retry = "retry",
        /// `discard`
        Discard = "discard",
        /// `force-fail`
        ForceFail = "force_fail",
        /// `unblock`
        Unblock = "unblock",
        /// An enqueue with `on_duplicate: replace`.
        Replace = "replace",
    }
}

wire_enum! {
    /// Why a job stands where it stands. The list is closed; it grows with features.
    ExplainKind {
        /// It could be handed out at this moment; the detail tells its position.
        Ready = "ready",
        /// Its first start lies in the future (`delay_seconds`, `run_at`).
        Scheduled = "scheduled",
        /// It waits for its back-off after an attempt that failed or was lost.
        Backoff = "backoff",
        /// A worker gave it back with a delay.
        Released = "released",
        /// A worker holds it.
        Running = "running",
        /// The attempt is over (lease end or time limit); the row will be rewritten within a second.
        AttemptOver = "attempt_over",
        /// It will be cancelled at the holder's next call or at the end of its lease.
        CancelRequested = "cancel_requested",
        /// Its maximum age is reached; it goes to review within a second.
        Expired = "expired",
        /// A limit of it is full: as many jobs run under it as may.
        LimitFull = "limit_full",
        /// The rate of a limit of it is used up for now.
        RateExhausted = "rate_exhausted",
        /// A limit of it was closed by a worker for a while.
        Throttled = "throttled",
        /// No worker that would take it has asked lately.
        NoWorker = "no_worker",
        /// An operator has paused its queue.
        QueuePaused = "queue_paused",
        /// As many jobs run in its queue as may, or what is left is kept for more urgent ones.
        QueueFull = "queue_full",
        /// The server is shutting down and hands out nothing.
        Draining = "draining",
        /// Another job with its ordering key comes first; the detail names it.
        BlockedByKey = "blocked_by_key",
        /// It failed and waits for a person or an API call.
        InReview = "in_review",
        /// It is done.
        Completed = "completed",
        /// It will not be run.
        Cancelled = "cancelled",
        /// A job with a newer version of the same subject has made it out of date.
        Superseded = "superseded",
    }
}

wire_enum! {
    /// Why a limit lets nothing through.
    LimitClosed {
        /// As many jobs run under it as may.
        Full = "limit_full",
        /// As many have started within its period as may.
        RateExhausted = "rate_exhausted",
        /// A worker has closed it for a while.
        Throttled = "throttled",
    }
}

wire_enum! {
    /// Which lines of a streamed enqueue are answered one by one.
    StreamResults {
        /// Those that were refused, the first 1,000 of them. The default. The answer comes when all has been read.
        Refused = "refused",
        /// Every line, as soon as it is stored. The client must read while it writes.
        All = "all",
    }
}

wire_enum! {
    /// What an alert is about.
    AlertKind {
        /// A job of the queue could be handed out and has been waiting for long.
        OldestReadyAge = "oldest_ready_age",
        /// Jobs of the queue are ready or soon due, and no worker has asked for them lately, or ever.
        NoWorker = "no_worker",
        /// Attempts of the type end, but none has been completed for long.
        NoSuccess = "no_success",
        /// Many attempts of the type fail.
        FailureRate = "failure_rate",
        /// Many attempts of the type are repeated.
        RetryRate = "retry_rate",
        /// Jobs of the type have come into review.
        ReviewNew = "review_new",
        /// A job of the type has been in review for long.
        ReviewAge = "review_age",
        /// Attempts of the type take long.
        RunTimeP95 = "run_time_p95",
        /// The store cannot be written, or its log grows.
        Store = "store",
        /// Workers give back jobs of the type again and again.
        ReleaseLoop = "release_loop",
    }
}

wire_enum! {
    /// What an alert watches.
    AlertScope {
        /// The server and its store.
        Server = "server",
        /// A queue.
        Queue = "queue",
        /// A type.
        Type = "type",
    }
}

wire_enum! {
    /// Whether what an alert is about is still so.
    AlertStatus {
        /// It is.
        Open = "open",
        /// It has ended.
        Closed = "closed",
    }
}

wire_enum! {
    /// What the figure of an alert counts.
    AlertUnit {
        /// Seconds.
        Seconds = "seconds",
        /// A part of all, 0 to 1.
        Share = "share",
        /// Jobs or attempts.
        Count = "count",
        /// Bytes.
        Bytes = "bytes",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serde_uses_the_wire_names() {
        for (status, name) in Status::ALL.iter().zip(Status::NAMES) {
            assert_eq!(serde_json::to_string(status).unwrap(), format!("\"{name}\""));
            assert_eq!(serde_json::from_str::<Status>(&format!("\"{name}\"")).unwrap(), *status);
            assert_eq!(Status::from_name(name), Some(*status));
        }
        assert_eq!(Status::from_name("Pending"), None);
    }

    #[test]
    fn labels_are_the_highest_level_not_above_the_number() {
        let labels: Vec<_> = [0, 9, 10, 19, 20, 29, 30, 100]
            .into_iter()
            .map(|value| PriorityLabel::of(value).name())
            .collect();
        assert_eq!(labels, ["low", "low", "medium", "medium", "high", "high", "critical", "critical"]);
        for label in PriorityLabel::ALL {
            assert_eq!(PriorityLabel::of(label.value()), *label);
        }
    }
}
