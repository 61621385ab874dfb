//! Enumerations as small integers. A number, once given, keeps its meaning for ever.

use tagwerk_core::idempotency::{OnDuplicate, OnMismatch, Scope};
use tagwerk_core::{
    AttemptEnd, Call, Cause, EffectState, ErrorClass, Failure, FailureClass, Jitter, OnHeadFailure,
    OnUnknown, Reason, Status,
};

/// A value that is stored as a number.
pub(crate) trait Code: Copy {
    /// What the value is called in messages about damaged rows.
    const WHAT: &'static str;
    /// The number of the value.
    fn code(self) -> i64;
    /// The value of the number.
    fn from_code(code: i64) -> Option<Self>;
}

/// One table per enumeration gives its numbers in both directions. `also` are numbers that are read but not written.
macro_rules! codes {
    ($type:ty, $what:literal { $($value:pat = $code:literal => $make:expr),+ $(,)? } $(also { $($more:literal => $old:expr),+ })?) => {
        impl Code for $type {
            const WHAT: &'static str = $what;

            fn code(self) -> i64 {
                match self {
                    $($value => $code,)+
                }
            }

            fn from_code(code: i64) -> Option<Self> {
                match code {
                    $($code => Some($make),)+
                    $($($more => Some($old),)+)?
                    _ => None,
                }
            }
        }
    };
}

codes!(Status, "state" {
    Self::Pending = 0 => Self::Pending,
    Self::Running = 1 => Self::Running,
    Self::Failed = 3 => Self::Failed,
    Self::Completed = 5 => Self::Completed,
    Self::Cancelled = 6 => Self::Cancelled,
} also { 2 => Self::Pending, 4 => Self::Pending });

codes!(FailureClass, "failure class" {
    Self::Transient = 1 => Self::Transient,
    Self::Permanent = 2 => Self::Permanent,
    Self::Unknown = 3 => Self::Unknown,
});

codes!(Reason, "failure reason" {
    Self::RetriesExhausted = 1 => Self::RetriesExhausted,
    Self::Permanent = 2 => Self::Permanent,
    Self::OutcomeUnknown = 3 => Self::OutcomeUnknown,
    Self::WorkerLost = 4 => Self::WorkerLost,
    Self::Expired = 5 => Self::Expired,
    Self::Forced = 6 => Self::Forced,
});

codes!(Cause, "failure cause" {
    Self::Reported = 1 => Self::Reported,
    Self::LeaseExpired = 2 => Self::LeaseExpired,
    Self::TimedOut = 3 => Self::TimedOut,
    Self::MaxAge = 4 => Self::MaxAge,
    Self::Operator = 5 => Self::Operator,
});

codes!(AttemptEnd, "outcome" {
    Self::Completed = 1 => Self::Completed,
    Self::Released = 2 => Self::Released,
    Self::LeaseExpired = 3 => Self::LeaseExpired,
    Self::TimedOut = 4 => Self::TimedOut,
    Self::Cancelled = 5 => Self::Cancelled,
    Self::Forced = 6 => Self::Forced,
    Self::Failed(ErrorClass::Transient) = 11 => Self::Failed(ErrorClass::Transient),
    Self::Failed(ErrorClass::Permanent) = 12 => Self::Failed(ErrorClass::Permanent),
    Self::Failed(ErrorClass::Unknown) = 13 => Self::Failed(ErrorClass::Unknown),
});

codes!(Call, "call" {
    Self::Supersede = 14 => Self::Supersede,
    Self::Claim = 1 => Self::Claim,
    Self::Heartbeat = 2 => Self::Heartbeat,
    Self::Checkpoint = 3 => Self::Checkpoint,
    Self::Complete = 4 => Self::Complete,
    Self::Fail = 5 => Self::Fail,
    Self::Release = 6 => Self::Release,
    Self::Cancel = 7 => Self::Cancel,
    Self::Retry = 8 => Self::Retry,
    Self::Discard = 9 => Self::Discard,
    Self::ForceFail = 10 => Self::ForceFail,
    Self::Delete = 11 => Self::Delete,
    Self::Replace = 12 => Self::Replace,
    Self::Time = 13 => Self::Time,
    Self::Unblock = 15 => Self::Unblock,
    Self::EffectBegin = 16 => Self::EffectBegin,
    Self::EffectFinish = 17 => Self::EffectFinish,
    Self::EffectAbort = 18 => Self::EffectAbort,
});

codes!(EffectState, "effect" {
    Self::Open = 1 => Self::Open,
    Self::Done = 2 => Self::Done,
    Self::Aborted = 3 => Self::Aborted,
});

codes!(Scope, "scope" {
    Self::Waiting = 1 => Self::Waiting,
    Self::Unfinished = 2 => Self::Unfinished,
    Self::Ttl = 3 => Self::Ttl,
    Self::Forever = 4 => Self::Forever,
});

codes!(OnDuplicate, "on_duplicate" {
    Self::Existing = 1 => Self::Existing,
    Self::Replace = 2 => Self::Replace,
    Self::Conflict = 3 => Self::Conflict,
});

codes!(OnMismatch, "on_mismatch" {
    Self::Flag = 1 => Self::Flag,
    Self::Reject = 2 => Self::Reject,
});

codes!(OnUnknown, "on_unknown" {
    Self::Verify = 1 => Self::Verify,
    Self::Review = 2 => Self::Review,
});

codes!(OnHeadFailure, "on_head_failure" {
    Self::Block = 1 => Self::Block,
    Self::Skip = 2 => Self::Skip,
});

codes!(Jitter, "retry_jitter" {
    Self::None = 1 => Self::None,
    Self::Equal = 2 => Self::Equal,
    Self::Full = 3 => Self::Full,
});

impl Code for Failure {
    const WHAT: &'static str = "failure";

    fn code(self) -> i64 {
        self.cause.code() * 100 + self.reason.code() * 10 + self.class.code()
    }

    fn from_code(code: i64) -> Option<Self> {
        Some(Self {
            class: FailureClass::from_code(code % 10)?,
            reason: Reason::from_code(code / 10 % 10)?,
            cause: Cause::from_code(code / 100)?,
        })
    }
}
