//! The jobs of a run: what they are, and how each is named.

use tagwerk_client::api::request::{EnqueueRequest, RetrySettings, Subject};
use tagwerk_client::api::{Jitter, Json, Seconds};

use crate::cli::failure::Failure;
use crate::cli::values::json;

/// The kind of subject that each job is about.
const SUBJECT_KIND: &str = "chaos";

/// Losses of leases and retries are what is tested; a job must not go to review for their number.
const LEASE_LOSSES: u32 = 100;

/// What is the same in all jobs.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) kind: String,
    pub(super) queue: Option<String>,
    /// With `{key}` and `{number}`.
    pub(super) payload: String,
    pub(super) max_retries: u32,
    /// Part of every key.
    pub(super) tag: String,
    /// `{number}` of the first job.
    pub(super) base: u64,
}

impl Template {
    /// The text of the payload as it was given, `@FILE` and `-` read, and tried out.
    pub(super) fn payload(given: &str) -> Result<String, Failure> {
        // A placeholder may stand where a number belongs, so that it is JSON only with its value.
        let text = if given.starts_with('@') || given == "-" {
            json("--payload", given)?.as_str().to_owned()
        } else {
            given.to_owned()
        };
        json("--payload", &filled(&text, "k", 1))?;
        Ok(text)
    }

    /// A job, by its number in the run.
    pub(super) fn job(&self, number: u64) -> Result<EnqueueRequest, Failure> {
        let key = self.key(number);
        let payload = filled(&self.payload, &key, self.base + number);
        Ok(EnqueueRequest {
            job_type: self.kind.clone(),
            queue: self.queue.clone(),
            payload: Some(Json::from_text(payload).map_err(|error| Failure::usage(error.to_string(), ""))?),
            idempotency_key: Some(key.clone()),
            subject: Some(Subject { kind: SUBJECT_KIND.to_owned(), id: key, version: None }),
            max_retries: Some(self.max_retries),
            max_lease_losses: Some(LEASE_LOSSES),
            retry: Some(RetrySettings {
                base_seconds: Some(Seconds::from_ms(200)),
                factor: Some(1.0),
                cap_seconds: Some(Seconds::from_ms(200)),
                jitter: Some(Jitter::None),
            }),
            ..EnqueueRequest::default()
        })
    }

    /// The key of a job.
    pub(super) fn key(&self, number: u64) -> String {
        format!("chaos-{}-{number}", self.tag)
    }
}

fn filled(text: &str, key: &str, n: u64) -> String {
    text.replace("{key}", key).replace("{number}", &n.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_has_a_key_of_its_own_in_its_payload() {
        let payload = Template::payload(r#"{"order":"{key}","number":{number}}"#).unwrap();
        let (kind, tag) = ("t".to_owned(), "ab".to_owned());
        let template = Template { kind, queue: None, payload, max_retries: 3, tag, base: 1_000 };
        let job = template.job(7).unwrap();
        assert_eq!(job.payload.unwrap().as_str(), r#"{"order":"chaos-ab-7","number":1007}"#);
        assert_eq!(job.idempotency_key.as_deref(), Some("chaos-ab-7"));
        assert_eq!(job.subject.unwrap().id, "chaos-ab-7");
    }

    #[test]
    fn a_payload_that_is_no_json_is_told() {
        for text in ["{order: 1}", "", "{\"a\": }"] {
            assert!(Template::payload(text).is_err(), "{text}");
        }
    }
}
