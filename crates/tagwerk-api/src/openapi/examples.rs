//! Examples of the document, made from the wire types, so that they cannot be wrong in form. One story: an invoice
//! that is sent.

use serde::Serialize;
use serde_json::{Value, json};

use crate::answer::{
    AttemptEntry, AttemptsPage, BulkClaimAnswer, BulkEnqueueAnswer, BulkHeartbeatAnswer, ClaimedJob,
    CommitStats, Counts, EnqueueAnswer, EnqueueResult, Explain, ExplainReason, Failure, HeartbeatAnswer, Job,
    JobSummary, JobsPage, Livez, OperatorEntry, QueueInfo, QueueList, Readyz, ReadyzCheck, ReportBulkAnswer,
    ReportResult, ReviewPage, ServiceStats, Stats, StoreStats, Totals, TypeInfo, TypeList, WorkerInfo,
    WorkerJob, WorkerList,
};
use crate::problem::{Code, Problem};
use crate::request::{
    BulkClaimRequest, BulkEnqueueRequest, BulkHeartbeatRequest, CancelRequest, CheckpointRequest,
    ClaimRequest, CompleteRequest, DiscardRequest, EnqueueRequest, FailRequest, ForceFailRequest,
    HeartbeatRequest, HeldLease, Priority, Progress, ReleaseRequest, ReportBulkRequest, ReportEntry,
    RetryRequest, RetrySettings, Subject, TypeSettings,
};
use crate::{
    AttemptOutcome, ErrorClass, ExplainKind, FailureCause, FailureReason, IdempotencyScope, Jitter, Json,
    LeaseToken, OnUnknown, OperatorAction, PriorityLabel, ReportOutcome, Seconds, Status, Time,
};

const ID: i64 = 4711;
/// 2026-07-01T12:00:00Z, when the job of the story is enqueued.
const NOON_MS: i64 = 1_782_907_200_000;

fn value<T: Serialize>(example: &T) -> Value {
    // The wire types always serialize; `null` is never shown.
    serde_json::to_value(example).unwrap_or_default()
}

const fn at(seconds: i64) -> Time {
    Time::from_ms(NOON_MS + seconds * 1000)
}

const fn seconds(seconds: i64) -> Seconds {
    Seconds::from_ms(seconds * 1000)
}

fn payload() -> Json {
    Json::from(&json!({"invoice": 2026_0815, "to": "billing@example.org"}))
}

fn token() -> LeaseToken {
    LeaseToken("bGVhc2UtdG9rZW4tb2YtdGhlLWNsYWlt".to_owned())
}

fn worker() -> String {
    "mailer-1:4242".to_owned()
}

fn typed(name: &str) -> EnqueueRequest {
    EnqueueRequest { job_type: name.to_owned(), ..EnqueueRequest::default() }
}

pub(super) fn enqueue() -> Value {
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

pub(super) fn enqueue_bulk() -> Value {
    let first = EnqueueRequest { payload: Some(Json::from(&json!({"row": 1}))), ..typed("resize-image") };
    value(&BulkEnqueueRequest { jobs: vec![first, typed("send-invoice")], atomic: None })
}

fn summary() -> JobSummary {
    JobSummary {
        id: ID,
        job_type: "send-invoice".to_owned(),
        queue: "mail".to_owned(),
        status: Status::Pending,
        version: 1,
        priority: PriorityLabel::High,
        priority_value: 20,
        attempt: 0,
        attempts_left: 6,
        is_last_attempt: false,
        retry_count: 0,
        max_retries: 5,
        lease_losses: 0,
        max_lease_losses: 4,
        release_count: 0,
        available_at: at(30),
        expires_at: None,
        max_age_seconds: None,
        lease_seconds: None,
        timeout_seconds: None,
        retry: None,
        on_unknown: OnUnknown::Verify,
        idempotency_key: Some("invoice-20260815-sent".to_owned()),
        idempotency_scope: None,
        idempotency_ttl_seconds: None,
        on_duplicate: None,
        on_mismatch: None,
        subject: Some(Subject { kind: "invoice".to_owned(), id: "20260815".to_owned(), version: None }),
        correlation_id: None,
        traceparent: None,
        owner: Some("billing team".to_owned()),
        error: None,
        failure: None,
        worker_id: None,
        claimed_at: None,
        lease_expires_at: None,
        verify: false,
        cancel_requested: false,
        progress: None,
        created_at: at(0),
        updated_at: at(0),
        finished_at: None,
    }
}

fn running() -> JobSummary {
    JobSummary {
        status: Status::Running,
        version: 2,
        attempt: 1,
        attempts_left: 5,
        worker_id: Some(worker()),
        claimed_at: Some(at(31)),
        lease_expires_at: Some(at(91)),
        updated_at: at(31),
        ..summary()
    }
}

fn settled(status: Status) -> JobSummary {
    JobSummary {
        status,
        version: 3,
        attempt: 1,
        updated_at: at(40),
        finished_at: Some(at(40)),
        attempts_left: 0,
        ..summary()
    }
}

fn failed() -> JobSummary {
    JobSummary {
        error: Some("550 no such mailbox".to_owned()),
        failure: Some(Failure {
            class: ErrorClass::Permanent,
            reason: FailureReason::Permanent,
            cause: FailureCause::Reported,
        }),
        ..settled(Status::Failed)
    }
}

fn whole(summary: JobSummary) -> Job {
    Job { summary, payload: payload(), checkpoint: None, result: None }
}

pub(super) fn job() -> Value {
    value(&whole(summary()))
}

pub(super) fn job_running() -> Value {
    value(&Job { checkpoint: Some(Json::from(&json!({"page": 7}))), ..whole(running()) })
}

pub(super) fn job_completed() -> Value {
    let result = Some(Json::from(&json!({"message_id": "<1@example.org>"})));
    value(&Job { result, ..whole(settled(Status::Completed)) })
}

pub(super) fn job_failed() -> Value {
    value(&whole(failed()))
}

pub(super) fn job_cancelled() -> Value {
    value(&whole(settled(Status::Cancelled)))
}

pub(super) fn enqueued() -> Value {
    value(&EnqueueAnswer::new(whole(summary())))
}

pub(super) fn enqueued_before() -> Value {
    value(&EnqueueAnswer { payload_differs: true, ..EnqueueAnswer::new(whole(running())) })
}

pub(super) fn enqueued_bulk() -> Value {
    let created = EnqueueResult {
        status: 201,
        job: Some(summary()),
        tombstone: None,
        problem: None,
        replayed: false,
        payload_differs: false,
        replaced: None,
    };
    let refused = EnqueueResult {
        status: 422,
        job: None,
        problem: Some(Problem::of(Code::PayloadTooLarge)),
        ..created.clone()
    };
    value(&BulkEnqueueAnswer { results: vec![created, refused] })
}

pub(super) fn jobs_page() -> Value {
    value(&JobsPage { jobs: vec![summary()], damaged: Vec::new(), next: Some(ID.to_string()) })
}

pub(super) fn review_page() -> Value {
    value(&ReviewPage { jobs: vec![failed()], damaged: Vec::new(), next: None })
}

pub(super) fn attempts_page() -> Value {
    let attempt = AttemptEntry {
        number: 1,
        seq: 1,
        worker_id: worker(),
        claimed_at: at(31),
        lease_expires_at: at(91),
        ended_at: Some(at(40)),
        outcome: Some(AttemptOutcome::Failed),
        class: Some(ErrorClass::Permanent),
        error: Some("550 no such mailbox".to_owned()),
        late: false,
        refused_calls: 0,
        last_refused: None,
    };
    let action = OperatorEntry {
        at: at(3600),
        action: OperatorAction::Retry,
        reason: Some("address corrected".to_owned()),
        version: 4,
    };
    value(&AttemptsPage { attempts: vec![attempt], omitted: 0, actions: vec![action], next: None })
}

pub(super) fn explain() -> Value {
    let reason = ExplainReason {
        kind: ExplainKind::Scheduled,
        detail: "its first start is 30 seconds after the enqueue".to_owned(),
        since: Some(at(0)),
        until: Some(at(30)),
        freed_by: Some("time".to_owned()),
    };
    value(&Explain { id: ID, status: Status::Pending, position: None, reasons: vec![reason] })
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

fn handed_out() -> ClaimedJob {
    ClaimedJob {
        summary: running(),
        payload: payload(),
        checkpoint: None,
        result: None,
        lease: token(),
        heartbeat_seconds: seconds(20),
        replayed: false,
    }
}

pub(super) fn claim() -> Value {
    value(&claiming())
}

pub(super) fn claim_bulk() -> Value {
    value(&BulkClaimRequest { claim: claiming(), max_jobs: Some(10) })
}

pub(super) fn claimed() -> Value {
    value(&handed_out())
}

pub(super) fn claimed_bulk() -> Value {
    value(&BulkClaimAnswer { jobs: vec![handed_out()], next_due_at: None })
}

pub(super) fn complete() -> Value {
    let result = Some(Json::from(&json!({"message_id": "<1@example.org>"})));
    value(&CompleteRequest { lease: Some(token()), result, ..CompleteRequest::default() })
}

pub(super) fn fail() -> Value {
    value(&FailRequest {
        lease: Some(token()),
        error: Some(Json::from(&json!("550 no such mailbox"))),
        class: Some(ErrorClass::Permanent),
        ..FailRequest::default()
    })
}

pub(super) fn release() -> Value {
    value(&ReleaseRequest {
        lease: Some(token()),
        delay_seconds: Some(seconds(10)),
        ..ReleaseRequest::default()
    })
}

pub(super) fn heartbeat() -> Value {
    let progress = Progress { done: Some(3), total: Some(10), message: None };
    value(&HeartbeatRequest { lease: token(), progress: Some(progress) })
}

fn alive() -> HeartbeatAnswer {
    HeartbeatAnswer {
        go_on: true,
        quiet: false,
        superseded: false,
        lease_expires_at: at(111),
        ends_at: at(111),
    }
}

pub(super) fn heartbeat_answer() -> Value {
    value(&alive())
}

pub(super) fn heartbeat_bulk() -> Value {
    let lease = HeldLease { id: ID, lease: token(), progress: None };
    value(&BulkHeartbeatRequest { worker_id: Some(worker()), leases: vec![lease] })
}

fn result(id: i64) -> ReportResult {
    ReportResult { id: Some(id), status: 200, job: None, heartbeat: None, problem: None, replayed: false }
}

fn lost(id: i64) -> ReportResult {
    let problem = Problem { stop: Some(true), may_report: Some(false), ..Problem::of(Code::LeaseLost) };
    ReportResult { status: 409, problem: Some(problem), ..result(id) }
}

pub(super) fn heartbeat_bulk_answer() -> Value {
    let first = ReportResult { heartbeat: Some(alive()), ..result(ID) };
    value(&BulkHeartbeatAnswer { results: vec![first, lost(ID + 1)] })
}

pub(super) fn checkpoint() -> Value {
    value(&CheckpointRequest { lease: token(), checkpoint: Json::from(&json!({"page": 7})) })
}

pub(super) fn report_bulk() -> Value {
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

pub(super) fn report_bulk_answer() -> Value {
    let done = ReportResult { job: Some(settled(Status::Completed)), ..result(ID) };
    value(&ReportBulkAnswer {
        results: vec![done, lost(ID + 1)],
        jobs: vec![handed_out()],
        next_due_at: None,
        claim_problem: None,
    })
}

pub(super) fn retry() -> Value {
    let note = Some("address corrected".to_owned());
    value(&RetryRequest { seen_version: 3, note, payload: Some(payload()), max_retries: None })
}

pub(super) fn discard() -> Value {
    value(&DiscardRequest { reason: "customer left".to_owned(), ..DiscardRequest::default() })
}

pub(super) fn cancel() -> Value {
    value(&CancelRequest { reason: Some("order withdrawn".to_owned()), ..CancelRequest::default() })
}

pub(super) fn force_fail() -> Value {
    value(&ForceFailRequest { reason: "hangs in DNS".to_owned(), seen_version: Some(2) })
}

fn settings() -> TypeSettings {
    TypeSettings {
        queue: Some("mail".to_owned()),
        max_retries: Some(5),
        retry: Some(RetrySettings {
            base_seconds: Some(seconds(10)),
            factor: Some(2.0),
            cap_seconds: Some(seconds(3600)),
            jitter: Some(Jitter::Equal),
        }),
        idempotency_scope: Some(IdempotencyScope::Ttl),
        owner: Some("billing team".to_owned()),
        ..TypeSettings::default()
    }
}

const COUNTS: Counts =
    Counts { enqueued: 120, pending: 4, running: 2, completed: 100, failed: 1, cancelled: 3, pruned: 10 };

fn typeinfo(settings: Option<TypeSettings>) -> TypeInfo {
    TypeInfo {
        job_type: "send-invoice".to_owned(),
        configured: settings.is_some(),
        settings: settings.unwrap_or_default(),
        counts: COUNTS,
        oldest_ready_age_seconds: Some(Seconds::from_ms(250)),
    }
}

pub(super) fn type_settings() -> Value {
    value(&settings())
}

pub(super) fn type_info() -> Value {
    value(&typeinfo(Some(settings())))
}

pub(super) fn type_info_bare() -> Value {
    value(&typeinfo(None))
}

pub(super) fn type_list() -> Value {
    value(&TypeList { types: vec![typeinfo(Some(settings()))], next: None })
}

pub(super) fn queue_list() -> Value {
    let queue = QueueInfo {
        queue: "mail".to_owned(),
        counts: COUNTS,
        oldest_ready_age_seconds: Some(Seconds::from_ms(250)),
        last_claim_age_seconds: Some(seconds(1)),
    };
    value(&QueueList { queues: vec![queue], next: None })
}

pub(super) fn worker_list() -> Value {
    let job = WorkerJob {
        id: ID,
        job_type: "send-invoice".to_owned(),
        queue: "mail".to_owned(),
        attempt: 1,
        claimed_at: at(31),
        lease_expires_at: at(91),
        progress: None,
    };
    let worker = WorkerInfo {
        worker_id: worker(),
        last_seen_at: Some(at(31)),
        queues: Some(vec!["mail".to_owned()]),
        types: None,
        version: Some("tagwerk/0.1.0".to_owned()),
        running: 1,
        jobs: vec![job],
    };
    value(&WorkerList { workers: vec![worker], next: None })
}

pub(super) fn stats() -> Value {
    let retention = ServiceStats {
        name: "retention".to_owned(),
        last_run_at: Some(at(59)),
        report: Some("10 jobs and 2 idempotency keys deleted since the start".to_owned()),
    };
    value(&Stats {
        now: at(60),
        started_at: at(-3600),
        version: "0.1.0".to_owned(),
        draining: false,
        counts: COUNTS,
        oldest_ready_age_seconds: Some(Seconds::from_ms(250)),
        last_claim_age_seconds: Some(seconds(1)),
        totals: Totals { enqueues: 120, claims: 118, completions: 110, failures: 6, ..Totals::default() },
        commits: CommitStats { commits: 300, requests: 960, parked_claims: 2 },
        store: StoreStats {
            kind: "sqlite 3.54.1".to_owned(),
            schema: 1,
            size_bytes: Some(1_048_576),
            wal_bytes: Some(65_536),
        },
        services: vec![retention],
    })
}

pub(super) fn livez() -> Value {
    value(&Livez { status: "alive".to_owned() })
}

pub(super) fn readyz() -> Value {
    value(&Readyz { status: "ready".to_owned(), checks: None })
}

pub(super) fn not_readyz() -> Value {
    let check = ReadyzCheck {
        name: "store".to_owned(),
        ok: false,
        detail: "the disk is full; free space, no restart is needed".to_owned(),
    };
    value(&Readyz { status: "not_ready".to_owned(), checks: Some(vec![check]) })
}
