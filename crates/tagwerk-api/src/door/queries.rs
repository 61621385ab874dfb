//! Reads query strings.

use std::borrow::Cow;

use super::reader::Reader;
use super::text::{Alphabet, TextRule};
use super::{Door, DoorLimits};
use crate::Time;
use crate::problem::{Code, Refusal};
use crate::query::{
    AttemptsQuery, AuditQuery, JobQuery, JobsQuery, NamesQuery, ReadyzQuery, ReviewQuery, StreamQuery,
};

impl Door {
    /// `GET /jobs`
    pub fn jobs_query(&self, query: &str) -> Result<JobsQuery, Refusal> {
        let pairs = pairs(query)?;
        let mut reader = Reader::query(&pairs);
        let limits = &self.limits;
        let query = JobsQuery {
            status: reader.choice("status"),
            job_type: reader.text("type", limits.type_rule()),
            queue: reader.text("queue", limits.queue_rule()),
            subject_kind: reader.text("subject_kind", limits.key_rule()),
            subject_id: reader.text("subject_id", limits.key_rule()),
            correlation_id: reader.text("correlation_id", limits.key_rule()),
            idempotency_key: reader.text("idempotency_key", limits.key_rule()),
            since: reader.time("since").map(Time::from_ms),
            until: reader.time("until").map(Time::from_ms),
            limit: reader.count("limit", &limits.list_page),
            after: reader.integer("after", 0..=limits.id_max),
        };
        reader.finish().map(|_| query)
    }

    /// `GET /review`
    pub fn review_query(&self, query: &str) -> Result<ReviewQuery, Refusal> {
        let pairs = pairs(query)?;
        let mut reader = Reader::query(&pairs);
        let limits = &self.limits;
        let query = ReviewQuery {
            job_type: reader.text("type", limits.type_rule()),
            queue: reader.text("queue", limits.queue_rule()),
            class: reader.choice("class"),
            reason: reader.choice("reason"),
            since: reader.time("since").map(Time::from_ms),
            until: reader.time("until").map(Time::from_ms),
            limit: reader.count("limit", &limits.list_page),
            after: reader.integer("after", 0..=limits.id_max),
        };
        reader.finish().map(|_| query)
    }

    /// `GET /audit`
    pub fn audit_query(&self, query: &str) -> Result<AuditQuery, Refusal> {
        let pairs = pairs(query)?;
        let mut reader = Reader::query(&pairs);
        let query = AuditQuery {
            since: reader.time("since").map(Time::from_ms),
            until: reader.time("until").map(Time::from_ms),
            limit: reader.count("limit", &self.limits.list_page),
            after: reader.integer("after", 0..=self.limits.id_max),
        };
        reader.finish().map(|_| query)
    }

    /// `GET /jobs/{id}`
    pub fn job_query(&self, query: &str) -> Result<JobQuery, Refusal> {
        let pairs = pairs(query)?;
        let mut reader = Reader::query(&pairs);
        let query = JobQuery { wait_ms: reader.seconds("wait_seconds", &(0..=self.limits.wait_max_ms)) };
        reader.finish().map(|_| query)
    }

    /// `POST /jobs/bulk` with a stream of lines
    pub fn stream_query(&self, query: &str) -> Result<StreamQuery, Refusal> {
        let pairs = pairs(query)?;
        let mut reader = Reader::query(&pairs);
        let query = StreamQuery { results: reader.choice("results") };
        reader.finish().map(|_| query)
    }

    /// `GET /jobs/{id}/attempts`
    pub fn attempts_query(&self, query: &str) -> Result<AttemptsQuery, Refusal> {
        let pairs = pairs(query)?;
        let mut reader = Reader::query(&pairs);
        let query = AttemptsQuery {
            limit: reader.count("limit", &self.limits.list_page),
            after: reader.integer("after", 0..=self.limits.id_max),
        };
        reader.finish().map(|_| query)
    }

    /// `GET /queues`, `GET /types`, `GET /workers`
    pub fn names_query(&self, query: &str) -> Result<NamesQuery, Refusal> {
        let pairs = pairs(query)?;
        let mut reader = Reader::query(&pairs);
        let query = NamesQuery {
            limit: reader.count("limit", &self.limits.list_page),
            after: reader.text("after", self.limits.last_name_rule()),
        };
        reader.finish().map(|_| query)
    }

    /// `GET /readyz`
    pub fn readyz_query(&self, query: &str) -> Result<ReadyzQuery, Refusal> {
        let pairs = pairs(query)?;
        let mut reader = Reader::query(&pairs);
        let query = ReadyzQuery { verbose: reader.flag("verbose").unwrap_or(false) };
        reader.finish().map(|_| query)
    }

    /// Everything that takes no query.
    pub fn no_query(&self, query: &str) -> Result<(), Refusal> {
        Reader::query(&pairs(query)?).finish().map(|_| ())
    }
}

impl DoorLimits {
    /// `after` of a list of names: any name that a page can have ended with.
    pub(crate) const fn last_name_rule(&self) -> TextRule {
        let longest =
            if self.type_max_bytes > self.key_max_bytes { self.type_max_bytes } else { self.key_max_bytes };
        TextRule::new(Alphabet::NoNul, longest)
    }
}

/// The parameters of a query string (without `?`), decoded.
pub(crate) fn pairs(query: &str) -> Result<Vec<(String, String)>, Refusal> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        Ok((decode(name)?, decode(value)?))
    };
    query.split('&').filter(|part| !part.is_empty()).map(pair).collect()
}

/// Undoes percent-encoding; `+` is a space. A `%` that begins no code stands for itself.
fn decode(text: &str) -> Result<String, Refusal> {
    let text = if text.contains('+') { Cow::Owned(text.replace('+', " ")) } else { Cow::Borrowed(text) };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some((plain, tail)) = rest.split_once('%') {
        bytes.extend_from_slice(plain.as_bytes());
        let code = tail.split_at_checked(2).and_then(|(digits, tail)| Some((hex(digits)?, tail)));
        let (byte, tail) = code.unwrap_or((b'%', tail));
        bytes.push(byte);
        rest = tail;
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes)
        .map_err(|_| Refusal::new(Code::InvalidRequest, "the query is not UTF-8; percent-encode UTF-8 text"))
}

fn hex(digits: &str) -> Option<u8> {
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    are_digits.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::tests::door;
    use crate::{ErrorClass, FailureReason, Status};

    #[test]
    fn what_a_client_writes_is_read_back() {
        let jobs = JobsQuery {
            status: Some(Status::Failed),
            job_type: Some("App\\Jobs\\Send & go = ü+%".to_owned()),
            queue: Some("q".to_owned()),
            subject_kind: Some("order".to_owned()),
            subject_id: Some("a/b".to_owned()),
            correlation_id: Some("c".to_owned()),
            idempotency_key: Some("k".to_owned()),
            since: Some(Time::from_ms(1)),
            until: Some(Time::from_ms(1_782_907_200_000)),
            limit: Some(1000),
            after: Some(7),
        };
        assert_eq!(door().jobs_query(&jobs.to_query()[1..]), Ok(jobs));
        let review = ReviewQuery {
            class: Some(ErrorClass::Unknown),
            reason: Some(FailureReason::WorkerLost),
            ..ReviewQuery::default()
        };
        assert_eq!(door().review_query(&review.to_query()[1..]), Ok(review));
        let names = NamesQuery { limit: Some(1), after: Some("a b".to_owned()) };
        assert_eq!(door().names_query(&names.to_query()[1..]), Ok(names));
        let attempts = AttemptsQuery { limit: Some(2), after: Some(0) };
        assert_eq!(door().attempts_query(&attempts.to_query()[1..]), Ok(attempts));
        assert_eq!(door().jobs_query(""), Ok(JobsQuery::default()));
    }

    #[test]
    fn wrong_queries() {
        for (query, error) in [
            ("state=failed", "state: is not known here; did you mean `status`?"),
            (
                "operation_id=1",
                "operation_id: is not known here; known are status, type, queue, subject_kind, subject_id, correlation_id, idempotency_key, since, until, limit, after",
            ),
            (
                "status=done",
                "status: must be one of pending, running, completed, failed, cancelled, not \"done\"",
            ),
            ("limit=0", "limit: must be between 1 and 1000"),
            ("limit=1001", "limit: must be between 1 and 1000"),
            ("limit=ten", "limit: must be a whole number"),
            ("limit=", "limit: must be a whole number"),
            ("limit=1&limit=2", "limit: stands there twice; send it once"),
            ("after=-1", "after: must be between 0 and 9007199254740991"),
            (
                "since=2026-07-01T12:00:00",
                "since: a time needs its zone: write 2026-07-01T12:00:00Z or 2026-07-01T12:00:00+02:00",
            ),
            ("since=yesterday", "since: not a time: write RFC 3339 such as 2026-07-01T12:00:00Z"),
            ("type=a%00b", "type: must not contain the character '\\0'"),
            ("type=%FF", "the query is not UTF-8; percent-encode UTF-8 text"),
            ("queue=", "queue: must not be empty"),
        ] {
            let refusal = door().jobs_query(query).unwrap_err();
            assert_eq!((refusal.detail.as_str(), refusal.code), (error, Code::InvalidRequest), "{query}");
        }
        assert_eq!(door().no_query("x"), Err(door().no_query("x=").unwrap_err()));
        assert_eq!(door().no_query("x").unwrap_err().detail, "x: is not known here; nothing can be given");
        assert_eq!(door().no_query(""), Ok(()));
    }

    #[test]
    fn waits_and_flags() {
        assert_eq!(door().job_query("wait_seconds=1.5"), Ok(JobQuery { wait_ms: Some(1500) }));
        assert!(door().job_query("wait_seconds=60.001").is_err());
        assert!(door().job_query("wait=5").unwrap_err().detail.contains("did you mean `wait_seconds`?"));
        for (query, verbose) in
            [("verbose", true), ("verbose=", true), ("verbose=true", true), ("verbose=0", false), ("", false)]
        {
            assert_eq!(door().readyz_query(query), Ok(ReadyzQuery { verbose }), "{query}");
        }
        assert!(door().readyz_query("verbose=perhaps").is_err());
    }

    #[test]
    fn decoding() {
        for (text, decoded) in [
            ("a+b%20c", "a b c"),
            ("%C3%BC", "ü"),
            ("100%", "100%"),
            ("%zz%2", "%zz%2"),
            ("%+1", "% 1"),
            ("%e2%82%ac", "€"),
        ] {
            assert_eq!(decode(text).unwrap(), decoded);
        }
        assert!(decode("%C3").is_err());
    }
}
