//! What a client sends: the body, read within its limits.
//!
//! A body over its limit is refused by its `Content-Length`, or at the byte that is too many, never after it was read
//! whole. All bodies being read or worked on share a bounded room, so memory stays bounded whatever comes; small bodies
//! have a room of their own, so that a heartbeat does not wait behind bulk enqueues.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, USER_AGENT};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use http_body_util::BodyExt;
use tagwerk_api::door::{Door, check_content_type, parse_job_id};
use tagwerk_api::problem::{Code, Refusal};
use tagwerk_core::{JobId, limits};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use super::App;
use super::access::Rights;
use super::ask::Caller;
use super::problem::Refused;
use super::reading::patience;
use super::reply::off_thread;

/// Room is counted in units of this many bytes.
const UNIT_BYTES: usize = 1024;
/// A body that needs longer than a moment to be read is read on a thread of its own.
const QUICK_BYTES: usize = limits::SMALL_BODY_BYTES;

/// Room for bodies.
pub(super) struct Rooms {
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

impl Default for Rooms {
    fn default() -> Self {
        let room = |bytes: usize| Arc::new(Semaphore::new(bytes / UNIT_BYTES));
        Self {
            small: room(limits::SMALL_BODIES_IN_FLIGHT_BYTES),
            large: room(limits::BODIES_IN_FLIGHT_BYTES),
        }
    }
}

impl Rooms {
    /// Waits a bounded time for room for this many bytes.
    async fn enter(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refused> {
        let room = if bytes <= limits::SMALL_BODY_BYTES { &self.small } else { &self.large };
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        match in_time(limits::ADMISSION_MS, Arc::clone(room).acquire_many_owned(units)).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Refused::new(
                Code::Overloaded,
                "too many large requests are under way; send it again in a moment",
            )),
        }
    }
}

/// A body that has been read, of at most `LIMIT` bytes, with the headers that came along.
pub(super) struct Sent<const LIMIT: usize = { limits::BODY_MAX_BYTES }> {
    headers: HeaderMap,
    body: Bytes,
    caller: Option<Caller>,
    rights: Rights,
    /// Given back when the request has been worked on.
    _room: Vec<OwnedSemaphorePermit>,
}

/// A body of a bulk enqueue.
pub(super) type SentBulk = Sent<{ limits::BULK_BODY_MAX_BYTES }>;

impl<const LIMIT: usize> Sent<LIMIT> {
    /// Reads the body through the door.
    pub(super) async fn decode<T: Send + 'static>(
        &self,
        app: &App,
        read: impl FnOnce(&Door, &[u8]) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refused> {
        if self.body.len() <= QUICK_BYTES {
            return Ok(read(&app.door, &self.body)?);
        }
        let (door, body) = (Arc::clone(&app.door), self.body.clone());
        Ok(off_thread(move || read(&door, &body)).await??)
    }

    /// A header that may stand there once.
    pub(super) fn single(&self, name: &str) -> Result<Option<HeaderValue>, Refused> {
        single(&self.headers, name)
    }

    /// Whoever waits for the answer.
    pub(super) fn caller(&self) -> Option<Caller> {
        self.caller.clone()
    }

    /// What it may do.
    pub(super) fn rights(&self) -> Rights {
        self.rights.clone()
    }

    /// How the client's software calls itself, as far as it can be shown.
    pub(super) fn agent(&self) -> Option<String> {
        let agent = self.headers.get(USER_AGENT)?.to_str().ok()?;
        let shown = limits::check::cut_text(agent, limits::WORKER_ID_MAX_BYTES);
        (!shown.is_empty()).then(|| shown.into_owned())
    }
}

/// A header that may stand there once: two different answers to one question are none.
pub(super) fn single(headers: &HeaderMap, name: &str) -> Result<Option<HeaderValue>, Refused> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().cloned();
    match values.next() {
        None => Ok(first),
        Some(_) => {
            Err(Refused::new(Code::InvalidRequest, format!("the header {name} stands there more than once")))
        }
    }
}

impl<const LIMIT: usize> FromRequest<Arc<App>> for Sent<LIMIT> {
    type Rejection = Refused;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Refused> {
        let (parts, body) = request.into_parts();
        let claimed = claimed_length(&parts.headers);
        if claimed.is_some_and(|length| length > LIMIT) {
            discard(body, &parts.headers);
            return Err(too_large(LIMIT));
        }
        let reading = collect(body, (claimed, LIMIT), &app.rooms);
        let read = in_time(limits::BODY_READ_MS, reading).await.unwrap_or_else(|_| Err(too_slow()));
        let (body, room) = match read? {
            Collected::Whole(body, room) => (body, room),
            Collected::TooLarge(rest) => {
                discard(rest, &parts.headers);
                return Err(too_large(LIMIT));
            }
        };
        let content_type = parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        check_content_type(content_type, &body)?;
        check_encoding(&parts.headers, &body)?;
        let caller = parts.extensions.get::<Caller>().cloned();
        let rights = Rights::of(&parts.extensions);
        Ok(Self { headers: parts.headers, body, caller, rights, _room: room })
    }
}

/// Bodies are taken as they are. Said so, since a packed body would only be called unreadable.
fn check_encoding(headers: &HeaderMap, body: &[u8]) -> Result<(), Refused> {
    if body.is_empty() { Ok(()) } else { check_plain(headers) }
}

/// The same for a body that has not been read.
pub(super) fn check_plain(headers: &HeaderMap) -> Result<(), Refused> {
    let Some(encoding) = headers.get(CONTENT_ENCODING) else { return Ok(()) };
    if encoding.as_bytes().eq_ignore_ascii_case(b"identity") {
        return Ok(());
    }
    Err(Refused::new(
        Code::UnsupportedMediaType,
        "the body is compressed (Content-Encoding), which is not supported; send it as it is",
    ))
}

fn too_large(limit: usize) -> Refused {
    Refused::new(
        Code::BodyTooLarge,
        format!("the body has more than the {limit} bytes that are allowed here"),
    )
}

fn too_slow() -> Refused {
    Refused::of(Code::RequestTimeout)
}

/// What `Content-Length` says.
fn claimed_length(headers: &HeaderMap) -> Option<usize> {
    let length = headers.get(CONTENT_LENGTH)?.to_str().ok().and_then(|text| text.parse().ok());
    // A length that no computer can count is over every limit.
    Some(length.unwrap_or(usize::MAX))
}

/// What became of a body.
enum Collected {
    Whole(Bytes, Vec<OwnedSemaphorePermit>),
    /// One byte too many has come; this is what is left of it.
    TooLarge(Body),
}

/// Awaits for so many milliseconds at most. What is there at once, as a small body mostly is, needs neither clock nor timer.
async fn in_time<F: Future>(ms: i64, future: F) -> Result<F::Output, Elapsed> {
    let mut future = pin!(future);
    match poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => timeout(patience(ms), future).await,
    }
}

/// Reads a body. Room is taken before the bytes are: for all of a body of known length, else as they come.
async fn collect(mut body: Body, sizes: (Option<usize>, usize), rooms: &Rooms) -> Result<Collected, Refused> {
    let (claimed, limit) = sizes;
    if body.is_end_stream() {
        return Ok(Collected::Whole(Bytes::new(), Vec::new()));
    }
    let mut taken = claimed.unwrap_or(limits::SMALL_BODY_BYTES);
    let mut room = vec![rooms.enter(taken).await?];
    let mut bytes = Vec::with_capacity(claimed.unwrap_or_default());
    while let Some(frame) = in_time(limits::BODY_PAUSE_MS, body.frame()).await.map_err(|_| too_slow())? {
        let frame = frame.map_err(|error| {
            tracing::debug!(%error, "a body broke off");
            Refused::new(Code::InvalidJson, "the body broke off before its end; send it again whole")
        })?;
        let Ok(data) = frame.into_data() else { continue };
        let length = bytes.len() + data.len();
        if length > limit {
            return Ok(Collected::TooLarge(body));
        }
        if length > taken {
            // What is larger than small is large: it does not nibble at the room of the small ones.
            let more = length.max(2 * taken).min(limit) - taken;
            room.push(rooms.enter(more.max(limits::SMALL_BODY_BYTES + 1)).await?);
            taken += more;
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Collected::Whole(bytes.into(), room))
}

/// Reads on and forgets, within bounds: a connection that is closed with unread bytes is reset, and the client would not
/// see the answer. A client that waits to be told to go on is not told so, and sends nothing.
pub(super) fn discard(mut body: Body, headers: &HeaderMap) {
    if headers.contains_key(EXPECT) {
        return;
    }
    let reading = async move {
        let mut left = limits::BULK_BODY_MAX_BYTES;
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            let Some(rest) = left.checked_sub(length) else { break };
            left = rest;
        }
    };
    tokio::spawn(timeout(patience(limits::BODY_PAUSE_MS), reading));
}

/// `{id}` of a path.
pub(super) struct PathId(pub(super) JobId);

impl FromRequestParts<Arc<App>> for PathId {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Refused> {
        let PathText(text) = PathText::from_request_parts(parts, app).await?;
        Ok(Self(JobId(parse_job_id(&text)?)))
    }
}

/// `{id}` and `{effect}` of a path.
pub(super) struct PathEffect {
    pub(super) id: JobId,
    pub(super) name: String,
}

impl FromRequestParts<Arc<App>> for PathEffect {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Refused> {
        let found = Path::<(String, String)>::from_request_parts(parts, app).await;
        let not_text = |_| Refused::new(Code::NotFound, "the path is not percent-encoded UTF-8");
        let Path((id, name)) = found.map_err(not_text)?;
        let id = JobId(parse_job_id(&id)?);
        app.door.effect_name(&name)?;
        Ok(Self { id, name })
    }
}

/// The one variable part of a path, decoded.
pub(super) struct PathText(pub(super) String);

impl FromRequestParts<Arc<App>> for PathText {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Refused> {
        let found = Path::<String>::from_request_parts(parts, app).await;
        let not_text = |_| Refused::new(Code::NotFound, "the path is not percent-encoded UTF-8");
        found.map(|Path(text)| Self(text)).map_err(not_text)
    }
}

/// The query string, empty if there is none.
pub(super) struct Query(pub(super) String);

impl FromRequestParts<Arc<App>> for Query {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Refused> {
        Ok(Self(parts.uri.query().unwrap_or_default().to_owned()))
    }
}

/// A call that takes nothing after the `?`.
pub(super) struct NoQuery;

impl FromRequestParts<Arc<App>> for NoQuery {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Refused> {
        app.door.no_query(parts.uri.query().unwrap_or_default())?;
        Ok(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn small_bodies_do_not_wait_behind_large_ones() {
        let rooms = Rooms::default();
        let large = rooms.enter(limits::BODIES_IN_FLIGHT_BYTES).await.unwrap();
        let small = rooms.enter(limits::SMALL_BODY_BYTES).await.unwrap();
        assert_eq!(rooms.large.available_permits(), 0);
        drop((large, small));
        assert_eq!(rooms.large.available_permits() * UNIT_BYTES, limits::BODIES_IN_FLIGHT_BYTES);
        assert_eq!(rooms.small.available_permits() * UNIT_BYTES, limits::SMALL_BODIES_IN_FLIGHT_BYTES);
    }

    #[test]
    fn the_largest_body_fits_into_its_room() {
        const { assert!(limits::BULK_BODY_MAX_BYTES <= limits::BODIES_IN_FLIGHT_BYTES) };
        assert!(u32::try_from(limits::BODIES_IN_FLIGHT_BYTES / UNIT_BYTES).is_ok());
    }

    #[test]
    fn lengths_that_cannot_be_counted_are_too_large() {
        let length = |text: &'static str| {
            claimed_length(&HeaderMap::from_iter([(CONTENT_LENGTH, HeaderValue::from_static(text))]))
        };
        assert_eq!(length("12"), Some(12));
        assert_eq!(length("99999999999999999999999"), Some(usize::MAX));
        assert_eq!(length("-1"), Some(usize::MAX));
        assert_eq!(claimed_length(&HeaderMap::new()), None);
    }

    #[test]
    fn a_header_that_stands_there_twice_is_refused() {
        let mut headers = HeaderMap::new();
        assert!(single(&headers, "if-match").unwrap().is_none());
        headers.append("if-match", HeaderValue::from_static("1"));
        assert_eq!(single(&headers, "if-match").unwrap(), Some(HeaderValue::from_static("1")));
        headers.append("if-match", HeaderValue::from_static("1"));
        assert!(single(&headers, "if-match").is_err());
    }
}
