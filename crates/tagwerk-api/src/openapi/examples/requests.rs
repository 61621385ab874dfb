//! Examples of request bodies.

use serde_json::{Value, json};

use super::{ID, payload, seconds, settings, token, value, worker};
use crate::answer::{RefusedLine, StreamEnd};
use crate::problem::{FieldCode, Refusal};
use crate::request::{
    BulkClaimRequest, BulkEnqueueRequest, BulkHeartbeatRequest, CancelRequest, CheckpointRequest,
    ClaimRequest, CompleteRequest, DiscardRequest, EffectAbortRequest, EffectBeginRequest,
    EffectFinishRequest, EnqueueRequest, FailRequest, ForceFailRequest, HeartbeatRequest, HeldLease,
    Priority, Progress, ReleaseRequest, ReportBulkRequest, ReportEntry, RetryRequest, Subject,
    UnblockRequest,
};
use crate::{ErrorClass, Json, PriorityLabel, ReportOutcome};

fn typed(name: &str) -> EnqueueRequest {
    EnqueueRequest { job_type: name.to_owned(), ..EnqueueRequest::default() }
}

pub(in crate::openapi) fn enqueue() -> Value {
    value(&EnqueueRequest {
        queue: Some("mail".to_owned()),
        payload: Some(payload()),
        priority: Some(Priority::Label(PriorityLabel::High)),
        delay_seconds: Some(seconds(30)),
        max_retries: Some(5),
        idempotency_key: Some("invoice-20260815-sent".to_owned()),
        subject: Some(Subject { kind: "invoice".to_owned(), id: "20260815".to_owned(), version: None }),
        ..typed("send-invoice")
    })
}

pub(in crate::openapi) fn enqueue_bulk() -> Value {
    let first = EnqueueRequest { payload: Some(Json::from(&json!({"row": 1}))), ..typed("resize-image") };
    value(&BulkEnqueueRequest { jobs: vec![first, typed("send-invoice")], atomic: None })
}

/// A stream, and the answer to it.
pub(in crate::openapi) fn lines() -> (String, String) {
    let sent = [
        r#"{"type":"resize-image","payload":{"row":1},"idempotency_key":"row-1"}"#,
        r#"{"type":"resize-image","payload":{"row":2},"max_retry":3}"#,
    ];
    let message = "is not known here; did you mean `max_retries`?";
    let problem = Refusal::field("max_retry", FieldCode::UnknownField, message).into();
    let refused = value(&RefusedLine { line: 2, status: 422, problem });
    let end = StreamEnd { done: true, created: 1, existing: 0, refused: 1, line: None, problem: None };
    (sent.map(|line| format!("{line}\n")).concat(), format!("{refused}\n{}\n", value(&end)))
}

fn claiming() -> ClaimRequest {
    ClaimRequest {
        worker_id: worker(),
        queues: Some(vec!["mail".to_owned()]),
        wait_seconds: Some(seconds(30)),
        lease_seconds: Some(seconds(60)),
        request_id: Some("0197c5a2-claim-1".to_owned()),
        ..ClaimRequest::default()
    }
}

pub(in crate::openapi) fn claim() -> Value {
    value(&claiming())
}

pub(in crate::openapi) fn claim_bulk() -> Value {
    value(&BulkClaimRequest { claim: claiming(), max_jobs: Some(10) })
}

pub(in crate::openapi) fn complete() -> Value {
    let result = Some(Json::from(&json!({"message_id": "<1@example.org>"})));
    let next = EnqueueRequest { job_type: "archive-mail".to_owned(), ..EnqueueRequest::default() };
    value(&CompleteRequest {
        lease: Some(token()),
        result,
        enqueue: Some(vec![next]),
        ..CompleteRequest::default()
    })
}

pub(in crate::openapi) fn fail() -> Value {
    value(&FailRequest {
        lease: Some(token()),
        error: Some(Json::from(&json!("550 no such mailbox"))),
        class: Some(ErrorClass::Permanent),
        ..FailRequest::default()
    })
}

pub(in crate::openapi) fn release() -> Value {
    value(&ReleaseRequest {
        lease: Some(token()),
        delay_seconds: Some(seconds(10)),
        ..ReleaseRequest::default()
    })
}

pub(in crate::openapi) fn heartbeat() -> Value {
    let progress = Progress { done: Some(3), total: Some(10), message: None };
    value(&HeartbeatRequest { lease: token(), progress: Some(progress) })
}

pub(in crate::openapi) fn heartbeat_bulk() -> Value {
    let lease = HeldLease { id: ID, lease: token(), progress: None };
    value(&BulkHeartbeatRequest { worker_id: Some(worker()), leases: vec![lease] })
}

pub(in crate::openapi) fn checkpoint() -> Value {
    value(&CheckpointRequest { lease: token(), checkpoint: Json::from(&json!({"page": 7})) })
}

pub(in crate::openapi) fn effect_begin() -> Value {
    value(&EffectBeginRequest { lease: token(), key: Some("order-4711-shipment".to_owned()) })
}

pub(in crate::openapi) fn effect_finish() -> Value {
    let result = Some(Json::from(&json!({"shipment_id": "s-1"})));
    value(&EffectFinishRequest { lease: token(), result })
}

pub(in crate::openapi) fn effect_abort() -> Value {
    value(&EffectAbortRequest { lease: token() })
}

pub(in crate::openapi) fn report_bulk() -> Value {
    let done = ReportEntry::new(ID, ReportOutcome::Completed, Some(token()));
    let failed = ReportEntry {
        error: Some(Json::from(&json!("timeout"))),
        class: Some(ErrorClass::Transient),
        ..ReportEntry::new(ID + 1, ReportOutcome::Failed, Some(token()))
    };
    let claim =
        BulkClaimRequest { claim: ClaimRequest { wait_seconds: None, ..claiming() }, max_jobs: Some(2) };
    value(&ReportBulkRequest { reports: vec![done, failed], claim: Some(claim) })
}

pub(in crate::openapi) fn retry() -> Value {
    let note = Some("address corrected".to_owned());
    let payload = Some(payload());
    value(&RetryRequest { seen_version: 3, note, payload, ..RetryRequest::default() })
}

pub(in crate::openapi) fn discard() -> Value {
    value(&DiscardRequest { reason: "customer left".to_owned(), ..DiscardRequest::default() })
}

pub(in crate::openapi) fn cancel() -> Value {
    value(&CancelRequest { reason: Some("order withdrawn".to_owned()), ..CancelRequest::default() })
}

pub(in crate::openapi) fn force_fail() -> Value {
    value(&ForceFailRequest { reason: "hangs in DNS".to_owned(), seen_version: Some(2) })
}

pub(in crate::openapi) fn unblock() -> Value {
    value(&UnblockRequest { reason: "the mail was sent by hand".to_owned(), seen_version: Some(3) })
}

pub(in crate::openapi) fn type_settings() -> Value {
    value(&settings())
}
