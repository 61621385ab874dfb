//! Request bodies as a client writes them. The server does not use serde to read them but [`crate::door`], which
//! names what is wrong; a test holds the two together.

mod alert;
mod attempt;
mod enqueue;
mod limit;
mod operate;
mod queue;

pub use alert::AckRequest;
pub use attempt::{
    BulkClaimRequest, BulkHeartbeatRequest, CheckpointRequest, ClaimRequest, CompleteRequest,
    EffectAbortRequest, EffectBeginRequest, EffectFinishRequest, FailRequest, HeartbeatRequest, HeldLease,
    ReleaseRequest, ReportBulkRequest, ReportEntry,
};
pub use enqueue::{BulkEnqueueRequest, EnqueueRequest, Priority, Progress, RetrySettings, Subject};
pub use limit::{LimitSettings, OpenLimitRequest, RateSettings, Throttle};
pub use operate::{
    Assumed, CancelRequest, DiscardRequest, ForceFailRequest, RetryRequest, TypeSettings, UnblockRequest,
};
pub use queue::{DrainRequest, PauseRequest, QueueSettings, Reserve, ResumeRequest};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_sends_only_what_is_set() {
        let enqueue = EnqueueRequest { job_type: "t".to_owned(), ..EnqueueRequest::default() };
        assert_eq!(serde_json::to_string(&enqueue).unwrap(), r#"{"type":"t"}"#);
        assert_eq!(serde_json::from_str::<EnqueueRequest>(r#"{"type":"t"}"#).unwrap(), enqueue);
        assert_eq!(serde_json::from_str::<TypeSettings>("{}").unwrap(), TypeSettings::default());
        let claim = BulkClaimRequest {
            claim: ClaimRequest { worker_id: "w".to_owned(), ..ClaimRequest::default() },
            max_jobs: Some(10),
        };
        let text = r#"{"worker_id":"w","max_jobs":10}"#;
        assert_eq!(serde_json::to_string(&claim).unwrap(), text);
        assert_eq!(serde_json::from_str::<BulkClaimRequest>(text).unwrap(), claim);
        assert_eq!(serde_json::to_string(&CompleteRequest::default()).unwrap(), "{}");
    }
}
