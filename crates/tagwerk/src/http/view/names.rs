//! Names of the core as names of the wire, value by value, so that a new one cannot be forgotten.

use tagwerk_api as api;
use tagwerk_core as core;
use tagwerk_engine::query::WhyKind;

pub(super) const fn status(status: core::Status) -> api::Status {
    match status {
        core::Status::Pending => api::Status::Pending,
        core::Status::Running => api::Status::Running,
        core::Status::Completed => api::Status::Completed,
        core::Status::Failed => api::Status::Failed,
        core::Status::Cancelled => api::Status::Cancelled,
    }
}

pub(super) const fn on_unknown(on_unknown: core::OnUnknown) -> api::OnUnknown {
    match on_unknown {
        core::OnUnknown::Verify => api::OnUnknown::Verify,
        core::OnUnknown::Review => api::OnUnknown::Review,
    }
}

pub(super) const fn scope(scope: core::Scope) -> api::IdempotencyScope {
    match scope {
        core::Scope::Waiting => api::IdempotencyScope::Waiting,
        core::Scope::Unfinished => api::IdempotencyScope::Unfinished,
        core::Scope::Ttl => api::IdempotencyScope::Ttl,
        core::Scope::Forever => api::IdempotencyScope::Forever,
    }
}

pub(super) const fn on_duplicate(on_duplicate: core::OnDuplicate) -> api::OnDuplicate {
    match on_duplicate {
        core::OnDuplicate::Existing => api::OnDuplicate::Existing,
        core::OnDuplicate::Replace => api::OnDuplicate::Replace,
        core::OnDuplicate::Conflict => api::OnDuplicate::Conflict,
    }
}

pub(super) const fn on_head_failure(on_head_failure: core::OnHeadFailure) -> api::OnHeadFailure {
    match on_head_failure {
        core::OnHeadFailure::Block => api::OnHeadFailure::Block,
        core::OnHeadFailure::Skip => api::OnHeadFailure::Skip,
    }
}

pub(super) const fn on_mismatch(on_mismatch: core::OnMismatch) -> api::OnMismatch {
    match on_mismatch {
        core::OnMismatch::Flag => api::OnMismatch::Flag,
        core::OnMismatch::Reject => api::OnMismatch::Reject,
    }
}

pub(super) const fn jitter(jitter: core::Jitter) -> api::Jitter {
    match jitter {
        core::Jitter::None => api::Jitter::None,
        core::Jitter::Equal => api::Jitter::Equal,
        core::Jitter::Full => api::Jitter::Full,
    }
}

pub(super) const fn error_class(class: core::ErrorClass) -> api::ErrorClass {
    match class {
        core::ErrorClass::Transient => api::ErrorClass::Transient,
        core::ErrorClass::Permanent => api::ErrorClass::Permanent,
        core::ErrorClass::Unknown => api::ErrorClass::Unknown,
    }
}

pub(super) const fn failure_class(class: core::FailureClass) -> api::ErrorClass {
    match class {
        core::FailureClass::Transient => api::ErrorClass::Transient,
        core::FailureClass::Permanent => api::ErrorClass::Permanent,
        core::FailureClass::Unknown => api::ErrorClass::Unknown,
    }
}

pub(super) const fn reason(reason: core::Reason) -> api::FailureReason {
    match reason {
        core::Reason::RetriesExhausted => api::FailureReason::RetriesExhausted,
        core::Reason::Permanent => api::FailureReason::Permanent,
        core::Reason::OutcomeUnknown => api::FailureReason::OutcomeUnknown,
        core::Reason::WorkerLost => api::FailureReason::WorkerLost,
        core::Reason::Expired => api::FailureReason::Expired,
        core::Reason::Forced => api::FailureReason::Forced,
    }
}

pub(super) const fn cause(cause: core::Cause) -> api::FailureCause {
    match cause {
        core::Cause::Reported => api::FailureCause::Reported,
        core::Cause::LeaseExpired => api::FailureCause::LeaseExpired,
        core::Cause::TimedOut => api::FailureCause::TimedOut,
        core::Cause::MaxAge => api::FailureCause::MaxAge,
        core::Cause::Operator => api::FailureCause::Operator,
    }
}

pub(super) const fn attempt_outcome(end: core::AttemptEnd) -> api::AttemptOutcome {
    match end {
        core::AttemptEnd::Completed => api::AttemptOutcome::Completed,
        core::AttemptEnd::Failed(_) => api::AttemptOutcome::Failed,
        core::AttemptEnd::Released => api::AttemptOutcome::Released,
        core::AttemptEnd::LeaseExpired => api::AttemptOutcome::LeaseExpired,
        core::AttemptEnd::TimedOut => api::AttemptOutcome::TimedOut,
        core::AttemptEnd::Cancelled => api::AttemptOutcome::Cancelled,
        core::AttemptEnd::Forced => api::AttemptOutcome::Forced,
    }
}

/// A call as it stands in a history.
pub(super) const fn call(call: core::Call) -> &'static str {
    match call {
        core::Call::Claim => "claim",
        core::Call::Heartbeat => "heartbeat",
        core::Call::Checkpoint => "checkpoint",
        core::Call::Complete => "complete",
        core::Call::Fail => "fail",
        core::Call::Release => "release",
        core::Call::Cancel => "cancel",
        core::Call::Retry => "retry",
        core::Call::Discard => "discard",
        core::Call::ForceFail => "force_fail",
        core::Call::Delete => "delete",
        core::Call::Replace => "replace",
        core::Call::Time => "time",
        core::Call::Supersede => "supersede",
        core::Call::Unblock => "unblock",
        core::Call::EffectBegin => "effect_begin",
        core::Call::EffectFinish => "effect_finish",
        core::Call::EffectAbort => "effect_abort",
    }
}

/// An operator's call. `None` for calls of workers, which are no actions.
pub(super) const fn operator_action(call: core::Call) -> Option<api::OperatorAction> {
    match call {
        core::Call::Cancel => Some(api::OperatorAction::Cancel),
        core::Call::Retry => Some(api::OperatorAction::Retry),
        core::Call::Discard => Some(api::OperatorAction::Discard),
        core::Call::ForceFail => Some(api::OperatorAction::ForceFail),
        core::Call::Replace => Some(api::OperatorAction::Replace),
        core::Call::Unblock => Some(api::OperatorAction::Unblock),
        core::Call::Claim
        | core::Call::Heartbeat
        | core::Call::Checkpoint
        | core::Call::Complete
        | core::Call::Fail
        | core::Call::Release
        | core::Call::EffectBegin
        | core::Call::EffectFinish
        | core::Call::EffectAbort
        | core::Call::Delete
        | core::Call::Time
        | core::Call::Supersede => None,
    }
}

pub(super) const fn why(kind: WhyKind) -> api::ExplainKind {
    match kind {
        WhyKind::Ready => api::ExplainKind::Ready,
        WhyKind::Scheduled => api::ExplainKind::Scheduled,
        WhyKind::Backoff => api::ExplainKind::Backoff,
        WhyKind::Released => api::ExplainKind::Released,
        WhyKind::Running => api::ExplainKind::Running,
        WhyKind::AttemptOver => api::ExplainKind::AttemptOver,
        WhyKind::CancelRequested => api::ExplainKind::CancelRequested,
        WhyKind::Expired => api::ExplainKind::Expired,
        WhyKind::QueueFull => api::ExplainKind::QueueFull,
        WhyKind::LimitFull => api::ExplainKind::LimitFull,
        WhyKind::RateExhausted => api::ExplainKind::RateExhausted,
        WhyKind::Throttled => api::ExplainKind::Throttled,
        WhyKind::NoWorker => api::ExplainKind::NoWorker,
        WhyKind::QueuePaused => api::ExplainKind::QueuePaused,
        WhyKind::Draining => api::ExplainKind::Draining,
        WhyKind::BlockedByKey => api::ExplainKind::BlockedByKey,
        WhyKind::InReview => api::ExplainKind::InReview,
        WhyKind::Completed => api::ExplainKind::Completed,
        WhyKind::Cancelled => api::ExplainKind::Cancelled,
        WhyKind::Superseded => api::ExplainKind::Superseded,
    }
}

/// Whether a failure is of this class, if one is asked for.
pub(in crate::http) fn class_matches(asked: Option<api::ErrorClass>, failure: core::Failure) -> bool {
    asked.is_none_or(|asked| asked == failure_class(failure.class))
}

/// Whether a failure has this reason, if one is asked for.
pub(in crate::http) fn reason_matches(asked: Option<api::FailureReason>, failure: core::Failure) -> bool {
    asked.is_none_or(|asked| asked == reason(failure.reason))
}
