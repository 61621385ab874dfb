//! Request bodies as a client writes them. The server does not use serde to read them but [`crate::door`], which
//! names what is wrong; a test holds the two together.

mod attempt;
mod enqueue;
mod operate;

pub use attempt::{
    BulkClaimRequest, BulkHeartbeatRequest, CheckpointRequest, ClaimRequest, CompleteRequest, FailRequest,
    HeartbeatRequest, HeldLease, ReleaseRequest, ReportBulkRequest, ReportEntry,
};
pub use enqueue::{BulkEnqueueRequest, EnqueueRequest, Priority, Progress, RetrySettings, Subject};
pub use operate::{CancelRequest, DiscardRequest, ForceFailRequest, RetryRequest, TypeSettings};
