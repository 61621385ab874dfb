//! What a call brought.

use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use tagwerk_api::{Time, headers, parse_rfc3339};

/// The answer to a call that succeeded.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer<T> {
    /// What it says.
    pub value: T,
    /// The HTTP status: 201 a new job, 200 otherwise.
    pub status: u16,
    /// The body as the server wrote it, byte for byte.
    pub text: String,
    /// The same call had been accepted before: the job existed, or the report had counted.
    pub replayed: bool,
    /// A claim found nothing: ask again after this.
    pub retry_after: Option<Duration>,
    /// A claim found nothing: when the next job that it could get is due, if known.
    pub next_due_at: Option<Time>,
    /// Fields of a report that the server did not know and ignored.
    pub ignored: Vec<String>,
}

impl<T> Answer<T> {
    /// The same answer with something else made of what it says.
    #[must_use]
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Answer<U> {
        Answer {
            value: make(self.value),
            status: self.status,
            text: self.text,
            replayed: self.replayed,
            retry_after: self.retry_after,
            next_due_at: self.next_due_at,
            ignored: self.ignored,
        }
    }

    pub(crate) fn new(value: T, status: u16, (headers, text): (&HeaderMap, String)) -> Self {
        let is_true = |name| header(headers, name) == Some("true");
        let ignored = header(headers, headers::TAGWERK_IGNORED).unwrap_or_default();
        Self {
            value,
            status,
            text,
            replayed: is_true(headers::IDEMPOTENCY_REPLAYED) || is_true(headers::REPORT_REPLAYED),
            retry_after: retry_after(headers),
            next_due_at: header(headers, headers::TAGWERK_NEXT_DUE)
                .and_then(|text| parse_rfc3339(text).ok())
                .map(Time::from_ms),
            ignored: ignored.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        }
    }
}

/// The text of a header.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// `Retry-After` in seconds; its other form, a date, would need a clock and is ignored.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    header(headers, RETRY_AFTER.as_str())?.trim().parse().ok().map(Duration::from_secs)
}
