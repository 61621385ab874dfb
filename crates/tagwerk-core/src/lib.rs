//! The rules of Tagwerk, and nothing else.
//!
//! Pure functions over plain values: no IO, no clock, no randomness, no serialisation. Time and random numbers are
//! arguments ([`Ctx`]). Everything that decides whether a job may move, and where to, is [`transition::decide`].
//!
//! Deliberately absent: names of queues and types (the engine knows them), payloads (opaque to every rule), stores.

pub mod access;
pub mod alert;
pub mod attempt;
pub mod effect;
pub mod event;
pub mod gate;
pub mod idempotency;
pub mod job;
pub mod limits;
mod names;
pub mod order;
pub mod priority;
pub mod queue;
pub mod rate;
pub mod rejection;
pub mod retention;
pub mod retry;
pub mod supersede;
pub mod time;
pub mod transition;

pub use attempt::{Attempt, AttemptEnd, Before, ErrorClass, Lease, LeaseBits};
pub use effect::{Assume, Assumed, Begun, Effect, EffectCall, EffectState};
pub use event::{Action, Caller, Ctx, Event, Grant, Outcome, Report, ReportHash};
pub use idempotency::{OnDuplicate, OnMismatch, Scope, Standing};
pub use job::{Cause, Failure, FailureClass, Job, JobId, NewJob, OnUnknown, Reason, Status};
pub use order::OnHeadFailure;
pub use priority::Priority;
pub use queue::{Drain, Pause, PauseRefusal, QueueSettings, Reserve};
pub use rejection::{Call, Rejection};
pub use retry::{Jitter, RetryOverrides, RetryPolicy};
pub use time::Timestamp;
pub use transition::{Answer, History, Step, decide, overdue};
