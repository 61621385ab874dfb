//! Effects as they are shown.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{EffectState, Json, Time};

/// An effect of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Effect {
    /// Its name within the job.
    pub name: String,
    /// What is known of it.
    pub state: EffectState,
    /// Idempotency key for the remote system, the same in every attempt.
    pub key: String,
    /// What came of it, if it is done.
    #[schema(value_type = Json)]
    pub result: Option<Json>,
    /// When it was begun.
    pub begun_at: Time,
    /// When it was finished or aborted.
    pub ended_at: Option<Time>,
    /// A person has said how it ended.
    pub assumed: bool,
}

/// An effect that may have happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EffectInDoubt {
    /// Its name within the job.
    pub name: String,
    /// The key by which it can be looked up at the remote system.
    pub key: String,
    /// When it was begun.
    pub begun_at: Time,
}

/// Answer to a call about an effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EffectAnswer {
    /// What is known of it, and so what to do.
    pub state: EffectState,
    /// The idempotency key for the remote system.
    pub key: String,
    /// What came of it, if it is done.
    #[schema(value_type = Json)]
    pub result: Option<Json>,
}
