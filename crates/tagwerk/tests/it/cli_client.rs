//! The Rust client against the real server: every call of the interface once, so that what goes out is taken and what comes
//! back is understood.

use std::collections::BTreeSet;

use serde_json::Value;
use tagwerk_client::api::problem::Code;
use tagwerk_client::api::query::{
    AlertsQuery, AttemptsQuery, AuditQuery, DeleteQuery, JobsQuery, NamesQuery, ReviewQuery,
};
use tagwerk_client::api::request::{
    AckRequest, BulkClaimRequest, BulkEnqueueRequest, BulkHeartbeatRequest, CancelRequest, CheckpointRequest,
    ClaimRequest, CompleteRequest, DiscardRequest, DrainRequest, EffectAbortRequest, EffectBeginRequest,
    EffectFinishRequest, EnqueueRequest, FailRequest, ForceFailRequest, HeartbeatRequest, HeldLease,
    LimitSettings, OpenLimitRequest, PauseRequest, Progress, QueueSettings, ReleaseRequest,
    ReportBulkRequest, ReportEntry, ResumeRequest, RetryRequest, TypeSettings, UnblockRequest,
};
use tagwerk_client::api::{EffectState, ErrorClass, Json, LeaseToken, ReportOutcome, Seconds, Status};
use tagwerk_client::{Client, Error};

use crate::server::Server;

fn job(key: &str) -> EnqueueRequest {
    let key = Some(key.to_owned());
    EnqueueRequest { job_type: "t".to_owned(), idempotency_key: key, ..EnqueueRequest::default() }
}

fn claim(request_id: &str) -> ClaimRequest {
    ClaimRequest {
        worker_id: "w".to_owned(),
        request_id: Some(request_id.to_owned()),
        ..ClaimRequest::default()
    }
}

fn json(text: &str) -> Json {
    Json::from_text(text.to_owned()).expect("JSON")
}

/// Claims one job.
async fn held(client: &Client, request_id: &str) -> (i64, LeaseToken) {
    let answer = client.claim(&claim(request_id)).await.expect("a claim");
    let job = answer.value.expect("a job");
    (job.summary.id, job.lease)
}

#[tokio::test]
async fn producers() {
    let server = Server::start();
    let client = Client::new(&server.url()).expect("a client");
    let answer = client.enqueue(&job("a")).await.expect("a job");
    assert_eq!((answer.status, answer.replayed, answer.value.id()), (201, false, 1));
    let answer = client.enqueue(&job("a")).await.expect("the same job");
    assert_eq!((answer.status, answer.replayed, answer.value.id()), (200, true, 1));
    let bulk = BulkEnqueueRequest { jobs: vec![job("a"), job("b")], atomic: Some(true) };
    let results = client.enqueue_bulk(&bulk).await.expect("both").value.results;
    assert_eq!(results.iter().map(|result| result.status).collect::<Vec<_>>(), [200, 201]);
    let raw = [json(r#"{"type":"t","payload":{"n":1e400}}"#), json(r#"{"type":7}"#)];
    let results = client.enqueue_bulk_json(&raw).await.expect("an answer").value.results;
    assert_eq!(results.iter().map(|result| result.status).collect::<Vec<_>>(), [201, 422]);
    let answer = client.job(3).await.expect("the job");
    assert_eq!(answer.value.payload.as_str(), r#"{"n":1e400}"#);
    let answer = client.wait_for_job(1, Seconds::from_ms(10)).await.expect("the job");
    assert_eq!(answer.value.summary.status, Status::Pending);
}

#[tokio::test]
async fn workers() {
    let server = Server::start();
    let client = Client::new(&server.url()).expect("a client");
    let nothing = client.claim(&claim("0")).await.expect("an answer");
    assert!(nothing.value.is_none() && nothing.retry_after.is_some());
    for key in 0..6 {
        client.enqueue(&job(&key.to_string())).await.expect("a job");
    }
    let (id, lease) = held(&client, "1").await;
    let again = client.claim(&claim("1")).await.expect("the same").value.expect("a job");
    assert!(again.replayed && again.summary.id == id && again.lease == lease);
    let progress = Some(Progress { done: Some(1), ..Progress::default() });
    let beat = HeartbeatRequest { lease: lease.clone(), progress };
    assert!(client.heartbeat(id, &beat).await.expect("an answer").value.go_on);
    let checkpoint = CheckpointRequest { lease: lease.clone(), checkpoint: json("[17]") };
    let stored = client.checkpoint(id, &checkpoint).await.expect("the job").value;
    assert_eq!(stored.checkpoint.as_ref().map(Json::as_str), Some("[17]"));
    let done =
        CompleteRequest { lease: Some(lease.clone()), result: Some(json("1")), ..CompleteRequest::default() };
    assert!(!client.complete(id, &done).await.expect("the job").replayed);
    assert!(client.complete(id, &done).await.expect("the job").replayed);
    let other = FailRequest { lease: Some(lease), ..FailRequest::default() };
    let refused = client.fail(id, &other).await.expect_err("another outcome");
    assert_eq!(refused.code(), Some(Code::AlreadyReported));
    let (id, lease) = held(&client, "2").await;
    let release = ReleaseRequest { lease: Some(lease), ..ReleaseRequest::default() };
    assert_eq!(client.release(id, &release).await.expect("the job").value.summary.release_count, 1);
    let bulk = BulkClaimRequest { claim: claim("3"), max_jobs: Some(2) };
    let jobs = client.claim_bulk(&bulk).await.expect("two").value.jobs;
    let leases: Vec<_> = jobs
        .iter()
        .map(|job| HeldLease { id: job.summary.id, lease: job.lease.clone(), progress: None })
        .collect();
    let beats = BulkHeartbeatRequest { worker_id: Some("w".to_owned()), leases };
    let results = client.heartbeat_bulk(&beats).await.expect("two").value.results;
    assert!(results.len() == 2 && results.iter().all(|result| result.heartbeat.is_some()));
    let reports = jobs
        .iter()
        .map(|job| ReportEntry::new(job.summary.id, ReportOutcome::Completed, Some(job.lease.clone())))
        .collect();
    let report =
        ReportBulkRequest { reports, claim: Some(BulkClaimRequest { claim: claim("4"), max_jobs: None }) };
    let answer = client.report_bulk(&report).await.expect("an answer").value;
    assert!(answer.results.iter().all(|result| result.status == 200) && answer.jobs.len() == 1);
}

#[tokio::test]
async fn effects() {
    let server = Server::start();
    let client = Client::new(&server.url()).expect("a client");
    client.enqueue(&job("a")).await.expect("a job");
    let (id, lease) = held(&client, "1").await;
    let begin = EffectBeginRequest { lease: lease.clone(), key: Some("order-7".to_owned()) };
    let new = client.effect_begin((id, "ship"), &begin).await.expect("begun").value;
    assert_eq!((new.state, new.key.as_str(), new.result), (EffectState::New, "order-7", None));
    let abort = EffectAbortRequest { lease: lease.clone() };
    let aborted = client.effect_abort((id, "ship"), &abort).await.expect("aborted").value;
    assert_eq!(aborted.state, EffectState::Aborted);
    assert_eq!(client.effect_begin((id, "ship"), &begin).await.expect("begun").value.state, EffectState::New);
    let result = Some(Json::from(&serde_json::json!({"number": 1})));
    let finish = EffectFinishRequest { lease, result: result.clone() };
    let done = client.effect_finish((id, "ship"), &finish).await.expect("done").value;
    assert_eq!((done.state, done.result), (EffectState::Done, result));
    let refused = client.effect_abort((id, "a/b"), &abort).await.expect_err("no such name");
    assert_eq!(refused.code(), Some(Code::InvalidRequest), "{refused}");
}

#[tokio::test]
async fn operators() {
    let server = Server::start();
    let client = Client::new(&server.url()).expect("a client");
    for key in 0..3 {
        client.enqueue(&job(&key.to_string())).await.expect("a job");
    }
    let (id, lease) = held(&client, "1").await;
    let fail =
        FailRequest { lease: Some(lease), class: Some(ErrorClass::Permanent), ..FailRequest::default() };
    let failed = client.fail(id, &fail).await.expect("the job").value.summary;
    assert_eq!(client.review(&ReviewQuery::default()).await.expect("a page").value.jobs.len(), 1);
    let retry = RetryRequest { seen_version: failed.version, ..RetryRequest::default() };
    assert_eq!(client.retry(id, &retry).await.expect("the job").value.summary.status, Status::Pending);
    let force = ForceFailRequest { reason: "hangs".to_owned(), seen_version: None };
    let (id, _) = held(&client, "2").await;
    assert_eq!(client.force_fail(id, &force).await.expect("the job").value.summary.status, Status::Failed);
    let discard = DiscardRequest { reason: "not needed".to_owned(), ..DiscardRequest::default() };
    assert_eq!(client.discard(id, &discard).await.expect("the job").value.summary.status, Status::Cancelled);
    let unblock = UnblockRequest { reason: "nobody waits".to_owned(), seen_version: None };
    let refused = client.unblock(id, &unblock).await.expect_err("it is cancelled");
    assert!(refused.to_string().contains("not in review"), "{refused}");
    let done = client.audit(&AuditQuery::default()).await.expect("a page").value.entries;
    let actions: Vec<&str> = done.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["job.retry", "job.force_fail", "job.discard"]);
    let cancelled = client.cancel(3, &CancelRequest::default()).await.expect("the job").value;
    assert_eq!(cancelled.summary.status, Status::Cancelled);
    let history = client.attempts(id, &AttemptsQuery::default()).await.expect("a page").value;
    assert_eq!((history.attempts.len(), history.actions.len()), (1, 2));
    assert!(!client.explain(id).await.expect("reasons").value.reasons.is_empty());
    assert_eq!(client.jobs(&JobsQuery::default()).await.expect("a page").value.jobs.len(), 3);
    assert_eq!(client.delete_job(3, &DeleteQuery::default()).await.expect("the job").value.id(), 3);
    let settings = TypeSettings { max_retries: Some(9), ..TypeSettings::default() };
    let info = client.put_type("a/b \\ ü", &settings).await.expect("the type").value;
    assert_eq!((info.job_type.as_str(), info.settings.max_retries), ("a/b \\ ü", Some(9)));
    assert!(client.job_type("a/b \\ ü").await.expect("the type").value.configured);
    assert!(!client.types(&NamesQuery::default()).await.expect("a page").value.types.is_empty());
    assert!(!client.delete_type("a/b \\ ü").await.expect("the type").value.configured);
    let bounds = LimitSettings { max_running: Some(2), rate: None };
    let limit = client.put_limit("crm", &bounds).await.expect("the limit").value;
    assert_eq!((limit.name.as_str(), limit.settings), ("crm", bounds));
    assert_eq!(client.limit("crm").await.expect("the limit").value, limit);
    assert_eq!(client.limits(&NamesQuery::default()).await.expect("a page").value.limits.len(), 1);
    let open = OpenLimitRequest { partition: Some("tenant-42".to_owned()) };
    assert_eq!(client.open_limit("crm", &open).await.expect("the limit").value.throttled, 0);
    assert!(client.delete_limit("crm").await.expect("it is gone").value.deleted);
    let missing = client.job(999).await.expect_err("no such job");
    assert!(matches!(missing, Error::Problem { .. }) && missing.code() == Some(Code::JobNotFound));
}

#[tokio::test]
async fn queues() {
    let server = Server::start();
    let client = Client::new(&server.url()).expect("a client");
    assert_eq!(client.queue("q").await.expect_err("nobody used it").code(), Some(Code::QueueNotFound));
    let bounds = QueueSettings { max_depth: Some(1), ..QueueSettings::default() };
    assert_eq!(client.put_queue("q", &bounds).await.expect("the queue").value.settings, bounds);
    let pause = PauseRequest { reason: "deploy".to_owned(), by: Some("ann".to_owned()) };
    let paused = client.pause("q", &pause).await.expect("the queue").value.paused;
    assert_eq!((paused[0].reason.as_str(), paused[0].by.as_deref()), ("deploy", Some("ann")));
    let other = ResumeRequest { reason: Some("other".to_owned()) };
    let refused = client.resume("q", &other).await.expect_err("another reason");
    assert_eq!(refused.code(), Some(Code::PauseNotFound));
    assert!(client.resume("q", &ResumeRequest::default()).await.expect("the queue").value.paused.is_empty());
    assert!(client.drain("q", &DrainRequest::default()).await.expect("the queue").value.drained);
    assert_eq!(client.open("q").await.expect("the queue").value.draining, None);
    assert_eq!(client.queue("q").await.expect("the queue").value.settings, bounds);
}

#[tokio::test]
async fn the_server_itself() {
    let server = Server::start();
    let client = Client::new(&server.url()).expect("a client");
    client.enqueue(&job("a")).await.expect("a job");
    held(&client, "1").await;
    assert_eq!(client.stats().await.expect("facts").value.counts.running, 1);
    assert_eq!(client.queues(&NamesQuery::default()).await.expect("a page").value.queues.len(), 1);
    let workers = client.workers(&NamesQuery::default()).await.expect("a page").value.workers;
    assert_eq!((workers[0].running, workers[0].version.as_deref()), (1, Some(tagwerk_client::USER_AGENT)));
    assert!(client.alerts(&AlertsQuery::default()).await.expect("a page").value.alerts.is_empty());
    let missing = client.acknowledge(7, &AckRequest::default()).await.expect_err("no such alert");
    assert_eq!(missing.code(), Some(Code::AlertNotFound));
    assert_eq!(client.livez().await.expect("alive").value.status, "alive");
    assert!(client.readyz().await.expect("ready").value.checks.is_some());
    assert!(client.metrics().await.expect("text").value.contains("tagwerk_"));
    let document = client.openapi().await.expect("the document").value;
    let document: Value = serde_json::from_str(document.as_str()).expect("JSON");
    let paths = document["paths"].as_object().expect("paths");
    let calls: BTreeSet<String> = paths
        .iter()
        .flat_map(|(path, calls)| {
            calls.as_object().expect("calls").keys().map(move |method| format!("{method} {path}"))
        })
        .filter(|call| !call.starts_with("parameters "))
        .collect();
    let known: BTreeSet<String> = CALLS.iter().map(|call| (*call).to_owned()).collect();
    assert_eq!(calls, known, "the client and its tests above have a method for each call of the interface");
}

/// Every call of the interface; each has its method, used above.
const CALLS: &[&str] = &[
    "delete /jobs/{id}",
    "delete /limits/{name}",
    "delete /types/{type}",
    "get /alerts",
    "get /audit",
    "get /jobs",
    "get /jobs/{id}",
    "get /jobs/{id}/attempts",
    "get /jobs/{id}/explain",
    "get /livez",
    "get /metrics",
    "get /openapi.json",
    "get /queues",
    "get /queues/{queue}",
    "get /readyz",
    "get /review",
    "get /stats",
    "get /limits",
    "get /limits/{name}",
    "get /types",
    "get /types/{type}",
    "get /workers",
    "post /queues/{queue}/drain",
    "post /queues/{queue}/open",
    "post /queues/{queue}/pause",
    "post /queues/{queue}/resume",
    "put /queues/{queue}",
    "post /alerts/{id}/ack",
    "post /jobs",
    "post /jobs/bulk",
    "post /jobs/claim",
    "post /jobs/claim/bulk",
    "post /jobs/heartbeat/bulk",
    "post /jobs/report/bulk",
    "post /jobs/{id}/cancel",
    "post /jobs/{id}/checkpoint",
    "post /jobs/{id}/complete",
    "post /jobs/{id}/discard",
    "post /jobs/{id}/fail",
    "post /jobs/{id}/effects/{effect}/abort",
    "post /jobs/{id}/effects/{effect}/begin",
    "post /jobs/{id}/effects/{effect}/finish",
    "post /jobs/{id}/force-fail",
    "post /jobs/{id}/heartbeat",
    "post /jobs/{id}/release",
    "post /jobs/{id}/retry",
    "post /jobs/{id}/unblock",
    "post /limits/{name}/open",
    "put /limits/{name}",
    "put /types/{type}",
];
