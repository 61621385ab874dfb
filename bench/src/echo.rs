//! The ceiling of HTTP: a route that reads a job as JSON and answers one as JSON, and does nothing else.
//!
//! Runtime, router and connection are those of the product (tokio with a thread a core, axum, hyper's automatic
//! protocol), the body has the fields of a job. What the product does more is its own work.

use std::borrow::Cow;

use anyhow::Context as _;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Request, StatusCode, header};
use axum::response::Response;
use axum::routing::post;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::net::TcpListener;
use tower::Service as _;

/// What is sent.
#[derive(Deserialize)]
struct Sent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    payload: &'a RawValue,
    #[serde(borrow)]
    idempotency_key: Option<Cow<'a, str>>,
}

/// What is answered: about as much as a job's answer.
#[derive(Serialize)]
struct Answered<'a> {
    id: u64,
    #[serde(rename = "type")]
    kind: &'a str,
    queue: &'a str,
    status: &'a str,
    priority: u8,
    idempotency_key: Option<&'a str>,
    attempt: u32,
    max_retries: u32,
    retry_count: u32,
    version: u64,
    created_at: &'a str,
    updated_at: &'a str,
    run_at: &'a str,
    finished_at: Option<&'a str>,
    subject: Option<&'a str>,
    correlation_id: Option<&'a str>,
    lease_expires_at: Option<&'a str>,
    worker_id: Option<&'a str>,
    error: Option<&'a str>,
    result: Option<&'a str>,
    payload: &'a RawValue,
}

/// Serves until it is ended.
pub(crate) fn run() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(serve())
}

async fn serve() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("no port")?;
    println!("listening on http://{}", listener.local_addr()?);
    let router = Router::new().route("/jobs", post(echo));
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).keep_alive(true);
    loop {
        let (stream, _) = listener.accept().await.context("connections cannot be accepted")?;
        stream.set_nodelay(true)?;
        let (router, builder) = (router.clone(), builder.clone());
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let mut router = router.clone();
                async move { router.call(Request::map(request, Body::new)).await }
            });
            // That a client goes away is no matter here.
            drop(builder.serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

async fn echo(body: Bytes) -> Response {
    let answer = serde_json::from_slice(&body).and_then(|sent| answer(&sent));
    let (status, bytes) = match answer {
        Ok(bytes) => (StatusCode::CREATED, bytes),
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string().into_bytes()),
    };
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn answer(sent: &Sent<'_>) -> serde_json::Result<Vec<u8>> {
    let time = "2026-01-01T00:00:00.000Z";
    serde_json::to_vec(&Answered {
        id: 1_234_567,
        kind: &sent.kind,
        queue: "default",
        status: "pending",
        priority: 50,
        idempotency_key: sent.idempotency_key.as_deref(),
        attempt: 0,
        max_retries: 3,
        retry_count: 0,
        version: 1,
        created_at: time,
        updated_at: time,
        run_at: time,
        finished_at: None,
        subject: None,
        correlation_id: None,
        lease_expires_at: None,
        worker_id: None,
        error: None,
        result: None,
        payload: sent.payload,
    })
}
