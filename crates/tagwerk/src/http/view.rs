//! From the engine to the wire: total conversions of what is shown. `owner` comes from the settings of the job's type.

mod effect;
mod history;
mod names;

use tagwerk_api::answer::{
    BulkClaimAnswer, ClaimedJob, EnqueueAnswer, EnqueueTombstone, Enqueued as EnqueuedView, Failure,
    FollowedUp, HeartbeatAnswer, Job, JobSummary, QueueDrain, QueuePause, Tombstone,
};
use tagwerk_api::request::{self, Progress, RetrySettings, Subject, TypeSettings};
use tagwerk_api::{Json, LeaseToken, PriorityLabel, Seconds, Time};
use tagwerk_core::access::Scope;
use tagwerk_core::limits::check::cut_text;
use tagwerk_core::{Drain, JobId, Pause, Priority, QueueSettings, RetryOverrides, Timestamp, limits};
use tagwerk_engine::command::{self, ClaimAnswer, Claimed, Enqueued};
use tagwerk_engine::query::Place;
use tagwerk_engine::row::{self, FullJob, without_space};

use super::access::Rights;
use super::owners::Owners;

pub(super) use effect::answer as effect_answer;
pub(super) use history::{action, attempt, explain, live_attempt};
pub(super) use names::{class_matches, reason_matches};

/// A time.
pub(super) const fn time(at: Timestamp) -> Time {
    Time::from_ms(at.as_millis())
}

/// Time since then; never negative, whatever the clocks do.
pub(super) fn age(since: Timestamp, now: Timestamp) -> Seconds {
    Seconds::from_ms(now.since_ms(since).max(0))
}

/// Puts in where the job stands in the order of its key.
pub(super) fn put_place(summary: &mut JobSummary, place: Place) {
    summary.blocked_by = place.blocked_by.map(|id| id.0);
    summary.blocks = place.blocks.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
}

/// The list form of a job. Its error is cut to a line or two.
pub(super) fn summary(full: &FullJob, (owner, rights): (Option<String>, &Rights)) -> JobSummary {
    let mut summary = whole_summary(full, owner);
    if !rights.has(Scope::Payload) {
        summary.error = None;
    }
    if let Some(error) = &mut summary.error {
        let cut = cut_text(error, limits::LIST_ERROR_MAX_BYTES).into_owned();
        *error = cut;
    }
    summary
}

fn whole_summary(full: &FullJob, owner: Option<String>) -> JobSummary {
    let (FullJob { row, detail }, job) = (full, &full.row.job);
    let lease = job.lease.as_ref();
    JobSummary {
        id: job.id.0,
        job_type: row.lane.kind.to_string(),
        queue: row.lane.queue.to_string(),
        status: names::status(job.status),
        version: job.version,
        priority: PriorityLabel::of(row.priority.value()),
        priority_value: row.priority.value(),
        attempt: job.attempt,
        attempts_left: job.attempts_left(),
        is_last_attempt: job.is_last_attempt(),
        retry_count: job.retry_count,
        max_retries: job.max_retries,
        lease_losses: job.lease_losses,
        max_lease_losses: job.max_lease_losses,
        release_count: job.release_count,
        available_at: time(job.available_at),
        expires_at: job.expires_at.map(time),
        max_age_seconds: job.max_age_ms.map(Seconds::from_ms),
        lease_seconds: detail.lease_ms.map(Seconds::from_ms),
        timeout_seconds: detail.timeout_ms.map(Seconds::from_ms),
        retry: retry(detail.retry),
        on_unknown: names::on_unknown(job.on_unknown),
        idempotency_key: detail.key.as_deref().map(without_space).map(str::to_owned),
        idempotency_scope: detail.scope.map(names::scope),
        idempotency_ttl_seconds: detail.ttl_ms.map(Seconds::from_ms),
        on_duplicate: detail.on_duplicate.map(names::on_duplicate),
        on_mismatch: detail.on_mismatch.map(names::on_mismatch),
        supersede: detail.supersede,
        subject: detail.subject.as_ref().map(subject),
        correlation_id: detail.correlation_id.clone(),
        traceparent: detail.traceparent.clone(),
        ordering_key: detail.ordering.as_ref().map(|ordering| without_space(&ordering.key).to_owned()),
        on_head_failure: detail
            .ordering
            .as_ref()
            .and_then(|ordering| ordering.on_head_failure)
            .map(names::on_head_failure),
        blocked_by: None,
        blocks: None,
        limits: row.lane.limits().iter().map(ToString::to_string).collect(),
        fair_key: row.lane.fair_key().map(str::to_owned),
        space: row.lane.space.as_deref().map(str::to_owned),
        owner,
        error: job.error.clone(),
        failure: job.failure.map(failure),
        worker_id: lease.map(|lease| lease.worker.clone()),
        claimed_at: lease.map(|lease| time(lease.claimed_at)),
        lease_expires_at: lease.map(|lease| time(lease.expires_at)),
        verify: job.verify,
        effects_in_doubt: job.effects_in_doubt().map(effect::in_doubt).collect(),
        cancel_requested: job.cancel_requested,
        superseded_by: job.superseded_by.map(|by| by.0),
        progress: row.note.progress.as_ref().map(progress),
        created_at: time(job.created_at),
        updated_at: time(job.updated_at),
        finished_at: job.finished_at.map(time),
    }
}

/// JSON as it was kept. The door has let nothing else in; what was damaged since is shown as text.
fn json(text: String) -> Json {
    Json::from_text(text.clone()).unwrap_or_else(|_| Json::from(&serde_json::Value::String(text)))
}

/// The whole job.
pub(super) fn job(full: FullJob, owner: Option<String>) -> Job {
    let summary = whole_summary(&full, owner);
    let FullJob { row, detail } = full;
    let effects = row.job.effects.iter().map(|effect| effect::shown(&row.job, effect)).collect();
    Job {
        summary,
        payload: json(detail.payload),
        checkpoint: row.note.checkpoint.map(json),
        result: row.note.result.map(json),
        effects,
    }
}

/// The answer to an enqueue.
pub(super) fn enqueued(enqueued: Enqueued, owners: &Owners, rights: &Rights) -> EnqueuedView {
    let of = |full: FullJob| {
        let owner = owners.of(&full.row.lane.kind);
        EnqueueAnswer::new(job(rights.veiled(full), owner))
    };
    match enqueued {
        Enqueued::Created(full) => EnqueuedView::Job(Box::new(of(*full))),
        Enqueued::Existing { job, payload_differs, replaced } => {
            EnqueuedView::Job(Box::new(EnqueueAnswer { payload_differs, replaced, ..of(*job) }))
        }
        Enqueued::Pruned { id, tombstone, payload_differs, replaced } => {
            let tombstone = self::tombstone(id, tombstone);
            EnqueuedView::Pruned(EnqueueTombstone { tombstone, payload_differs, replaced })
        }
    }
}

/// What became of the jobs that came with a `complete`.
pub(super) fn followed_up(jobs: &[command::FollowedUp]) -> Vec<FollowedUp> {
    jobs.iter().map(|job| FollowedUp { id: job.id.0, created: job.created }).collect()
}

/// What is left of a pruned job.
pub(super) fn tombstone(id: JobId, tombstone: row::Tombstone) -> Tombstone {
    Tombstone {
        id: id.0,
        job_type: tombstone.kind,
        status: names::status(tombstone.standing.status),
        finished_at: tombstone.standing.finished_at.map(time),
        pruned: true,
    }
}

/// A job that was just handed out. `None` if it has no lease any more, which cannot be.
fn claimed(claimed: Claimed, owners: &Owners) -> Option<ClaimedJob> {
    let Claimed { job: full, token } = claimed;
    let lease = full.row.job.lease.as_ref()?;
    // An attempt with a time limit may end before its lease would.
    let limit_ms = lease.time_limit_at.map(|limit| limit.since_ms(lease.claimed_at));
    let lease_ms = limit_ms.map_or(lease.lease_ms, |limit_ms| limit_ms.min(lease.lease_ms));
    let owner = owners.of(&full.row.lane.kind);
    let Job { summary, payload, checkpoint, result, effects } = job(full, owner);
    Some(ClaimedJob {
        summary,
        payload,
        checkpoint,
        result,
        effects,
        lease: LeaseToken(token),
        heartbeat_seconds: Seconds::from_ms(lease_ms / limits::HEARTBEATS_PER_LEASE),
        replayed: false,
    })
}

/// What a claim got.
pub(super) fn claim(answer: ClaimAnswer, owners: &Owners) -> BulkClaimAnswer {
    let replayed = answer.replayed;
    let jobs = answer.jobs.into_iter().filter_map(|job| claimed(job, owners));
    BulkClaimAnswer {
        jobs: jobs.map(|job| ClaimedJob { replayed, ..job }).collect(),
        next_due_at: answer.next_due_at.map(time),
    }
}

/// What a heartbeat is told, but for `quiet`. `None` if the job has no lease any more, which cannot be.
pub(super) fn heartbeat(full: &FullJob) -> Option<HeartbeatAnswer> {
    let lease = full.row.job.lease.as_ref()?;
    Some(HeartbeatAnswer {
        go_on: true,
        quiet: false,
        superseded: full.row.job.superseded_by.is_some(),
        lease_expires_at: time(lease.expires_at),
        ends_at: time(lease.ends_at()),
    })
}

/// Settings of a type.
pub(super) fn type_settings(settings: row::TypeSettings) -> TypeSettings {
    TypeSettings {
        queue: settings.queue,
        priority: settings.priority.map(level),
        max_retries: settings.max_retries,
        max_lease_losses: settings.max_lease_losses,
        lease_seconds: settings.lease_ms.map(Seconds::from_ms),
        timeout_seconds: settings.timeout_ms.map(Seconds::from_ms),
        retry: retry(settings.retry),
        on_unknown: settings.on_unknown.map(names::on_unknown),
        handles_verify: settings.handles_verify.then_some(true),
        max_age_seconds: settings.max_age_ms.map(Seconds::from_ms),
        idempotency_scope: settings.scope.map(names::scope),
        idempotency_ttl_seconds: settings.ttl_ms.map(Seconds::from_ms),
        owner: settings.owner,
        queues: settings.queues,
        priority_ceiling: settings.priority_ceiling.map(level),
        payload_max_bytes: settings.payload_max_bytes,
        limits: limit_names(&settings.limits),
        fair_key: settings.fair_key,
        ordering_key: settings.ordering_key.map(|key| key.to_string()),
        on_head_failure: settings.on_head_failure.map(names::on_head_failure),
    }
}

fn limit_names(limits: &[row::LimitRef]) -> Option<Vec<String>> {
    (!limits.is_empty()).then(|| limits.iter().map(ToString::to_string).collect())
}

const fn level(priority: Priority) -> tagwerk_api::request::Priority {
    tagwerk_api::request::Priority::Number(priority.value())
}

/// Bounds of a queue.
pub(super) fn queue_settings(settings: &QueueSettings) -> request::QueueSettings {
    request::QueueSettings {
        max_running: settings.max_running,
        reserve: settings.reserve.map(|reserve| request::Reserve {
            slots: reserve.slots,
            from_priority: level(reserve.from_priority),
        }),
        max_depth: settings.max_depth.map(|depth| i64::try_from(depth).unwrap_or(i64::MAX)),
    }
}

/// A reason for a pause.
pub(super) fn pause(pause: Pause) -> QueuePause {
    QueuePause { reason: pause.reason, by: pause.by, since: time(pause.at) }
}

/// Why producers are refused.
pub(super) fn drain(drain: Drain) -> QueueDrain {
    QueueDrain { reason: drain.reason, by: drain.by, since: time(drain.at) }
}

/// Progress as it was reported.
pub(super) fn progress(progress: &row::Progress) -> Progress {
    Progress { done: progress.done, total: progress.total, message: progress.message.clone() }
}

fn subject(subject: &row::Subject) -> Subject {
    Subject { kind: subject.kind.clone(), id: subject.id.clone(), version: subject.version }
}

fn failure(failure: tagwerk_core::Failure) -> Failure {
    Failure {
        class: names::failure_class(failure.class),
        reason: names::reason(failure.reason),
        cause: names::cause(failure.cause),
    }
}

/// `None` if no field was given.
fn retry(retry: RetryOverrides) -> Option<RetrySettings> {
    (retry != RetryOverrides::default()).then(|| RetrySettings {
        base_seconds: retry.base_ms.map(Seconds::from_ms),
        factor: retry.factor,
        cap_seconds: retry.cap_ms.map(Seconds::from_ms),
        jitter: retry.jitter.map(names::jitter),
    })
}
