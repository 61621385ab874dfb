//! What a producer sends.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    IdempotencyScope, Jitter, Json, OnDuplicate, OnHeadFailure, OnMismatch, OnUnknown, PriorityLabel,
    Seconds, Time,
};

/// A priority in a request: a level or a number 0..=100. Higher goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Priority {
    /// A named level.
    Label(PriorityLabel),
    /// A number 0..=100.
    Number(u8),
}

/// Back-off before a retry. A field that is `null` or missing comes from the type, then from the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RetrySettings {
    /// Wait before the first retry; 0 means at once.
    pub base_seconds: Option<Seconds>,
    /// The wait before retry n is `base · factor^(n-1)`.
    pub factor: Option<f64>,
    /// No wait is longer.
    pub cap_seconds: Option<Seconds>,
    /// How chance spreads the waits.
    pub jitter: Option<Jitter>,
}

/// The business object that a job is about, shown to operators.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Subject {
    /// What it is: `order`.
    pub kind: String,
    /// Which one.
    pub id: String,
    /// Which version of it.
    pub version: Option<i64>,
}

/// How far the work has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// Units done.
    pub done: Option<i64>,
    /// Units in all.
    pub total: Option<i64>,
    /// A word to people, at most 1 KiB.
    pub message: Option<String>,
}

/// `POST /jobs`. Needs only `type`; what is missing comes from the type's settings, then from the server's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnqueueRequest {
    /// What to do: `send-invoice`. Any printable text of 1..=255 bytes.
    #[serde(rename = "type")]
    pub job_type: String,
    /// The capacity it draws on; default `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Any JSON value, kept and handed out byte for byte; default `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Json, required = false)]
    pub payload: Option<Json>,
    /// A level or a number 0..=100; default `medium` (10).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Not handed out before this time has passed. Not together with `run_at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<Seconds>,
    /// Not handed out before this instant. Not together with `delay_seconds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Time>,
    /// If it is still pending after this time, it goes to review instead of being run. Not together with `expires_at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_seconds: Option<Seconds>,
    /// If it is still pending at this instant, it goes to review instead of being run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// Retries allowed, 0..=1000; default 3. It runs at most `max_retries` + 1 times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// The lost lease that ends it, 0..=100; default 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_lease_losses: Option<u32>,
    /// Length of a lease if the claim names none, 1..=86,400.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_seconds: Option<Seconds>,
    /// Hard limit of one attempt, heartbeats or not; default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<Seconds>,
    /// Back-off before retries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetrySettings>,
    /// What an unknown outcome leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_unknown: Option<OnUnknown>,
    /// Stable key of the business operation, at most 255 bytes: the same key makes the job once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// How long the key holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_scope: Option<IdempotencyScope>,
    /// For scope `ttl`: how long after the job's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_ttl_seconds: Option<Seconds>,
    /// What to do when the key is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_duplicate: Option<OnDuplicate>,
    /// What to do when the key is known and the content differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_mismatch: Option<OnMismatch>,
    /// The business object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// Ties together what belongs together across systems, at most 255 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// W3C trace context of the producer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Compare `subject.version`, which is needed then, with that of other jobs of this type and subject that say so: a
    /// higher version cancels those that wait and marks those that run or are in review; a job that is older than one seen
    /// before is created cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supersede: Option<bool>,
    /// Jobs with the same key run one after the other, by id; at most 255 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordering_key: Option<String>,
    /// What its failure means for the jobs behind it. Only with an `ordering_key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_head_failure: Option<OnHeadFailure>,
    /// Limits that it keeps to, at most two; each by its name, or with a partition that counts for itself: `crm:tenant-42`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Vec<String>>,
    /// Jobs of different keys take turns within their queue and priority, so that none of them holds up the others; jobs
    /// without a key take turns with them as one more. At most 255 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_key: Option<String>,
}

/// `POST /jobs/bulk`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BulkEnqueueRequest {
    /// At most 10,000 jobs. Each is judged by itself.
    pub jobs: Vec<EnqueueRequest>,
    /// Take all or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub atomic: Option<bool>,
}
