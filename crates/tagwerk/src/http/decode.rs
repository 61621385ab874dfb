//! From the door to the engine: total conversions of checked requests into commands.

use std::sync::Arc;

use tagwerk_api::door;
use tagwerk_api::request::Assumed;
use tagwerk_api::{self as api, Assume, ErrorClass, IdempotencyScope, Jitter, OnDuplicate, OnHeadFailure};
use tagwerk_api::{OnMismatch, OnUnknown};
use tagwerk_core::gate::{LimitSettings, Rate};
use tagwerk_core::limits::check::cut_text;
use tagwerk_core::{
    Action, JobId, Outcome, Priority, QueueSettings, Reserve, RetryOverrides, Timestamp, limits,
};
use tagwerk_engine::command::{
    Claim, EffectSaid, EnqueueJob, FollowUps, Holder, KeyFate, MaxAge, Operate, QueueControl, Said, Start,
    Throttle, WorkerCall,
};
use tagwerk_engine::row::{LimitRef, Ordering, Progress, Special, Subject, TypeSettings};
use tagwerk_engine::store::Filter;

use crate::redact::redact;

/// A new job.
pub(super) fn new_job(job: door::NewJob) -> EnqueueJob {
    let start = match (job.delay_ms, job.run_at_ms) {
        (Some(ms), _) => Start::AfterMs(ms),
        (None, Some(at)) => Start::At(Timestamp::from_millis(at)),
        (None, None) => Start::Now,
    };
    let max_age = match (job.max_age_ms, job.expires_at_ms) {
        (Some(ms), _) => Some(MaxAge::AfterMs(ms)),
        (None, at) => at.map(|at| MaxAge::At(Timestamp::from_millis(at))),
    };
    EnqueueJob {
        kind: job.job_type,
        queue: job.queue,
        payload: job.payload.map(api::Json::into_text),
        priority: job.priority.and_then(Priority::from_value),
        start,
        max_age,
        max_retries: job.max_retries,
        max_lease_losses: job.max_lease_losses,
        lease_ms: job.lease_ms,
        timeout_ms: job.timeout_ms,
        retry: retry(job.retry),
        on_unknown: job.on_unknown.map(on_unknown),
        key: job.idempotency_key,
        scope: job.idempotency_scope.map(scope),
        ttl_ms: job.idempotency_ttl_ms,
        on_duplicate: job.on_duplicate.map(on_duplicate),
        on_mismatch: job.on_mismatch.map(on_mismatch),
        subject: job.subject.map(subject),
        correlation_id: job.correlation_id,
        traceparent: job.traceparent,
        special: special(&job.limits, job.fair_key),
        supersede: job.supersede,
        ordering: job.ordering_key.map(|key| {
            let on_head_failure = job.on_head_failure.map(on_head_failure);
            Box::new(Ordering { key: key.into(), on_head_failure })
        }),
    }
}

/// A claim.
pub(super) fn claim(claim: door::Claim, agent: Option<String>) -> Claim {
    Claim {
        worker: claim.worker_id,
        filter: Filter { queues: claim.queues, types: claim.types, space: None },
        // At most a thousand, so it fits on every machine.
        max_jobs: usize::try_from(claim.max_jobs).unwrap_or(usize::MAX),
        lease_ms: claim.lease_ms,
        handles_verify: claim.handles_verify,
        wait_ms: claim.wait_ms,
        request_id: claim.request_id,
        agent,
    }
}

/// A report or heartbeat about a job.
pub(super) fn report(id: JobId, report: door::Report) -> WorkerCall {
    let (holder, said) = match report {
        door::Report::Complete(complete) => {
            let result = complete.result.map(api::Json::into_text);
            let said = match complete.enqueue {
                None => Said::Report { outcome: Outcome::Completed, result },
                Some(door::FollowUps { jobs, sent }) => {
                    let jobs = jobs.into_iter().map(new_job).collect();
                    Said::Lead { result, follow_ups: Box::new(FollowUps::new(jobs, sent.into_text())) }
                }
            };
            (complete.holder, said)
        }
        door::Report::Fail(fail) => {
            let outcome = Outcome::Failed {
                class: fail.class.map(error_class).unwrap_or_default(),
                error: fail.error.as_deref().map(error_text),
                retry_after_ms: fail.retry_after_ms,
            };
            let said = match fail.throttle {
                None => Said::Report { outcome, result: None },
                Some(throttle) => {
                    let throttle =
                        Throttle { limit: LimitRef::parse(&throttle.limit), for_ms: throttle.for_ms };
                    Said::Throttle { outcome, throttle: Box::new(throttle) }
                }
            };
            (fail.holder, said)
        }
        door::Report::Release(release) => {
            let outcome = Outcome::Released {
                delay_ms: release.delay_ms.unwrap_or_default(),
                reason: release.reason.as_deref().map(error_text),
            };
            (release.holder, Said::Report { outcome, result: None })
        }
        door::Report::Heartbeat(heartbeat) => {
            (heartbeat.holder, Said::Heartbeat { progress: heartbeat.progress.map(progress) })
        }
    };
    WorkerCall { id, holder: self::holder(holder), said }
}

/// A checkpoint.
pub(super) fn checkpoint(id: JobId, checkpoint: door::Checkpoint) -> WorkerCall {
    WorkerCall {
        id,
        holder: holder(checkpoint.holder),
        said: Said::Checkpoint(checkpoint.checkpoint.into_text()),
    }
}

/// `effects/{effect}/begin`
pub(super) fn effect_begin((id, name): (JobId, &str), begin: door::EffectBegin) -> WorkerCall {
    effect((id, name), begin.holder, EffectSaid::Begin { key: begin.key.map(Into::into) })
}

/// `effects/{effect}/finish`
pub(super) fn effect_finish((id, name): (JobId, &str), finish: door::EffectFinish) -> WorkerCall {
    let result = finish.result.map(|result| result.into_text().into());
    effect((id, name), finish.holder, EffectSaid::Finish { result })
}

/// `effects/{effect}/abort`
pub(super) fn effect_abort((id, name): (JobId, &str), holder: door::Holder) -> WorkerCall {
    effect((id, name), holder, EffectSaid::Abort)
}

fn effect((id, name): (JobId, &str), holder: door::Holder, said: EffectSaid) -> WorkerCall {
    WorkerCall { id, holder: self::holder(holder), said: Said::Effect(name.into(), said) }
}

/// An error text as it is kept: without secrets, at most 16 KiB.
fn error_text(error: &str) -> String {
    cut_text(&redact(error), limits::ERROR_MAX_BYTES).into_owned()
}

/// `cancel`
pub(super) fn cancel(id: JobId, cancel: door::Cancel) -> Operate {
    Operate {
        seen_version: cancel.seen_version,
        text: cancel.reason,
        key: if cancel.free_key { KeyFate::Free } else { KeyFate::ByScope },
        ..operate(id, Action::Cancel { wait: cancel.wait })
    }
}

/// `retry`
pub(super) fn retry_job(id: JobId, retry: door::Retry) -> Operate {
    let max_retries = retry.max_retries;
    let action = if retry.force { Action::ForceRetry { max_retries } } else { Action::Retry { max_retries } };
    Operate {
        seen_version: Some(retry.seen_version),
        text: retry.note,
        payload: retry.payload.map(api::Json::into_text),
        assume: retry.assume.map(assumed),
        ..operate(id, action)
    }
}

/// `discard`
pub(super) fn discard(id: JobId, discard: door::Discard) -> Operate {
    Operate {
        seen_version: discard.seen_version,
        text: Some(discard.reason),
        key: if discard.free_key { KeyFate::Free } else { KeyFate::ByScope },
        ..operate(id, Action::Discard)
    }
}

/// `force-fail`
pub(super) fn force_fail(id: JobId, forced: door::ForceFail) -> Operate {
    let error = error_text(&forced.reason);
    Operate {
        seen_version: forced.seen_version,
        text: Some(forced.reason),
        ..operate(id, Action::ForceFail { error })
    }
}

/// `unblock`
pub(super) fn unblock(id: JobId, unblock: door::Unblock) -> Operate {
    Operate { seen_version: unblock.seen_version, text: Some(unblock.reason), ..operate(id, Action::Unblock) }
}

/// `DELETE`
pub(super) fn delete(id: JobId, delete: door::Delete) -> Operate {
    Operate { seen_version: delete.seen_version, ..operate(id, Action::Delete) }
}

const fn operate(id: JobId, action: Action) -> Operate {
    Operate { id, action, seen_version: None, text: None, payload: None, assume: None, key: KeyFate::ByScope }
}

/// What makes a job more than plain; nothing of it is made for a job that is.
fn special(limits: &[String], fair_key: Option<String>) -> Option<Arc<Special>> {
    if limits.is_empty() && fair_key.is_none() {
        return None;
    }
    let limits = limits.iter().map(|text| LimitRef::parse(text)).collect();
    Some(Arc::new(Special { limits, fair_key }))
}

/// Settings of a limit.
pub(super) fn limit_settings(bounds: door::LimitBounds) -> LimitSettings {
    let rate = |rate: door::RateBounds| Rate { count: rate.count, per_ms: rate.per_ms, spread: rate.spread };
    LimitSettings { max_running: bounds.max_running, rate: bounds.rate.map(rate) }
}

/// Settings of a type.
pub(super) fn type_settings(defaults: door::TypeDefaults) -> TypeSettings {
    TypeSettings {
        queue: defaults.queue,
        priority: defaults.priority.and_then(Priority::from_value),
        max_retries: defaults.max_retries,
        max_lease_losses: defaults.max_lease_losses,
        lease_ms: defaults.lease_ms,
        timeout_ms: defaults.timeout_ms,
        max_age_ms: defaults.max_age_ms,
        retry: retry(defaults.retry),
        on_unknown: defaults.on_unknown.map(on_unknown),
        handles_verify: defaults.handles_verify,
        scope: defaults.idempotency_scope.map(scope),
        ttl_ms: defaults.idempotency_ttl_ms,
        owner: defaults.owner,
        queues: defaults.queues,
        priority_ceiling: defaults.priority_ceiling.and_then(Priority::from_value),
        payload_max_bytes: defaults.payload_max_bytes,
        limits: defaults.limits.iter().map(|text| LimitRef::parse(text)).collect(),
        fair_key: defaults.fair_key,
        ordering_key: defaults.ordering_key.map(Into::into),
        on_head_failure: defaults.on_head_failure.map(on_head_failure),
    }
}

/// Bounds of a queue.
pub(super) fn queue_settings(bounds: &door::QueueBounds) -> QueueControl {
    let reserve = bounds.reserve.as_ref().and_then(|reserve| {
        let from_priority = Priority::from_value(reserve.from_priority)?;
        Some(Reserve { slots: reserve.slots, from_priority })
    });
    QueueControl::Set(QueueSettings {
        max_running: bounds.max_running,
        reserve,
        max_depth: bounds.max_depth.and_then(|depth| u64::try_from(depth).ok()),
    })
}

fn holder(holder: door::Holder) -> Holder {
    Holder { token: holder.lease.map(|lease| lease.0), worker: holder.worker_id }
}

fn progress(progress: api::request::Progress) -> Progress {
    Progress { done: progress.done, total: progress.total, message: progress.message }
}

fn subject(subject: api::request::Subject) -> Subject {
    Subject { kind: subject.kind, id: subject.id, version: subject.version }
}

fn retry(retry: door::RetryFields) -> RetryOverrides {
    RetryOverrides {
        base_ms: retry.base_ms,
        factor: retry.factor,
        cap_ms: retry.cap_ms,
        jitter: retry.jitter.map(jitter),
    }
}

const fn jitter(jitter: Jitter) -> tagwerk_core::Jitter {
    match jitter {
        Jitter::None => tagwerk_core::Jitter::None,
        Jitter::Equal => tagwerk_core::Jitter::Equal,
        Jitter::Full => tagwerk_core::Jitter::Full,
    }
}

const fn on_unknown(on_unknown: OnUnknown) -> tagwerk_core::OnUnknown {
    match on_unknown {
        OnUnknown::Verify => tagwerk_core::OnUnknown::Verify,
        OnUnknown::Review => tagwerk_core::OnUnknown::Review,
    }
}

fn assumed(assumed: Assumed) -> tagwerk_core::Assumed {
    let found = |assume| match assume {
        Assume::Done => tagwerk_core::Assume::Done,
        Assume::NotDone => tagwerk_core::Assume::NotDone,
    };
    match assumed {
        Assumed::All(assume) => tagwerk_core::Assumed::All(found(assume)),
        Assumed::Named(known) => tagwerk_core::Assumed::Named(
            known.into_iter().map(|(name, assume)| (name.into(), found(assume))).collect(),
        ),
    }
}

const fn scope(scope: IdempotencyScope) -> tagwerk_core::Scope {
    match scope {
        IdempotencyScope::Waiting => tagwerk_core::Scope::Waiting,
        IdempotencyScope::Unfinished => tagwerk_core::Scope::Unfinished,
        IdempotencyScope::Ttl => tagwerk_core::Scope::Ttl,
        IdempotencyScope::Forever => tagwerk_core::Scope::Forever,
    }
}

const fn on_duplicate(on_duplicate: OnDuplicate) -> tagwerk_core::OnDuplicate {
    match on_duplicate {
        OnDuplicate::Existing => tagwerk_core::OnDuplicate::Existing,
        OnDuplicate::Replace => tagwerk_core::OnDuplicate::Replace,
        OnDuplicate::Conflict => tagwerk_core::OnDuplicate::Conflict,
    }
}

const fn on_mismatch(on_mismatch: OnMismatch) -> tagwerk_core::OnMismatch {
    match on_mismatch {
        OnMismatch::Flag => tagwerk_core::OnMismatch::Flag,
        OnMismatch::Reject => tagwerk_core::OnMismatch::Reject,
    }
}

const fn on_head_failure(on_head_failure: OnHeadFailure) -> tagwerk_core::OnHeadFailure {
    match on_head_failure {
        OnHeadFailure::Block => tagwerk_core::OnHeadFailure::Block,
        OnHeadFailure::Skip => tagwerk_core::OnHeadFailure::Skip,
    }
}

const fn error_class(class: ErrorClass) -> tagwerk_core::ErrorClass {
    match class {
        ErrorClass::Transient => tagwerk_core::ErrorClass::Transient,
        ErrorClass::Permanent => tagwerk_core::ErrorClass::Permanent,
        ErrorClass::Unknown => tagwerk_core::ErrorClass::Unknown,
    }
}

/// A status as the core knows it.
pub(super) const fn status(status: api::Status) -> tagwerk_core::Status {
    match status {
        api::Status::Pending => tagwerk_core::Status::Pending,
        api::Status::Running => tagwerk_core::Status::Running,
        api::Status::Completed => tagwerk_core::Status::Completed,
        api::Status::Failed => tagwerk_core::Status::Failed,
        api::Status::Cancelled => tagwerk_core::Status::Cancelled,
    }
}

/// A time as the core knows it.
pub(super) const fn time(time: api::Time) -> Timestamp {
    Timestamp::from_millis(time.ms())
}
