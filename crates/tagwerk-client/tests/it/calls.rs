//! What goes out, and how answers are read.

use tagwerk_client::USER_AGENT;
use tagwerk_client::api::query::{DeleteQuery, JobsQuery, NamesQuery};
use tagwerk_client::api::request::{
    CancelRequest, ClaimRequest, CompleteRequest, DiscardRequest, EnqueueRequest, ForceFailRequest,
    TypeSettings, UnblockRequest,
};
use tagwerk_client::api::{Json, LeaseToken, Seconds, Status, Time};

use crate::script::{Script, Step, json};

const TOMBSTONE: &str = r#"{"id":7,"type":"t","status":"completed","finished_at":null,"pruned":true,"payload_differs":false,"replaced":null}"#;

fn job(job_type: &str) -> EnqueueRequest {
    EnqueueRequest { job_type: job_type.to_owned(), ..EnqueueRequest::default() }
}

#[tokio::test]
async fn a_call_says_who_it_is_and_what_it_sends() {
    let script = Script::run(vec![json(TOMBSTONE)]);
    let payload = Json::from_text(r#"{"b":1e400, "a":12345678901234567890123}"#.to_owned()).unwrap();
    let request = EnqueueRequest { payload: Some(payload), ..job("send-invoice") };
    let answer = script.client().enqueue(&request).await.unwrap();
    assert_eq!((answer.value.id(), answer.status, answer.text.as_str()), (7, 200, TOMBSTONE));
    let asked = script.asked();
    assert_eq!(asked[0].line, "POST /jobs");
    assert_eq!(
        asked[0].body,
        r#"{"type":"send-invoice","payload":{"b":1e400, "a":12345678901234567890123}}"#
    );
    assert!(asked[0].head.contains(&format!("user-agent: {USER_AGENT}")), "{}", asked[0].head);
    assert!(asked[0].head.contains("content-type: application/json"), "{}", asked[0].head);
}

#[tokio::test]
async fn headers_of_answers_are_read() {
    let head = "Idempotency-Replayed: true\r\nTagwerk-Ignored: colour, size\r\n";
    let idle = "Retry-After: 3\r\nTagwerk-Next-Due: 2026-07-01T12:00:00.000Z\r\n";
    let script = Script::run(vec![
        Step::Answer(200, head, TOMBSTONE.to_owned()),
        Step::Answer(200, idle, "null".to_owned()),
    ]);
    let client = script.client();
    let answer = client.enqueue(&job("t")).await.unwrap();
    assert!(answer.replayed);
    assert_eq!(answer.ignored, ["colour", "size"]);
    let claim = ClaimRequest { worker_id: "w".to_owned(), ..ClaimRequest::default() };
    let answer = client.claim(&claim).await.unwrap();
    assert_eq!(answer.value, None);
    assert_eq!(answer.retry_after.map(|wait| wait.as_secs()), Some(3));
    assert_eq!(answer.next_due_at, Some(Time::from_ms(1_782_907_200_000)));
    assert!(!answer.replayed);
    script.asked();
}

#[tokio::test]
async fn paths_and_queries_are_encoded() {
    let script = Script::run(vec![
        json(r#"{"jobs":[],"damaged":[],"next":null}"#),
        json(r#"{"queues":[],"next":null}"#),
        json("{}"),
        json("{}"),
    ]);
    let client = script.client();
    let query = JobsQuery {
        status: Some(Status::Failed),
        idempotency_key: Some("a/b &c".to_owned()),
        ..JobsQuery::default()
    };
    assert_eq!(client.jobs(&query).await.unwrap().value.jobs, []);
    client.queues(&NamesQuery { limit: Some(2), after: Some("ü".to_owned()) }).await.unwrap();
    client.delete_type("App\\Jobs/Send").await.unwrap_err();
    client.delete_job(9, &DeleteQuery { seen_version: Some(3) }).await.unwrap_err();
    let lines: Vec<_> = script.asked().into_iter().map(|asked| asked.line).collect();
    assert_eq!(
        lines,
        [
            "GET /jobs?status=failed&idempotency_key=a%2Fb%20%26c",
            "GET /queues?limit=2&after=%C3%BC",
            "DELETE /types/App%5CJobs%2FSend",
            "DELETE /jobs/9?seen_version=3",
        ]
    );
}

#[tokio::test]
async fn every_verb_has_its_path() {
    let steps = vec![Step::Answer(400, "Content-Type: text/plain\r\n", String::new()); 10];
    let script = Script::run(steps);
    let client = script.client();
    let lease = || LeaseToken("t".to_owned());
    let complete = CompleteRequest { lease: Some(lease()), ..CompleteRequest::default() };
    client.complete(1, &complete).await.unwrap_err();
    client.cancel(2, &CancelRequest::default()).await.unwrap_err();
    client
        .discard(3, &DiscardRequest { reason: "r".to_owned(), ..DiscardRequest::default() })
        .await
        .unwrap_err();
    let force = ForceFailRequest { reason: "r".to_owned(), ..ForceFailRequest::default() };
    client.force_fail(4, &force).await.unwrap_err();
    let unblock = UnblockRequest { reason: "r".to_owned(), ..UnblockRequest::default() };
    client.unblock(4, &unblock).await.unwrap_err();
    client.put_type("t", &TypeSettings::default()).await.unwrap_err();
    client.wait_for_job(5, Seconds::from_ms(1500)).await.unwrap_err();
    client.explain(6).await.unwrap_err();
    client.openapi().await.unwrap_err();
    client.readyz().await.unwrap_err();
    let lines: Vec<_> = script.asked().into_iter().map(|asked| asked.line).collect();
    assert_eq!(
        lines,
        [
            "POST /jobs/1/complete",
            "POST /jobs/2/cancel",
            "POST /jobs/3/discard",
            "POST /jobs/4/force-fail",
            "POST /jobs/4/unblock",
            "PUT /types/t",
            "GET /jobs/5?wait_seconds=1.5",
            "GET /jobs/6/explain",
            "GET /openapi.json",
            "GET /readyz?verbose",
        ]
    );
}

#[tokio::test]
async fn a_server_that_is_not_ready_answers_in_its_own_form() {
    let body = r#"{"status":"not_ready","checks":[{"name":"store","ok":false,"detail":"the disk is full"}]}"#;
    let script = Script::run(vec![Step::Answer(503, "Content-Type: application/json\r\n", body.to_owned())]);
    let answer = script.client().readyz().await.unwrap();
    assert_eq!((answer.status, answer.value.status.as_str()), (503, "not_ready"));
    script.asked();
}
