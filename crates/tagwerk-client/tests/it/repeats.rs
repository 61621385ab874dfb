//! What is sent again, and what is not.

use tagwerk_client::api::problem::Code;
use tagwerk_client::api::request::{
    BulkEnqueueRequest, CancelRequest, ClaimRequest, CompleteRequest, EnqueueRequest, FailRequest,
    HeartbeatRequest, ReportBulkRequest, ReportEntry, RetryRequest,
};
use tagwerk_client::api::{Json, LeaseToken, ReportOutcome};
use tagwerk_client::{Client, Error};

use crate::script::{Script, Step, problem};

fn lease() -> LeaseToken {
    LeaseToken("t".to_owned())
}

fn job(key: Option<&str>) -> EnqueueRequest {
    EnqueueRequest {
        job_type: "t".to_owned(),
        idempotency_key: key.map(str::to_owned),
        ..EnqueueRequest::default()
    }
}

fn claim(request_id: Option<&str>) -> ClaimRequest {
    ClaimRequest {
        worker_id: "w".to_owned(),
        request_id: request_id.map(str::to_owned),
        ..ClaimRequest::default()
    }
}

/// How often a call is sent whose answers are all lost; four tries are allowed.
async fn tries<T>(times: usize, call: impl AsyncFn(&Client) -> Result<T, Error>) {
    let script = Script::run(vec![Step::HangUp; times]);
    let error = call(&script.client()).await.err().unwrap();
    assert!(matches!(error, Error::Broken { .. }) || (times < 4 && error.is_unreachable()), "{error:?}");
    let asked = script.asked();
    assert_eq!(asked.len(), times);
    assert!(asked.iter().all(|call| *call == asked[0]), "{asked:?}");
}

#[tokio::test]
async fn what_the_server_recognises_is_sent_again() {
    tries(4, async |client: &Client| client.stats().await).await;
    tries(4, async |client: &Client| client.enqueue(&job(Some("k"))).await).await;
    tries(4, async |client: &Client| client.claim(&claim(Some("r"))).await).await;
    let complete = CompleteRequest { lease: Some(lease()), ..CompleteRequest::default() };
    tries(4, async |client: &Client| client.complete(1, &complete).await).await;
    let fail = FailRequest { lease: Some(lease()), ..FailRequest::default() };
    tries(4, async |client: &Client| client.fail(1, &fail).await).await;
    let beat = HeartbeatRequest { lease: lease(), progress: None };
    tries(4, async |client: &Client| client.heartbeat(1, &beat).await).await;
    let bulk = BulkEnqueueRequest { jobs: vec![job(Some("a")), job(Some("b"))], atomic: None };
    tries(4, async |client: &Client| client.enqueue_bulk(&bulk).await).await;
    let raw = [Json::from_text(r#"{"type":"t","idempotency_key":"k"}"#.to_owned()).unwrap()];
    tries(4, async |client: &Client| client.enqueue_bulk_json(&raw).await).await;
}

#[tokio::test]
async fn what_it_does_not_recognise_is_sent_once() {
    tries(1, async |client: &Client| client.enqueue(&job(None)).await).await;
    tries(1, async |client: &Client| client.claim(&claim(None)).await).await;
    tries(1, async |client: &Client| client.complete(1, &CompleteRequest::default()).await).await;
    tries(1, async |client: &Client| client.fail(1, &FailRequest::default()).await).await;
    tries(1, async |client: &Client| client.cancel(1, &CancelRequest::default()).await).await;
    tries(1, async |client: &Client| client.retry(1, &RetryRequest::default()).await).await;
    let bulk = BulkEnqueueRequest { jobs: vec![job(Some("a")), job(None)], atomic: None };
    tries(1, async |client: &Client| client.enqueue_bulk(&bulk).await).await;
    let raw = [Json::from_text(r#"{"type":"t","idempotency_key":null}"#.to_owned()).unwrap()];
    tries(1, async |client: &Client| client.enqueue_bulk_json(&raw).await).await;
    let report = ReportBulkRequest {
        reports: vec![ReportEntry::new(1, ReportOutcome::Completed, None)],
        ..ReportBulkRequest::default()
    };
    tries(1, async |client: &Client| client.report_bulk(&report).await).await;
}

#[tokio::test]
async fn what_was_certainly_not_done_is_sent_again() {
    let script = Script::run(vec![
        problem(Code::StoreBusy, "Retry-After: 0\r\n"),
        problem(Code::Draining, ""),
        problem(Code::TooManyWaiting, ""),
        problem(Code::NotFailed, ""),
    ]);
    let error = script.client().retry(1, &RetryRequest::default()).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::NotFailed));
    assert_eq!(script.asked().len(), 4);
}

#[tokio::test]
async fn an_unknown_outcome_is_repeated_only_where_that_is_safe() {
    let unknown = || problem(Code::OutcomeUnknown, "");
    let script = Script::run(vec![unknown(), unknown(), problem(Code::InternalError, "")]);
    let client = script.client();
    let error = client.enqueue(&job(None)).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::OutcomeUnknown));
    let error = client.enqueue(&job(Some("k"))).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::InternalError));
    assert_eq!(script.asked().len(), 3);
}

#[tokio::test]
async fn a_server_that_wants_a_long_pause_is_left_alone() {
    let script = Script::run(vec![problem(Code::Draining, "Retry-After: 3600\r\n")]);
    assert_eq!(script.client().stats().await.unwrap_err().code(), Some(Code::Draining));
    assert_eq!(script.asked().len(), 1);
}
