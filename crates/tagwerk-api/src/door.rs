//! The door: reads request bodies and query strings, and says exactly what is wrong with them.
//!
//! Guarantees: a body is read or refused whole, never half understood; all that is wrong is named at once, field by
//! field; unknown fields are refused with the nearest known name, except in reports, where they are ignored and
//! named, so that no report is lost to a spelling; no input can overflow the stack or take memory beyond a small
//! multiple of its size.
//!
//! `null` for an optional field counts as absent. The one exception is `payload` of an enqueue, where `null` is a
//! payload like any other.
//!
//! Deliberately absent: clocks and the store. Whether `run_at` lies too far ahead is for the engine to judge.

mod alerts;
mod body;
mod decoded;
mod effect;
mod enqueue;
mod follow;
mod gates;
mod json;
mod limits;
mod nearest;
mod operate;
mod queries;
mod queue;
mod reader;
mod text;
mod worker;

pub use body::{check_content_type, is_ndjson, parse_if_match, parse_job_id};
pub use decoded::{
    Cancel, Checkpoint, Claim, Complete, Delete, Discard, Drain, EffectBegin, EffectFinish, Fail, FollowUps,
    ForceFail, Heartbeat, Holder, LimitBounds, NewJob, NewJobs, Pause, QueueBounds, RateBounds, Release,
    Report, ReportBulk, ReportItem, Reported, ReserveBounds, Resume, Retry, RetryFields, Throttle,
    TypeDefaults, Unblock,
};
pub use limits::DoorLimits;
pub use nearest::nearest;
pub(crate) use text::TextRule;

/// Reads requests within given limits. One per server.
#[derive(Clone, Debug)]
pub struct Door {
    limits: DoorLimits,
}

impl Door {
    /// A door with these limits.
    #[must_use]
    pub const fn new(limits: DoorLimits) -> Self {
        Self { limits }
    }

    /// The limits.
    #[must_use]
    pub const fn limits(&self) -> &DoorLimits {
        &self.limits
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Door, DoorLimits};
    use crate::problem::Refusal;

    pub(crate) fn door() -> Door {
        Door::new(DoorLimits::for_tests())
    }

    /// Field, code and message of each error.
    pub(crate) fn errors(refusal: &Refusal) -> Vec<(String, String, String)> {
        let parts = |error: &crate::problem::FieldError| {
            (error.field.clone(), error.code.clone(), error.message.clone())
        };
        refusal.errors.iter().map(parts).collect()
    }
}
