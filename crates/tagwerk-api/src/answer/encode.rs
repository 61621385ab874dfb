//! Answers that are jobs, written straight into the buffer.
//!
//! The bytes are those that `serde_json` gives; a test compares them. Most of such an answer are names of fields and `null`,
//! and a serializer looks for something to escape in every letter of them: that was a quarter of all instructions that an
//! enqueue takes outside of the committer. Values are still `serde_json`'s work.

use serde::Serialize;

use super::{
    BulkClaimAnswer, ClaimedJob, CompletedJob, EnqueueAnswer, EnqueueTombstone, Enqueued, Job, JobSummary,
    ReportBulkAnswer, ReportResult, Tombstone,
};

/// An answer that is a job, or many of them.
pub trait Encode {
    /// Appends it as a JSON object.
    ///
    /// # Errors
    /// Those of `serde_json`, which knows none for these types.
    fn encode(&self, out: &mut Vec<u8>) -> serde_json::Result<()>;
}

/// Fields of an object, each behind a comma.
trait Members {
    fn members(&self, out: &mut Vec<u8>) -> serde_json::Result<()>;
}

fn put<T: Serialize>(out: &mut Vec<u8>, value: &T) -> serde_json::Result<()> {
    serde_json::to_writer(out, value)
}

fn object(of: &impl Members, out: &mut Vec<u8>) -> serde_json::Result<()> {
    let start = out.len();
    of.members(out)?;
    // The comma of the first one. There is always one.
    if let Some(first) = out.get_mut(start) {
        *first = b'{';
    }
    out.push(b'}');
    Ok(())
}

/// Writes one value: by the serializer, or by the function that is named.
macro_rules! value {
    ($out:ident, $field:ident) => {
        put($out, $field)
    };
    ($out:ident, $field:ident, $how:ident) => {
        $how($out, $field)
    };
}

/// Names all fields of a type, so that one which is added and forgotten here does not compile. Those behind `..` bring their own.
/// What has jobs in it is written `by` a function of this module.
macro_rules! members {
    ($type:ident { $(..$flat:ident,)? $($field:ident: $name:literal $(by $how:ident)?,)+ }) => {
        impl Members for $type {
            fn members(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
                let Self { $($flat,)? $($field,)+ } = self;
                $($flat.members(out)?;)?
                $(
                    out.extend_from_slice(concat!(",\"", $name, "\":").as_bytes());
                    value!(out, $field $(, $how)?)?;
                )+
                Ok(())
            }
        }
    };
}

/// The types that are answers by themselves.
macro_rules! answers {
    ($($type:ident),+) => {
        $(impl Encode for $type {
            fn encode(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
                object(self, out)
            }
        })+
    };
}

members!(JobSummary {
    id: "id",
    job_type: "type",
    queue: "queue",
    status: "status",
    version: "version",
    priority: "priority",
    priority_value: "priority_value",
    attempt: "attempt",
    attempts_left: "attempts_left",
    is_last_attempt: "is_last_attempt",
    retry_count: "retry_count",
    max_retries: "max_retries",
    lease_losses: "lease_losses",
    max_lease_losses: "max_lease_losses",
    release_count: "release_count",
    available_at: "available_at",
    expires_at: "expires_at",
    max_age_seconds: "max_age_seconds",
    lease_seconds: "lease_seconds",
    timeout_seconds: "timeout_seconds",
    retry: "retry",
    on_unknown: "on_unknown",
    idempotency_key: "idempotency_key",
    idempotency_scope: "idempotency_scope",
    idempotency_ttl_seconds: "idempotency_ttl_seconds",
    on_duplicate: "on_duplicate",
    on_mismatch: "on_mismatch",
    supersede: "supersede",
    subject: "subject",
    correlation_id: "correlation_id",
    traceparent: "traceparent",
    ordering_key: "ordering_key",
    on_head_failure: "on_head_failure",
    blocked_by: "blocked_by",
    blocks: "blocks",
    limits: "limits",
    fair_key: "fair_key",
    space: "space",
    owner: "owner",
    error: "error",
    failure: "failure",
    worker_id: "worker_id",
    claimed_at: "claimed_at",
    lease_expires_at: "lease_expires_at",
    verify: "verify",
    effects_in_doubt: "effects_in_doubt",
    cancel_requested: "cancel_requested",
    superseded_by: "superseded_by",
    progress: "progress",
    created_at: "created_at",
    updated_at: "updated_at",
    finished_at: "finished_at",
});
members!(Job { ..summary, payload: "payload", checkpoint: "checkpoint", result: "result", effects: "effects", });
members!(EnqueueAnswer {
    ..summary,
    payload: "payload",
    checkpoint: "checkpoint",
    result: "result",
    effects: "effects",
    payload_differs: "payload_differs",
    replaced: "replaced",
});
members!(CompletedJob {
    ..summary,
    payload: "payload",
    checkpoint: "checkpoint",
    result: "result",
    effects: "effects",
    enqueued: "enqueued",
});
members!(ClaimedJob {
    ..summary,
    payload: "payload",
    checkpoint: "checkpoint",
    result: "result",
    effects: "effects",
    lease: "lease",
    heartbeat_seconds: "heartbeat_seconds",
    replayed: "replayed",
});
members!(Tombstone {
    id: "id",
    job_type: "type",
    status: "status",
    finished_at: "finished_at",
    pruned: "pruned",
});
members!(EnqueueTombstone { ..tombstone, payload_differs: "payload_differs", replaced: "replaced", });
members!(BulkClaimAnswer { jobs: "jobs" by each, next_due_at: "next_due_at", });
members!(ReportBulkAnswer {
    results: "results" by each,
    jobs: "jobs" by each,
    next_due_at: "next_due_at",
    claim_problem: "claim_problem",
});
members!(ReportResult {
    id: "id",
    status: "status",
    job: "job" by one,
    heartbeat: "heartbeat",
    enqueued: "enqueued",
    problem: "problem",
    replayed: "replayed",
});
answers!(
    JobSummary,
    Job,
    EnqueueAnswer,
    CompletedJob,
    ClaimedJob,
    EnqueueTombstone,
    BulkClaimAnswer,
    ReportBulkAnswer,
    ReportResult
);

impl Encode for Enqueued {
    fn encode(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        match self {
            Self::Job(job) => job.encode(out),
            Self::Pruned(pruned) => pruned.encode(out),
        }
    }
}

impl<T: Encode> Encode for Option<T> {
    fn encode(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        match self {
            Some(answer) => answer.encode(out),
            None => put(out, &()),
        }
    }
}

fn one(out: &mut Vec<u8>, entry: &impl Encode) -> serde_json::Result<()> {
    entry.encode(out)
}

fn each<T: Encode>(out: &mut Vec<u8>, entries: &[T]) -> serde_json::Result<()> {
    out.push(b'[');
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        entry.encode(out)?;
    }
    out.push(b']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::routes;

    /// What an answer of this type encodes to, read from its example and back.
    fn both<T: Encode + Serialize + serde::de::DeserializeOwned>(
        example: &serde_json::Value,
    ) -> (String, String) {
        let answer: T = serde_json::from_str(&example.to_string()).unwrap();
        let mut out = b"before".to_vec();
        answer.encode(&mut out).unwrap();
        (String::from_utf8(out).unwrap(), format!("before{}", serde_json::to_string(&answer).unwrap()))
    }

    fn compare(schema: &str, example: &serde_json::Value) -> bool {
        let (written, expected) = match schema {
            "Job" => both::<Job>(example),
            "EnqueueAnswer" => both::<EnqueueAnswer>(example),
            "ClaimedJob" => both::<ClaimedJob>(example),
            "CompletedJob" => both::<CompletedJob>(example),
            "BulkClaimAnswer" => both::<BulkClaimAnswer>(example),
            "ReportBulkAnswer" => both::<ReportBulkAnswer>(example),
            _ => return false,
        };
        assert_eq!(written, expected, "{schema}");
        true
    }

    #[test]
    fn the_bytes_are_those_of_the_serializer() {
        let mut compared = 0;
        for route in routes() {
            for answer in route.answers {
                let Some(example) = answer.example else { continue };
                let schema = match answer.shape {
                    crate::openapi::Shape::Of(schema) | crate::openapi::Shape::OrNull(schema) => schema,
                    crate::openapi::Shape::Document | crate::openapi::Shape::Text(_) => continue,
                };
                compared += usize::from(compare(schema, &example()));
            }
        }
        assert!(compared > 5, "only {compared} examples");
    }

    #[test]
    fn lists_of_none_one_and_several() {
        let example = |id: &str| {
            let route = routes().find(|route| route.id == id).unwrap();
            route.answers[0].example.unwrap()()
        };
        let (job, report) = (example("claim"), example("report_bulk"));
        let result = report["results"][0].clone();
        for count in 0..3 {
            let jobs = vec![job.clone(); count];
            let claimed = serde_json::json!({"jobs": jobs, "next_due_at": "2026-07-01T12:00:00.007Z"});
            assert!(compare("BulkClaimAnswer", &claimed));
            let mut reported = report.clone();
            reported["jobs"] = jobs.into();
            reported["results"] = vec![result.clone(); count].into();
            assert!(compare("ReportBulkAnswer", &reported));
        }
    }

    #[test]
    fn fields_without_and_with_a_value_and_texts_that_need_escapes() {
        let example = crate::openapi::routes().find(|route| route.id == "claim").unwrap().answers[0].example;
        let bare = example.unwrap()();
        let text = "a \"b\" \\ \n\u{7f}ü\u{1f}";
        let values = [
            ("id", serde_json::json!(9_007_199_254_740_991_i64)),
            ("type", serde_json::json!(text)),
            ("queue", serde_json::json!("q")),
            ("expires_at", serde_json::json!("2026-07-01T12:00:00.007Z")),
            ("max_age_seconds", serde_json::json!(0.001)),
            ("lease_seconds", serde_json::json!(60)),
            ("timeout_seconds", serde_json::json!(1.5)),
            (
                "retry",
                serde_json::json!({"base_seconds": 1, "factor": 2.5, "cap_seconds": null, "jitter": "full"}),
            ),
            ("idempotency_key", serde_json::json!(text)),
            ("idempotency_scope", serde_json::json!("ttl")),
            ("idempotency_ttl_seconds", serde_json::json!(1)),
            ("on_duplicate", serde_json::json!("replace")),
            ("on_mismatch", serde_json::json!("reject")),
            ("supersede", serde_json::json!(true)),
            ("subject", serde_json::json!({"kind": "k", "id": text, "version": 7})),
            ("correlation_id", serde_json::json!(text)),
            ("traceparent", serde_json::json!(text)),
            ("ordering_key", serde_json::json!(text)),
            ("on_head_failure", serde_json::json!("skip")),
            ("blocked_by", serde_json::json!(5)),
            ("blocks", serde_json::json!(1001)),
            ("limits", serde_json::json!(["crm:a", "crm:b"])),
            ("fair_key", serde_json::json!(text)),
            ("owner", serde_json::json!(text)),
            ("error", serde_json::json!(text)),
            (
                "failure",
                serde_json::json!({"class": "unknown", "reason": "worker_lost", "cause": "lease_expired"}),
            ),
            ("worker_id", serde_json::json!(text)),
            ("superseded_by", serde_json::json!(8)),
            ("progress", serde_json::json!({"done": 1, "total": null, "message": text})),
            ("finished_at", serde_json::json!("2026-07-01T12:00:00.007Z")),
            ("checkpoint", serde_json::json!([text])),
            ("result", serde_json::json!({"a": text})),
        ];
        let mut full = bare.clone();
        for (name, value) in values {
            let mut one = bare.clone();
            one[name] = value.clone();
            assert!(compare("ClaimedJob", &one), "{name}");
            full[name] = value;
        }
        assert!(compare("ClaimedJob", &full));
    }

    #[test]
    fn tombstones() {
        let text = r#"{"id":7,"type":"t","status":"completed","finished_at":null,"pruned":true,"payload_differs":false,"replaced":null}"#;
        let pruned: Enqueued = serde_json::from_str(text).unwrap();
        let mut out = Vec::new();
        pruned.encode(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }
}
