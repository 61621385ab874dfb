//! Examples of the document, made from the wire types, so that they cannot be wrong in form. One story: an invoice
//! that is sent.

mod alerts;
mod figures;
mod requests;

use serde::Serialize;
use serde_json::{Value, json};

use crate::answer::{
    AttemptEntry, AttemptsPage, BulkClaimAnswer, BulkEnqueueAnswer, BulkHeartbeatAnswer, ClaimedJob,
    CompletedJob, EffectAnswer, EnqueueAnswer, EnqueueResult, Explain, ExplainReason, Failure, FollowedUp,
    HeartbeatAnswer, Job, JobSummary, JobsPage, OperatorEntry, ReportBulkAnswer, ReportResult, ReviewPage,
};
use crate::problem::{Code, Problem};
use crate::request::{RetrySettings, Subject, TypeSettings};
use crate::{
    AttemptOutcome, EffectState, ErrorClass, ExplainKind, FailureCause, FailureReason, IdempotencyScope,
    Jitter, Json, LeaseToken, OnUnknown, OperatorAction, PriorityLabel, Seconds, Status, Time,
};

pub(super) use alerts::*;
pub(super) use figures::*;
pub(super) use requests::*;

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
        supersede: false,
        subject: Some(Subject { kind: "invoice".to_owned(), id: "20260815".to_owned(), version: None }),
        correlation_id: None,
        traceparent: None,
        ordering_key: None,
        on_head_failure: None,
        blocked_by: None,
        blocks: None,
        limits: vec!["crm:tenant-42".to_owned()],
        fair_key: Some("tenant-42".to_owned()),
        space: None,
        owner: Some("billing team".to_owned()),
        error: None,
        failure: None,
        worker_id: None,
        claimed_at: None,
        lease_expires_at: None,
        verify: false,
        effects_in_doubt: Vec::new(),
        cancel_requested: false,
        superseded_by: None,
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
    Job { summary, payload: payload(), checkpoint: None, result: None, effects: Vec::new() }
}

pub(super) fn job() -> Value {
    value(&whole(summary()))
}

pub(super) fn job_running() -> Value {
    value(&Job { checkpoint: Some(Json::from(&json!({"page": 7}))), ..whole(running()) })
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

fn handed_out() -> ClaimedJob {
    ClaimedJob {
        summary: running(),
        payload: payload(),
        checkpoint: None,
        result: None,
        effects: Vec::new(),
        lease: token(),
        heartbeat_seconds: seconds(20),
        replayed: false,
    }
}

pub(super) fn completed() -> Value {
    let enqueued = vec![FollowedUp { id: ID + 1, created: true }];
    let result = Some(Json::from(&json!({"message_id": "<1@example.org>"})));
    let job = Job { result, ..whole(settled(Status::Completed)) };
    value(&CompletedJob::new(job, Some(enqueued)))
}

pub(super) fn claimed() -> Value {
    value(&handed_out())
}

pub(super) fn claimed_bulk() -> Value {
    value(&BulkClaimAnswer { jobs: vec![handed_out()], next_due_at: None })
}

pub(super) fn effect_begun() -> Value {
    let key = "9f86d081884c7d659a2feaa0c55ad015".to_owned();
    value(&EffectAnswer { state: EffectState::New, key, result: None })
}

pub(super) fn effect_finished() -> Value {
    let key = "9f86d081884c7d659a2feaa0c55ad015".to_owned();
    let result = Some(Json::from(&json!({"shipment_id": "s-1"})));
    value(&EffectAnswer { state: EffectState::Done, key, result })
}

pub(super) fn effect_aborted() -> Value {
    let key = "9f86d081884c7d659a2feaa0c55ad015".to_owned();
    value(&EffectAnswer { state: EffectState::Aborted, key, result: None })
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

fn result(id: i64) -> ReportResult {
    ReportResult {
        id: Some(id),
        status: 200,
        job: None,
        heartbeat: None,
        enqueued: None,
        problem: None,
        replayed: false,
    }
}

fn lost(id: i64) -> ReportResult {
    let problem = Problem { stop: Some(true), may_report: Some(false), ..Problem::of(Code::LeaseLost) };
    ReportResult { status: 409, problem: Some(problem), ..result(id) }
}

pub(super) fn heartbeat_bulk_answer() -> Value {
    let first = ReportResult { heartbeat: Some(alive()), ..result(ID) };
    value(&BulkHeartbeatAnswer { results: vec![first, lost(ID + 1)] })
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
        queues: Some(vec!["mail".to_owned(), "bulk".to_owned()]),
        priority_ceiling: Some(crate::request::Priority::Label(PriorityLabel::High)),
        payload_max_bytes: Some(65_536),
        limits: Some(vec!["crm".to_owned()]),
        ..TypeSettings::default()
    }
}
