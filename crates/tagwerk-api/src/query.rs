//! Query strings: what lists and reads accept after the `?`. The same types are written by clients and read by the
//! server (through [`crate::door`]).

use crate::{AlertStatus, ErrorClass, FailureReason, Status, StreamResults, Time};

/// `GET /jobs`: every filter that has a value must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobsQuery {
    /// Where they stand.
    pub status: Option<Status>,
    /// What they do.
    pub job_type: Option<String>,
    /// The capacity that they draw on.
    pub queue: Option<String>,
    /// Kind of their business object.
    pub subject_kind: Option<String>,
    /// Id of their business object.
    pub subject_id: Option<String>,
    /// Their correlation id.
    pub correlation_id: Option<String>,
    /// Their idempotency key.
    pub idempotency_key: Option<String>,
    /// Created at or after.
    pub since: Option<Time>,
    /// Created before.
    pub until: Option<Time>,
    /// At most this many.
    pub limit: Option<u32>,
    /// Ids above this one.
    pub after: Option<i64>,
}

/// `GET /review`: every filter that has a value must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReviewQuery {
    /// What they do.
    pub job_type: Option<String>,
    /// The capacity that they draw on.
    pub queue: Option<String>,
    /// How their failure is to be understood.
    pub class: Option<ErrorClass>,
    /// Why they are in review.
    pub reason: Option<FailureReason>,
    /// Failed at or after.
    pub since: Option<Time>,
    /// Failed before.
    pub until: Option<Time>,
    /// At most this many.
    pub limit: Option<u32>,
    /// Ids above this one.
    pub after: Option<i64>,
}

/// `GET /audit`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Done at or after.
    pub since: Option<Time>,
    /// Done before.
    pub until: Option<Time>,
    /// At most this many.
    pub limit: Option<u32>,
    /// Numbers above this one.
    pub after: Option<i64>,
}

/// `GET /jobs/{id}/attempts`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptsQuery {
    /// At most this many.
    pub limit: Option<u32>,
    /// Lease sequence numbers above this one.
    pub after: Option<i64>,
}

/// `GET /queues`, `GET /types`, `GET /workers`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamesQuery {
    /// At most this many.
    pub limit: Option<u32>,
    /// Names after this one.
    pub after: Option<String>,
}

/// `GET /jobs/{id}`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobQuery {
    /// Wait at most this many milliseconds until it is completed, failed or cancelled.
    pub wait_ms: Option<i64>,
}

/// `POST /jobs/bulk` with a stream of lines
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamQuery {
    /// Which lines are answered one by one; those that were refused if it is not said.
    pub results: Option<StreamResults>,
}

/// `DELETE /jobs/{id}`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteQuery {
    /// Only if the job still has this version.
    pub seen_version: Option<i64>,
}

/// `GET /alerts`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlertsQuery {
    /// Only those that are open, or closed.
    pub status: Option<AlertStatus>,
    /// At most this many.
    pub limit: Option<u32>,
    /// Numbers above this one.
    pub after: Option<i64>,
}

/// `GET /readyz`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadyzQuery {
    /// Show what was looked at.
    pub verbose: bool,
}

/// Writes a query string, percent-encoded.
#[derive(Clone, Debug, Default)]
pub struct QueryString(String);

impl QueryString {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `name=value` if there is a value.
    #[must_use]
    pub fn with(mut self, name: &str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            self.0.push(if self.0.is_empty() { '?' } else { '&' });
            self.0.push_str(name);
            self.0.push('=');
            self.0.push_str(&encode(&value.to_string()));
        }
        self
    }

    /// `?a=1&b=2`, or nothing if there is nothing to say.
    #[must_use]
    pub fn finish(self) -> String {
        self.0
    }
}

/// Percent-encodes a text so that it can stand as one path segment or query value.
#[must_use]
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            for nibble in [byte >> 4, byte & 15] {
                encoded
                    .extend(char::from_digit(u32::from(nibble), 16).map(|digit| digit.to_ascii_uppercase()));
            }
        }
    }
    encoded
}

impl JobsQuery {
    /// `?status=…`, for the end of `/jobs`.
    #[must_use]
    pub fn to_query(&self) -> String {
        QueryString::new()
            .with("status", self.status)
            .with("type", self.job_type.as_ref())
            .with("queue", self.queue.as_ref())
            .with("subject_kind", self.subject_kind.as_ref())
            .with("subject_id", self.subject_id.as_ref())
            .with("correlation_id", self.correlation_id.as_ref())
            .with("idempotency_key", self.idempotency_key.as_ref())
            .with("since", self.since)
            .with("until", self.until)
            .with("limit", self.limit)
            .with("after", self.after)
            .finish()
    }
}

impl ReviewQuery {
    /// `?type=…`, for the end of `/review`.
    #[must_use]
    pub fn to_query(&self) -> String {
        QueryString::new()
            .with("type", self.job_type.as_ref())
            .with("queue", self.queue.as_ref())
            .with("class", self.class)
            .with("reason", self.reason)
            .with("since", self.since)
            .with("until", self.until)
            .with("limit", self.limit)
            .with("after", self.after)
            .finish()
    }
}

impl AuditQuery {
    /// `?since=…`, for the end of `/audit`.
    #[must_use]
    pub fn to_query(&self) -> String {
        QueryString::new()
            .with("since", self.since)
            .with("until", self.until)
            .with("limit", self.limit)
            .with("after", self.after)
            .finish()
    }
}

impl AlertsQuery {
    /// `?status=…`, for the end of `/alerts`.
    #[must_use]
    pub fn to_query(&self) -> String {
        QueryString::new()
            .with("status", self.status)
            .with("limit", self.limit)
            .with("after", self.after)
            .finish()
    }
}

impl AttemptsQuery {
    /// `?limit=…`, for the end of `/jobs/{id}/attempts`.
    #[must_use]
    pub fn to_query(&self) -> String {
        QueryString::new().with("limit", self.limit).with("after", self.after).finish()
    }
}

impl NamesQuery {
    /// `?limit=…`, for the end of `/queues`, `/types`, `/workers`.
    #[must_use]
    pub fn to_query(&self) -> String {
        QueryString::new().with("limit", self.limit).with("after", self.after.as_ref()).finish()
    }
}

impl JobQuery {
    /// `?wait_seconds=…`, for the end of `/jobs/{id}`.
    #[must_use]
    pub fn to_query(&self) -> String {
        QueryString::new().with("wait_seconds", self.wait_ms.map(crate::Seconds::from_ms)).finish()
    }
}

impl StreamQuery {
    /// `?results=…`, for the end of `/jobs/bulk`.
    #[must_use]
    pub fn to_query(&self) -> String {
        QueryString::new().with("results", self.results).finish()
    }
}

impl DeleteQuery {
    /// `?seen_version=…`, for the end of `/jobs/{id}`.
    #[must_use]
    pub fn to_query(&self) -> String {
        QueryString::new().with("seen_version", self.seen_version).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_strings_are_encoded() {
        let query = JobsQuery {
            status: Some(Status::Failed),
            job_type: Some("App\\Jobs\\Send & go ü".to_owned()),
            since: Some(Time::from_ms(0)),
            limit: Some(5),
            ..JobsQuery::default()
        };
        assert_eq!(
            query.to_query(),
            "?status=failed&type=App%5CJobs%5CSend%20%26%20go%20%C3%BC&since=1970-01-01T00%3A00%3A00.000Z&limit=5"
        );
        assert_eq!(JobsQuery::default().to_query(), "");
        assert_eq!(JobQuery { wait_ms: Some(1500) }.to_query(), "?wait_seconds=1.5");
    }
}
