//! What a worker sends.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{EnqueueRequest, Progress, Throttle};
use crate::{ErrorClass, Json, LeaseToken, ReportOutcome, Seconds};

/// `POST /jobs/claim`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClaimRequest {
    /// What the worker calls itself: 1..=255 bytes without `/`.
    pub worker_id: String,
    /// Only from these queues; without it from all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<Vec<String>>,
    /// Only these types; without it all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub types: Option<Vec<String>>,
    /// Wait up to this long for a job, at most 60; without it the answer comes at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_seconds: Option<Seconds>,
    /// Length of the lease, 1..=86,400; without it the job's, the type's or 300.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_seconds: Option<Seconds>,
    /// The worker deals with what an earlier attempt may have done: it looks at `verify` and at the effects in doubt. Without it a
    /// job with effects in doubt goes to review when its attempt is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handles_verify: Option<bool>,
    /// A name for this claim, at most 64 bytes: repeated by the same worker it gets the same jobs again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// `POST /jobs/claim/bulk`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkClaimRequest {
    /// As for a single claim.
    #[serde(flatten)]
    pub claim: ClaimRequest,
    /// At most this many jobs, 1..=1000; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_jobs: Option<u32>,
}

/// `POST /jobs/{id}/complete`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CompleteRequest {
    /// Token of the claim. Without it the report counts only if it can be nobody else's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseToken>,
    /// Looked at only without `lease`: it must then be the claim's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// What came of it, at most 64 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Json, required = false)]
    pub result: Option<Json>,
    /// Jobs that it leads to, at most 1,000 and 1 MiB, created in the transaction that completes this one: all, or none and
    /// the report is refused. No bound of a queue refuses them, and a known idempotency key is no error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enqueue: Option<Vec<EnqueueRequest>>,
}

/// `POST /jobs/{id}/fail`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FailRequest {
    /// Token of the claim. Without it the report counts only if it can be nobody else's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseToken>,
    /// Looked at only without `lease`: it must then be the claim's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// What went wrong: text or any JSON. Cut to 16 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Json, required = false)]
    pub error: Option<Json>,
    /// Default `transient`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
    /// Not run again before this time has passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<Seconds>,
    /// Hold back a limit, for example when the remote service answers 429.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttle: Option<Throttle>,
}

/// `POST /jobs/{id}/release`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReleaseRequest {
    /// Token of the claim. Without it the report counts only if it can be nobody else's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseToken>,
    /// Looked at only without `lease`: it must then be the claim's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// Not handed out again before this time has passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<Seconds>,
    /// Why, for the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `POST /jobs/{id}/heartbeat`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatRequest {
    /// Token of the claim.
    pub lease: LeaseToken,
    /// How far the work has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
}

/// One lease of a bulk heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeldLease {
    /// The job.
    pub id: i64,
    /// Token of its claim.
    pub lease: LeaseToken,
    /// How far the work has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
}

/// `POST /jobs/heartbeat/bulk`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkHeartbeatRequest {
    /// What the worker calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// At most 1,000 leases.
    pub leases: Vec<HeldLease>,
}

/// `POST /jobs/{id}/checkpoint`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CheckpointRequest {
    /// Token of the claim.
    pub lease: LeaseToken,
    /// Any JSON value of at most 64 KiB; the next attempt gets the last one.
    pub checkpoint: Json,
}

/// `POST /jobs/{id}/effects/{effect}/begin`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EffectBeginRequest {
    /// Token of the claim.
    pub lease: LeaseToken,
    /// The idempotency key for the remote system, if the worker has its own; without it a random one is made. Counts only if
    /// nothing is known of the effect, or that it was aborted: use the key of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// `POST /jobs/{id}/effects/{effect}/finish`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EffectFinishRequest {
    /// Token of the claim.
    pub lease: LeaseToken,
    /// What came of it, at most 64 KiB: what a later attempt needs instead of doing it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Json, required = false)]
    pub result: Option<Json>,
}

/// `POST /jobs/{id}/effects/{effect}/abort`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EffectAbortRequest {
    /// Token of the claim.
    pub lease: LeaseToken,
}

/// One entry of a bulk report. Fields that its outcome does not use are ignored and named in `Tagwerk-Ignored`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReportEntry {
    /// The job.
    pub id: i64,
    /// What is reported.
    pub outcome: ReportOutcome,
    /// Token of the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseToken>,
    /// Looked at only without `lease`: it must then be the claim's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// `completed`: what came of it, at most 64 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Json, required = false)]
    pub result: Option<Json>,
    /// `completed`: jobs that it leads to, as with a single `complete`; at most 10,000 in all entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enqueue: Option<Vec<EnqueueRequest>>,
    /// `failed`: what went wrong, text or any JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Json, required = false)]
    pub error: Option<Json>,
    /// `failed`: default `transient`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
    /// `failed`: not run again before this time has passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<Seconds>,
    /// `released`: not handed out again before this time has passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<Seconds>,
    /// `released`: why, for the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `heartbeat`: how far the work has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
}

impl ReportEntry {
    /// An entry with nothing but what every entry has.
    #[must_use]
    pub const fn new(id: i64, outcome: ReportOutcome, lease: Option<LeaseToken>) -> Self {
        Self {
            id,
            outcome,
            lease,
            worker_id: None,
            result: None,
            enqueue: None,
            error: None,
            class: None,
            retry_after_seconds: None,
            delay_seconds: None,
            reason: None,
            progress: None,
        }
    }
}

/// `POST /jobs/report/bulk`: a worker's loop in one round trip.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReportBulkRequest {
    /// At most 1,000 reports, judged one by one.
    pub reports: Vec<ReportEntry>,
    /// Claim new jobs in the same call. Whatever becomes of it, the reports count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<BulkClaimRequest>,
}
