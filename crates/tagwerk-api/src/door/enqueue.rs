//! Reads what producers send.

use serde_json::value::RawValue;

use super::body::{header_key, is_blank};
use super::reader::{JsonRule, Reader, Unknown};
use super::text::{Alphabet, TextRule};
use super::{Door, DoorLimits, NewJob, NewJobs, RetryFields};
use crate::OnMismatch;
use crate::problem::{Code, FieldCode, Refusal};
use crate::request::Subject;

/// Name of the header in messages.
const KEY_HEADER: &str = "Idempotency-Key";

impl Door {
    /// `POST /jobs`, with the bytes of the header `Idempotency-Key` if there is one.
    pub fn enqueue(&self, body: &[u8], header: Option<&[u8]>) -> Result<NewJob, Refusal> {
        let mut reader = Reader::body(body, Unknown::Refuse)?;
        let mut job = self.limits.job(&mut reader);
        reader.finish()?;
        if let Some(header) = header {
            self.limits.take_header_key(&mut job, header_key(header)?)?;
        }
        Ok(job)
    }

    /// `POST /jobs/bulk`. The header `Idempotency-Key` is refused: each job has its own key or none.
    pub fn enqueue_bulk(&self, body: &[u8], header: Option<&[u8]>) -> Result<NewJobs, Refusal> {
        let mut reader = Reader::body(body, Unknown::Refuse)?;
        reader.require("jobs");
        let jobs = reader.list("jobs", self.limits.bulk_jobs_max).unwrap_or_default();
        let atomic = reader.flag("atomic").unwrap_or(false);
        if header.is_some() {
            reader.fail(
                KEY_HEADER,
                FieldCode::Conflict,
                "cannot stand for many jobs; give each its idempotency_key",
            );
        }
        reader.finish()?;
        let jobs = jobs.into_iter().enumerate().map(|(index, job)| self.bulk_job(index, job)).collect();
        Ok(NewJobs { jobs, atomic })
    }

    /// A line of a streamed `POST /jobs/bulk`. `None`: it is blank, which is no job and no error.
    #[must_use]
    pub fn enqueue_line(&self, line: &[u8]) -> Option<Result<NewJob, Refusal>> {
        if is_blank(line) {
            return None;
        }
        let read = || {
            let mut reader = Reader::line(line)?;
            let job = self.limits.job(&mut reader);
            reader.finish().map(|_| job)
        };
        Some(read())
    }

    fn bulk_job(&self, index: usize, job: &RawValue) -> Result<NewJob, Refusal> {
        let mut reader = Reader::object(&format!("jobs[{index}]"), job, Unknown::Refuse)?;
        let job = self.limits.job(&mut reader);
        reader.finish().map(|_| job)
    }
}

/// The rules that several kinds of request share.
impl DoorLimits {
    pub(crate) const fn type_rule(&self) -> TextRule {
        TextRule::new(Alphabet::Printable, self.type_max_bytes)
    }

    pub(crate) const fn queue_rule(&self) -> TextRule {
        TextRule::new(Alphabet::Name, self.name_max_bytes)
    }

    pub(crate) const fn key_rule(&self) -> TextRule {
        TextRule::new(Alphabet::NoNul, self.key_max_bytes)
    }

    pub(crate) const fn traceparent_rule(&self) -> TextRule {
        TextRule::new(Alphabet::Printable, self.traceparent_max_bytes)
    }

    /// Free text for people.
    pub(crate) const fn prose_rule(&self) -> TextRule {
        TextRule::new(Alphabet::NoNul, self.text_max_bytes)
    }

    pub(crate) const fn payload_rule(&self) -> JsonRule {
        JsonRule {
            max_bytes: self.payload_max_bytes,
            max_depth: self.payload_max_depth,
            too_large: FieldCode::PayloadTooLarge,
        }
    }

    /// What is wrong is left in the reader; the job counts only if the reader finishes without an error.
    pub(crate) fn job(&self, reader: &mut Reader<'_>) -> NewJob {
        reader.require("type");
        reader.exclude("delay_seconds", "run_at");
        reader.exclude("max_age_seconds", "expires_at");
        if reader.has("on_head_failure") && !reader.has("ordering_key") {
            reader.fail("on_head_failure", FieldCode::Conflict, "means nothing without `ordering_key`");
        }
        let job = NewJob {
            job_type: reader.text("type", self.type_rule()).unwrap_or_default(),
            queue: reader.text("queue", self.queue_rule()),
            payload: reader.json_or_null("payload", self.payload_rule()),
            priority: reader.priority("priority", self.priority_max),
            delay_ms: reader.seconds("delay_seconds", &self.delay_ms),
            run_at_ms: reader.time("run_at"),
            max_age_ms: reader.seconds("max_age_seconds", &self.max_age_ms),
            expires_at_ms: reader.time("expires_at"),
            max_retries: reader.count("max_retries", &self.max_retries),
            max_lease_losses: reader.count("max_lease_losses", &self.max_lease_losses),
            lease_ms: reader.seconds("lease_seconds", &self.lease_ms),
            timeout_ms: reader.seconds("timeout_seconds", &self.timeout_ms),
            retry: self.retry(reader),
            on_unknown: reader.choice("on_unknown"),
            idempotency_key: reader.text("idempotency_key", self.key_rule()),
            idempotency_scope: reader.choice("idempotency_scope"),
            idempotency_ttl_ms: reader.seconds("idempotency_ttl_seconds", &self.ttl_ms),
            on_duplicate: reader.choice("on_duplicate"),
            on_mismatch: reader.choice("on_mismatch"),
            subject: reader.nested("subject", |subject| self.subject(subject)),
            correlation_id: reader.text("correlation_id", self.key_rule()),
            traceparent: reader.text("traceparent", self.traceparent_rule()),
            ordering_key: reader.text("ordering_key", self.key_rule()),
            on_head_failure: reader.choice("on_head_failure"),
            supersede: reader.flag("supersede").unwrap_or(false),
            limits: self.limits(reader),
            fair_key: reader.text("fair_key", self.key_rule()),
        };
        if job.supersede && job.subject.as_ref().is_none_or(|subject| subject.version.is_none()) {
            let why = "is needed with `supersede`: it says which job is newer";
            reader.fail("subject.version", FieldCode::Missing, why);
        }
        job
    }

    pub(crate) fn retry(&self, reader: &mut Reader<'_>) -> RetryFields {
        let read = |retry: &mut Reader<'_>| RetryFields {
            base_ms: retry.seconds("base_seconds", &self.retry_delay_ms),
            factor: retry.factor("factor", &self.retry_factor),
            cap_ms: retry.seconds("cap_seconds", &self.retry_delay_ms),
            jitter: retry.choice("jitter"),
        };
        reader.nested("retry", read).unwrap_or_default()
    }

    fn subject(&self, reader: &mut Reader<'_>) -> Subject {
        reader.require("kind");
        reader.require("id");
        Subject {
            kind: reader.text("kind", self.key_rule()).unwrap_or_default(),
            id: reader.text("id", self.key_rule()).unwrap_or_default(),
            version: reader.integer("version", 0..=self.id_max),
        }
    }

    /// The key of the header is that of the body, or the only one.
    fn take_header_key(&self, job: &mut NewJob, key: &str) -> Result<(), Refusal> {
        self.key_rule().check(key).map_err(|(code, message)| Refusal::field(KEY_HEADER, code, message))?;
        if job.idempotency_key.as_deref().is_some_and(|other| other != key) {
            return Err(Refusal::new(Code::IdempotencyKeyConflict, Code::IdempotencyKeyConflict.advice()));
        }
        job.idempotency_key = Some(key.to_owned());
        job.on_mismatch = job.on_mismatch.or(Some(OnMismatch::Reject));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
