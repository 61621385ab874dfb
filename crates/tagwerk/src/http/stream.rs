//! `POST /jobs/bulk` with a stream of lines: jobs of any number through one request, in bounded memory.
//!
//! ```text
//! body ─▶ lines ─▶ batches ─▶ decoded ─▶ engine, one batch at a time, in the order of the lines ─▶ answer
//! ```
//!
//! Guarantees: while a batch is stored the next ones are read and decoded; a line is a job only if its end has come; what
//! was read whole is stored, whatever becomes of the client; a refused line touches no other; repeated keys are judged as
//! if each line were a call of its own. The answer waits in memory until everything has been read, so a client that
//! reads nothing before it has written all is served; only with `results=all` does reading wait for the client.
//!
//! Deliberately absent: `atomic` (nothing of any length is stored at once), and a limit of the whole length.

#[cfg(test)]
mod fuzzed;
mod lines;
mod reading;
mod store;
mod told;

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use http_body_util::BodyExt as _;
use tagwerk_api::StreamResults;
use tagwerk_api::headers;
use tagwerk_api::problem::{Code, FieldCode, Refusal};
use tagwerk_core::access::Reach;
use tagwerk_core::limits;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;

use super::App;
use super::access::Rights;
use super::problem::Refused;
use super::reading::patience;
use super::reply::{self, Answer};
use super::sent::{check_plain, discard};
use lines::Lines;
use told::{PieceBody, Told};

/// Turns at streaming.
pub(super) struct Streams {
    free: Arc<Semaphore>,
}

impl Default for Streams {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(limits::STREAMED_ENQUEUES_MAX)) }
    }
}

impl Streams {
    /// Waits a bounded time for a turn.
    async fn turn(&self) -> Result<OwnedSemaphorePermit, Refused> {
        let turn = Arc::clone(&self.free).acquire_owned();
        match timeout(patience(limits::ADMISSION_MS), turn).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => Err(Refused::new(
                Code::Overloaded,
                format!(
                    "{} streams are under way, and no more are read at once; send it again in a moment",
                    limits::STREAMED_ENQUEUES_MAX
                ),
            )),
        }
    }
}

/// Jobs, one a line.
pub(super) async fn enqueue(app: Arc<App>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    let reach = Rights::of(&parts.extensions).reach();
    let admitted = match admit(&app, &parts) {
        Ok(results) => app.streams.turn().await.map(|turn| (results, turn)),
        Err(refused) => Err(refused),
    };
    let (results, turn) = match admitted {
        Ok(admitted) => admitted,
        Err(refused) => {
            discard(body, &parts.headers);
            return Err(refused);
        }
    };
    if results == StreamResults::Refused {
        // On a task of its own: it ends what it has begun, whatever becomes of the connection.
        let answer = tokio::spawn(run(app, (body, turn, reach), Told::refused_only())).await;
        let text = answer.map_err(|error| {
            tracing::error!(%error, "a stream has ended with a panic");
            Refused::of(Code::InternalError)
        })?;
        return Ok(lines_of(Body::from(text)));
    }
    let (pieces, mut answer) = mpsc::channel(limits::STREAM_PIECES_MAX);
    tokio::spawn(run(app, (body, turn, reach), Told::all(pieces)));
    // The head goes out with the first line: a client that waits to be told to send its body is told so before.
    let first = answer.recv().await;
    Ok(lines_of(Body::new(PieceBody::new(first, answer))))
}

fn lines_of(body: Body) -> axum::response::Response {
    let mut response = reply::with_body(StatusCode::OK, body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(headers::NDJSON));
    response
}

/// What can be judged before the first byte of the body.
fn admit(app: &App, parts: &http::request::Parts) -> Result<StreamResults, Refused> {
    let query = app.door.stream_query(parts.uri.query().unwrap_or_default())?;
    check_plain(&parts.headers)?;
    if parts.headers.contains_key(headers::IDEMPOTENCY_KEY) {
        let message = "cannot stand for many jobs; give each its idempotency_key";
        return Err(Refusal::field("Idempotency-Key", FieldCode::Conflict, message).into());
    }
    if app.is_stopping() {
        return Err(Refused::of(Code::Draining));
    }
    Ok(query.results.unwrap_or(StreamResults::Refused))
}

/// Reads, stores and answers, to the end. What is returned is the part of the answer that has not gone out.
async fn run(app: Arc<App>, from: (Body, OwnedSemaphorePermit, Option<Arc<Reach>>), told: Told) -> Bytes {
    let (mut body, turn, reach) = from;
    let lines = Lines::new(app.door.limits().payload_max_bytes + limits::STREAM_LINE_EXTRA_BYTES);
    let (batches, taken) = mpsc::channel(1);
    let reading = reading::read(&mut body, (lines, batches), app.stopping.clone());
    let storing = store::store((&app, reach), taken, told);
    let (end, (mut told, failed)) = tokio::join!(reading, storing);
    let failure = failed.or_else(|| end.failure());
    let ended_early = failure.is_some();
    let rest = told.end(failure).await;
    drop(turn);
    if ended_early {
        tokio::spawn(read_on(body));
    }
    rest
}

/// Reads on and forgets: a connection that is closed with unread bytes is reset, and a client that is still writing would
/// not see the answer.
async fn read_on(mut body: Body) {
    let reading =
        async { while let Ok(Some(Ok(_))) = timeout(patience(limits::BODY_PAUSE_MS), body.frame()).await {} };
    // Longer than that nobody is waited for.
    drop(timeout(patience(limits::BODY_READ_MS), reading).await);
}
