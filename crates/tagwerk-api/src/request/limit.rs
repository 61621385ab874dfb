//! What an operator says about a limit, and what a worker may.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Seconds;

/// `POST /limits/{name}/open`: what workers have held back is lifted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OpenLimitRequest {
    /// Of this partition only; without it of the limit with all its partitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
}

/// How many jobs may start within a period. Never exceeded in any window of that length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RateSettings {
    /// Starts within the period, 1..=1,000,000.
    pub count: u32,
    /// The period, from 0.01 seconds to a day.
    pub per_seconds: Seconds,
    /// Starts are evenly spaced, `per_seconds / count` apart, instead of as early as possible.
    pub spread: Option<bool>,
}

/// `PUT /limits/{name}`: what the limit and each of its partitions bounds. `null` or missing is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitSettings {
    /// Jobs that may run at the same time, 1..=1,000,000.
    pub max_running: Option<u32>,
    /// How many may start within a period.
    pub rate: Option<RateSettings>,
}

/// With `fail`: closes a limit for a while, because what stands behind it said so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Throttle {
    /// Name of the limit, with the partition if it is about one: `crm`, `crm:tenant-42`.
    pub limit: String,
    /// For how long, up to a day. A later end that the limit already has stands.
    pub for_seconds: Seconds,
}
