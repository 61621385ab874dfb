//! Requests as the door has read them: checked, with times and lengths of time in milliseconds. `None` means that the
//! field was not given.

use crate::problem::Refusal;
use crate::request::{Assumed, Progress, Subject};
use crate::{
    ErrorClass, IdempotencyScope, Jitter, Json, LeaseToken, OnDuplicate, OnHeadFailure, OnMismatch, OnUnknown,
};

/// Back-off fields.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RetryFields {
    /// `base_seconds`
    pub base_ms: Option<i64>,
    /// `factor`
    pub factor: Option<f64>,
    /// `cap_seconds`
    pub cap_ms: Option<i64>,
    /// `jitter`
    pub jitter: Option<Jitter>,
}

/// `POST /jobs`, or one job of `POST /jobs/bulk`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewJob {
    /// `type`
    pub job_type: String,
    /// `queue`
    pub queue: Option<String>,
    /// `payload`, byte for byte; `null` is a payload.
    pub payload: Option<Json>,
    /// `priority` as a number.
    pub priority: Option<u8>,
    /// `delay_seconds`; never together with `run_at_ms`.
    pub delay_ms: Option<i64>,
    /// `run_at` in milliseconds since the epoch.
    pub run_at_ms: Option<i64>,
    /// `max_age_seconds`; never together with `expires_at_ms`.
    pub max_age_ms: Option<i64>,
    /// `expires_at` in milliseconds since the epoch.
    pub expires_at_ms: Option<i64>,
    /// `max_retries`
    pub max_retries: Option<u32>,
    /// `max_lease_losses`
    pub max_lease_losses: Option<u32>,
    /// `lease_seconds`
    pub lease_ms: Option<i64>,
    /// `timeout_seconds`
    pub timeout_ms: Option<i64>,
    /// `retry`
    pub retry: RetryFields,
    /// `on_unknown`
    pub on_unknown: Option<OnUnknown>,
    /// `idempotency_key`, from the body or the header.
    pub idempotency_key: Option<String>,
    /// `idempotency_scope`
    pub idempotency_scope: Option<IdempotencyScope>,
    /// `idempotency_ttl_seconds`
    pub idempotency_ttl_ms: Option<i64>,
    /// `on_duplicate`
    pub on_duplicate: Option<OnDuplicate>,
    /// `on_mismatch`; `reject` when the key came in the header and nothing else was said.
    pub on_mismatch: Option<OnMismatch>,
    /// `subject`
    pub subject: Option<Subject>,
    /// `correlation_id`
    pub correlation_id: Option<String>,
    /// `traceparent`
    pub traceparent: Option<String>,
    /// `supersede`
    pub supersede: bool,
    /// `ordering_key`
    pub ordering_key: Option<String>,
    /// `on_head_failure`; only with an `ordering_key`.
    pub on_head_failure: Option<OnHeadFailure>,
    /// `limits`, sorted, each once.
    pub limits: Vec<String>,
    /// `fair_key`
    pub fair_key: Option<String>,
}

/// `POST /jobs/bulk`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewJobs {
    /// In the order of the request; a job that is refused does not refuse the others.
    pub jobs: Vec<Result<NewJob, Refusal>>,
    /// Take all or none.
    pub atomic: bool,
}

/// `POST /jobs/claim`, `/jobs/claim/bulk`, and `claim` of `/jobs/report/bulk`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// `worker_id`
    pub worker_id: String,
    /// `queues`: never empty.
    pub queues: Option<Vec<String>>,
    /// `types`: never empty.
    pub types: Option<Vec<String>>,
    /// `wait_seconds`; 0 answers at once.
    pub wait_ms: i64,
    /// `lease_seconds`
    pub lease_ms: Option<i64>,
    /// `handles_verify`
    pub handles_verify: bool,
    /// `request_id`
    pub request_id: Option<String>,
    /// `max_jobs`; 1 for a single claim.
    pub max_jobs: u32,
}

/// Who makes a call about an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// `lease`
    pub lease: Option<LeaseToken>,
    /// `worker_id`, not checked: it is only compared.
    pub worker_id: Option<String>,
}

/// A report and the names of the fields in it that were not known, fit for the header `Tagwerk-Ignored`.
#[derive(Clone, Debug, PartialEq)]
pub struct Reported<T> {
    /// What was reported.
    pub value: T,
    /// What was ignored.
    pub ignored: Vec<String>,
}

/// `POST /jobs/{id}/complete`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Complete {
    /// Who reports.
    pub holder: Holder,
    /// `result`
    pub result: Option<Json>,
    /// `enqueue`
    pub enqueue: Option<FollowUps>,
}

/// `enqueue` of a completed job
#[derive(Clone, Debug, PartialEq)]
pub struct FollowUps {
    /// The jobs, in order.
    pub jobs: Vec<NewJob>,
    /// The list, byte for byte.
    pub sent: Json,
}

/// `POST /jobs/{id}/fail`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fail {
    /// Who reports.
    pub holder: Holder,
    /// `error` as text without NUL and half surrogate pairs: a text as it is, other JSON as it is written. Not cut and
    /// not redacted.
    pub error: Option<String>,
    /// `class`
    pub class: Option<ErrorClass>,
    /// `retry_after_seconds`
    pub retry_after_ms: Option<i64>,
    /// `throttle`
    pub throttle: Option<Throttle>,
}

/// `throttle` of a failure
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// `limit`: a name, or `name:partition`.
    pub limit: String,
    /// `for_seconds`
    pub for_ms: i64,
}

/// `PUT /limits/{name}`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitBounds {
    /// `max_running`
    pub max_running: Option<u32>,
    /// `rate`
    pub rate: Option<RateBounds>,
}

/// `rate` of a limit
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateBounds {
    /// `count`
    pub count: u32,
    /// `per_seconds`
    pub per_ms: i64,
    /// `spread`
    pub spread: bool,
}

/// `POST /jobs/{id}/release`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Release {
    /// Who reports.
    pub holder: Holder,
    /// `delay_seconds`
    pub delay_ms: Option<i64>,
    /// `reason`
    pub reason: Option<String>,
}

/// `POST /jobs/{id}/heartbeat`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// Who calls; without a token the engine refuses it with `lease-required`.
    pub holder: Holder,
    /// `progress`
    pub progress: Option<Progress>,
}

/// `POST /jobs/{id}/checkpoint`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Who calls; without a token the engine refuses it with `lease-required`.
    pub holder: Holder,
    /// `checkpoint`, byte for byte.
    pub checkpoint: Json,
}

/// `POST /jobs/{id}/effects/{effect}/begin`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectBegin {
    /// Who calls; without a token the engine refuses it with `lease-required`.
    pub holder: Holder,
    /// `key`
    pub key: Option<String>,
}

/// `POST /jobs/{id}/effects/{effect}/finish`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EffectFinish {
    /// Who calls; without a token the engine refuses it with `lease-required`.
    pub holder: Holder,
    /// `result`, byte for byte.
    pub result: Option<Json>,
}

/// What one entry of a bulk report says.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// As `complete`.
    Complete(Complete),
    /// As `fail`.
    Fail(Fail),
    /// As `release`.
    Release(Release),
    /// As `heartbeat`.
    Heartbeat(Heartbeat),
}

/// One entry of a bulk report or heartbeat.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportItem {
    /// The job, if the entry names one.
    pub id: Option<i64>,
    /// What it says; an entry that is refused does not refuse the others. `Ok` only with an id.
    pub report: Result<Report, Refusal>,
}

/// `POST /jobs/report/bulk`, and `POST /jobs/heartbeat/bulk` (heartbeats only, no claim).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportBulk {
    /// In the order of the request.
    pub reports: Vec<ReportItem>,
    /// A claim in the same call; if it is refused the reports count all the same.
    pub claim: Option<Result<Claim, Refusal>>,
}

/// `POST /jobs/{id}/cancel`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cancel {
    /// `wait`
    pub wait: bool,
    /// `reason`
    pub reason: Option<String>,
    /// `free_key`
    pub free_key: bool,
    /// `seen_version` or `If-Match`
    pub seen_version: Option<i64>,
}

/// `POST /jobs/{id}/retry`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    /// `seen_version` or `If-Match`
    pub seen_version: i64,
    /// `note`
    pub note: Option<String>,
    /// `payload`, byte for byte; `null` keeps the old one.
    pub payload: Option<Json>,
    /// `max_retries`
    pub max_retries: Option<u32>,
    /// `force`
    pub force: bool,
    /// `assume`
    pub assume: Option<Assumed>,
}

/// `POST /jobs/{id}/discard`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discard {
    /// `reason`
    pub reason: String,
    /// `free_key`
    pub free_key: bool,
    /// `seen_version` or `If-Match`
    pub seen_version: Option<i64>,
}

/// `POST /jobs/{id}/force-fail`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForceFail {
    /// `reason`
    pub reason: String,
    /// `seen_version` or `If-Match`
    pub seen_version: Option<i64>,
}

/// `POST /jobs/{id}/unblock`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unblock {
    /// `reason`
    pub reason: String,
    /// `seen_version` or `If-Match`
    pub seen_version: Option<i64>,
}

/// `DELETE /jobs/{id}`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delete {
    /// `seen_version` of the query, or `If-Match`
    pub seen_version: Option<i64>,
}

/// `PUT /types/{type}`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypeDefaults {
    /// `queue`
    pub queue: Option<String>,
    /// `priority` as a number.
    pub priority: Option<u8>,
    /// `max_retries`
    pub max_retries: Option<u32>,
    /// `max_lease_losses`
    pub max_lease_losses: Option<u32>,
    /// `lease_seconds`
    pub lease_ms: Option<i64>,
    /// `timeout_seconds`
    pub timeout_ms: Option<i64>,
    /// `retry`
    pub retry: RetryFields,
    /// `on_unknown`
    pub on_unknown: Option<OnUnknown>,
    /// `handles_verify`
    pub handles_verify: bool,
    /// `max_age_seconds`
    pub max_age_ms: Option<i64>,
    /// `idempotency_scope`
    pub idempotency_scope: Option<IdempotencyScope>,
    /// `idempotency_ttl_seconds`
    pub idempotency_ttl_ms: Option<i64>,
    /// `owner`
    pub owner: Option<String>,
    /// `queues`
    pub queues: Option<Vec<String>>,
    /// `priority_ceiling` as a number.
    pub priority_ceiling: Option<u8>,
    /// `payload_max_bytes`
    pub payload_max_bytes: Option<u32>,
    /// `limits`, sorted, each once.
    pub limits: Vec<String>,
    /// `fair_key`
    pub fair_key: Option<String>,
    /// `ordering_key`
    pub ordering_key: Option<String>,
    /// `on_head_failure`
    pub on_head_failure: Option<OnHeadFailure>,
}

/// `PUT /queues/{queue}`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueBounds {
    /// `max_running`
    pub max_running: Option<u32>,
    /// `reserve`
    pub reserve: Option<ReserveBounds>,
    /// `max_depth`
    pub max_depth: Option<i64>,
}

/// `reserve` of a queue: leaves some of its `max_running` to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReserveBounds {
    /// `slots`
    pub slots: u32,
    /// `from_priority` as a number.
    pub from_priority: u8,
}

/// `POST /queues/{queue}/pause`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// `reason`
    pub reason: String,
    /// `by`
    pub by: Option<String>,
}

/// `POST /queues/{queue}/resume`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// `reason`
    pub reason: Option<String>,
}

/// `POST /queues/{queue}/drain`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drain {
    /// `reason`
    pub reason: Option<String>,
    /// `by`
    pub by: Option<String>,
}
