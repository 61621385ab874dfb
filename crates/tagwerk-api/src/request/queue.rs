//! What operators say about queues.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Priority;

/// Slots that are kept free for urgent jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reserve {
    /// How many of `max_running`; some must be left to others.
    pub slots: u32,
    /// Jobs below this priority do not use them: a level or a number 0..=100.
    pub from_priority: Priority,
}

/// `PUT /queues/{queue}`: bounds of a queue. `null` or missing sets none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueSettings {
    /// Jobs that may run at the same time.
    pub max_running: Option<u32>,
    /// Slots of these for urgent jobs. Needs `max_running`.
    pub reserve: Option<Reserve>,
    /// Jobs that may be pending or running. Beyond it producers are refused with 429 `queue-full`.
    pub max_depth: Option<i64>,
}

/// `POST /queues/{queue}/pause`: hand out none of its jobs for this reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PauseRequest {
    /// Why, in a few words; `resume` lifts it by this name.
    pub reason: String,
    /// Who says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// `POST /queues/{queue}/resume`: lift one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResumeRequest {
    /// Which; the only one, if none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `POST /queues/{queue}/drain`: refuse producers, let work go on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DrainRequest {
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}
