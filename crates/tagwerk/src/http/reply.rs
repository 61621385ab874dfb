//! Answers that are no problem.

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_TYPE, ETAG, HeaderName};
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use tagwerk_api::answer::Encode;
use tagwerk_api::headers;
use tagwerk_api::problem::Code;

use super::problem::Refused;

/// What a handler returns.
pub(super) type Answer = Result<Response, Refused>;

/// A value as JSON.
pub(super) fn json<T: Serialize>(status: StatusCode, value: &T) -> Answer {
    Ok(with_body(status, Body::from(encode(value)?)))
}

/// A job as JSON.
pub(super) fn job(status: StatusCode, job: &impl Encode) -> Answer {
    Ok(with_body(status, Body::from(encode_job(job)?)))
}

/// A value as JSON, encoded on a thread that may take its time: for answers with many entries.
pub(super) async fn large_json<T: Serialize + Send + 'static>(
    status: StatusCode,
    make: impl FnOnce() -> T + Send + 'static,
) -> Answer {
    let bytes = off_thread(move || encode(&make())).await??;
    Ok(with_body(status, Body::from(bytes)))
}

/// Runs something that takes long outside of the threads that serve connections.
pub(super) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refused> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "a thread that worked on a request has ended");
        Refused::of(Code::InternalError)
    })
}

/// Room for an answer before it is written: a job without a large payload fits, so that its buffer never has to grow.
const USUAL_BYTES: usize = 2048;

/// The bytes of a value as JSON.
fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Refused> {
    serde_json::to_vec(value).map_err(|error| unwritten(&error))
}

/// The bytes of a job, or of many.
pub(super) fn encode_job(job: &impl Encode) -> Result<Vec<u8>, Refused> {
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    job.encode(&mut bytes).map_err(|error| unwritten(&error))?;
    Ok(bytes)
}

fn unwritten(error: &serde_json::Error) -> Refused {
    tracing::error!(%error, "an answer could not be written as JSON");
    Refused::of(Code::InternalError)
}

/// An answer with JSON that is already encoded.
pub(super) fn with_body(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(headers::JSON));
    response
}

/// Adds a header. A value that cannot be one is left out.
pub(super) fn set(response: &mut Response, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(HeaderName::from_static(name), value);
    }
}

/// Names of the ignored fields of a lenient report, if there are any.
pub(super) fn set_ignored(response: &mut Response, ignored: &[String]) {
    if !ignored.is_empty() {
        set(response, headers::TAGWERK_IGNORED, &ignored.join(", "));
    }
}

/// The job's version, for `If-Match`.
pub(super) fn set_version(response: &mut Response, version: i64) {
    if let Ok(value) = HeaderValue::from_str(&format!("\"{version}\"")) {
        response.headers_mut().insert(ETAG, value);
    }
}
