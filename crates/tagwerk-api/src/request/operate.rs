//! What an operator sends.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Priority, RetrySettings};
use crate::{Assume, IdempotencyScope, Json, OnHeadFailure, OnUnknown, Seconds};

/// `POST /jobs/{id}/cancel`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelRequest {
    /// Leave a running attempt until its holder's next call or its lease end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<bool>,
    /// Why, for the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Free the idempotency key, whatever its scope says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_key: Option<bool>,
    /// Only if the job still has this version; compared where the call would change something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_version: Option<i64>,
}

/// `POST /jobs/{id}/retry`: run a job in review again, on the same id, with a new retry budget.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RetryRequest {
    /// The version that was looked at (or the header `If-Match`): a second click is refused.
    pub seen_version: i64,
    /// Why, for the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// A new payload; the old one is kept in the store (table `payload_old`). `null` keeps the payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Json, required = false)]
    pub payload: Option<Json>,
    /// A new number of retries, 0..=1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Run it although a newer version has superseded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
    /// What you have found out about the effects in doubt; kept in the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assume: Option<Assumed>,
}

/// What a person has found out about effects in doubt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Assumed {
    /// The same about all that are in doubt.
    All(Assume),
    /// By name of the effect. The others stay in doubt.
    Named(BTreeMap<String, Assume>),
}

/// `POST /jobs/{id}/discard`: take a job out of review for good.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiscardRequest {
    /// Why, for the history.
    pub reason: String,
    /// Free the idempotency key, whatever its scope says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_key: Option<bool>,
    /// Only if the job still has this version; compared where the call would change something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_version: Option<i64>,
}

/// `POST /jobs/{id}/force-fail`: end the running attempt and put the job into review.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForceFailRequest {
    /// Why; becomes the job's error.
    pub reason: String,
    /// Only if the job still has this version; compared where the call would change something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_version: Option<i64>,
}

/// `POST /jobs/{id}/unblock`: let the jobs behind a job in review go on without it. It stays in review.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnblockRequest {
    /// Why, for the history.
    pub reason: String,
    /// Only if the job still has this version; compared where the call would change something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_version: Option<i64>,
}

/// `PUT /types/{type}`: defaults for new jobs of a type, and what they may ask for. `null` or missing leaves it to the
/// server's default, or forbids nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TypeSettings {
    /// The queue.
    pub queue: Option<String>,
    /// A level or a number 0..=100.
    pub priority: Option<Priority>,
    /// Retries allowed, 0..=1000.
    pub max_retries: Option<u32>,
    /// The lost lease that ends a job, 0..=100.
    pub max_lease_losses: Option<u32>,
    /// Length of a lease, 1..=86,400.
    pub lease_seconds: Option<Seconds>,
    /// Hard limit of one attempt.
    pub timeout_seconds: Option<Seconds>,
    /// Back-off before retries.
    pub retry: Option<RetrySettings>,
    /// What an unknown outcome leads to.
    pub on_unknown: Option<OnUnknown>,
    /// All workers of the type deal with what an earlier attempt may have done; a claim may say so as well.
    pub handles_verify: Option<bool>,
    /// Maximum age of a pending job.
    pub max_age_seconds: Option<Seconds>,
    /// How long idempotency keys hold.
    pub idempotency_scope: Option<IdempotencyScope>,
    /// For scope `ttl`: how long after a job's end.
    pub idempotency_ttl_seconds: Option<Seconds>,
    /// Whom to ask about jobs of this type: free text.
    pub owner: Option<String>,
    /// The queues that its jobs may go to; `null`: any. A job for another one is refused.
    pub queues: Option<Vec<String>>,
    /// The highest priority of its jobs, a level or a number 0..=100. A job that asks for more is refused; one that asks
    /// for none gets at most this.
    pub priority_ceiling: Option<Priority>,
    /// Largest payload of its jobs in bytes, where that is less than the server's.
    pub payload_max_bytes: Option<u32>,
    /// Limits of jobs that name none, at most two; `crm`, or `crm:tenant-42` for a partition. A job that names limits is under
    /// these alone.
    pub limits: Option<Vec<String>>,
    /// Fair key of jobs that have none.
    pub fair_key: Option<String>,
    /// Ordering key of jobs that have none: all of them run one after the other.
    pub ordering_key: Option<String>,
    /// What the failure of a job with an ordering key means for the jobs behind it, where it does not say.
    pub on_head_failure: Option<OnHeadFailure>,
}
