//! The wire of Tagwerk's HTTP interface: request bodies, answers, problem codes, the strict decoder ("the door")
//! and the `OpenAPI` document.
//!
//! Guarantees: every name on the wire stands here once; nothing of the engine's or the core's types can reach the
//! wire by accident, because this crate does not see them; no input can make the decoder panic or overflow the stack.
//!
//! Deliberately absent: IO, clocks, HTTP types, the rules of the queue. What a value means is decided by the engine;
//! whether it can mean anything at all is decided here.

mod decimal;
mod names;
mod time;
mod values;

pub mod answer;
pub mod door;
pub mod headers;
pub mod openapi;
pub mod problem;
pub mod query;
pub mod request;

pub use names::{
    AlertKind, AlertScope, AlertStatus, AlertUnit, Assume, AttemptOutcome, EffectState, ErrorClass,
    ExplainKind, FailureCause, FailureReason, IdempotencyScope, Jitter, LimitClosed, OnDuplicate,
    OnHeadFailure, OnMismatch, OnUnknown, OperatorAction, PriorityLabel, ReportOutcome, Status,
    StreamResults,
};
pub use time::{Time, TimeError, format_rfc3339, parse_rfc3339};
pub use values::{Json, LeaseToken, Seconds};
