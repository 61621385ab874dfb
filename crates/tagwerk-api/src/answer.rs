//! What the server answers. Fields without a value are `null`, never left out.

mod alert;
mod attempt;
mod audit;
mod bulk;
mod effect;
mod encode;
mod job;
mod limit;
mod page;
mod server;
mod stream;

pub use alert::{AlertInfo, AlertsPage};
pub use attempt::{AttemptEntry, AttemptsPage, Explain, ExplainReason, OperatorEntry, RefusedCall};
pub use audit::{AuditEntry, AuditPage};
pub use bulk::{
    BulkClaimAnswer, BulkEnqueueAnswer, BulkHeartbeatAnswer, EnqueueResult, ReportBulkAnswer, ReportResult,
};
pub use effect::{Effect, EffectAnswer, EffectInDoubt};
pub use encode::Encode;
pub use job::{
    ClaimedJob, CompletedJob, DamagedJob, Deleted, EnqueueAnswer, EnqueueTombstone, Enqueued, Existing,
    Failure, FollowedUp, HeartbeatAnswer, Job, JobSummary, Tombstone,
};
pub use limit::{LimitDeleted, LimitInfo, LimitJobs, LimitList, LimitUse};
pub use page::{JobsPage, ReviewPage};
pub use server::{
    CommitStats, Counts, Livez, QueueDrain, QueueInfo, QueueList, QueuePause, Readyz, ReadyzCheck,
    ServiceStats, Stats, StoreStats, Totals, TypeInfo, TypeList, WorkerInfo, WorkerJob, WorkerList,
};
pub use stream::{RefusedLine, StoredLine, StreamEnd, StreamLine};
