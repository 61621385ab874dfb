//! Writes down what the door has read, as a client would. Independent of the request types of `tagwerk-api`, so that the
//! two check each other.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tagwerk_api::door::{
    Cancel, Checkpoint, Claim, Discard, ForceFail, Holder, LimitBounds, NewJob, NewJobs, QueueBounds,
    RateBounds, Report, ReportItem, Retry, RetryFields, Throttle, TypeDefaults, Unblock,
};
use tagwerk_api::{Json, Seconds, Time};

/// An object in the order in which its fields are put.
#[derive(Default)]
struct Object(Vec<String>);

impl Object {
    fn put<T: Serialize>(&mut self, name: &str, value: Option<T>) -> &mut Self {
        if let Some(value) = value {
            // Raw, so that JSON inside keeps every byte.
            let value: Box<RawValue> = to_raw_value(&value).expect("it can be written");
            self.0.push(format!("{name:?}:{value}"));
        }
        self
    }

    fn raw(&mut self, name: &str, text: &str) -> &mut Self {
        self.0.push(format!("{name:?}:{text}"));
        self
    }

    fn text(&self) -> String {
        format!("{{{}}}", self.0.join(","))
    }

    fn bytes(&self) -> Vec<u8> {
        self.text().into_bytes()
    }
}

fn seconds(ms: Option<i64>) -> Option<Seconds> {
    ms.map(Seconds::from_ms)
}

fn retry_fields(retry: &RetryFields) -> String {
    let mut object = Object::default();
    object.put("base_seconds", seconds(retry.base_ms)).put("factor", retry.factor);
    object.put("cap_seconds", seconds(retry.cap_ms)).put("jitter", retry.jitter);
    object.text()
}

fn job_text(job: &NewJob) -> String {
    let mut object = Object::default();
    object.put("type", Some(&job.job_type)).put("queue", job.queue.as_ref());
    if let Some(payload) = &job.payload {
        object.raw("payload", payload.as_str());
    }
    object.put("priority", job.priority).put("delay_seconds", seconds(job.delay_ms));
    object.put("run_at", job.run_at_ms.map(Time::from_ms));
    object.put("max_age_seconds", seconds(job.max_age_ms));
    object.put("expires_at", job.expires_at_ms.map(Time::from_ms));
    object.put("max_retries", job.max_retries).put("max_lease_losses", job.max_lease_losses);
    object.put("lease_seconds", seconds(job.lease_ms)).put("timeout_seconds", seconds(job.timeout_ms));
    object.raw("retry", &retry_fields(&job.retry)).put("on_unknown", job.on_unknown);
    object.put("idempotency_key", job.idempotency_key.as_ref());
    object.put("idempotency_scope", job.idempotency_scope);
    object.put("idempotency_ttl_seconds", seconds(job.idempotency_ttl_ms));
    object.put("on_duplicate", job.on_duplicate).put("on_mismatch", job.on_mismatch);
    object.put("subject", job.subject.as_ref()).put("correlation_id", job.correlation_id.as_ref());
    object.put("traceparent", job.traceparent.as_ref()).put("supersede", Some(job.supersede));
    object.put("ordering_key", job.ordering_key.as_ref()).put("on_head_failure", job.on_head_failure);
    object.put("limits", Some(&job.limits).filter(|limits| !limits.is_empty()));
    object.put("fair_key", job.fair_key.as_ref());
    object.text()
}

pub(super) fn job(job: &NewJob) -> Vec<u8> {
    job_text(job).into_bytes()
}

/// All of them must be `Ok`.
pub(super) fn jobs(jobs: &NewJobs) -> Vec<u8> {
    let texts: Vec<String> = jobs.jobs.iter().flatten().map(job_text).collect();
    let list = format!("[{}]", texts.join(","));
    Object::default().raw("jobs", &list).put("atomic", Some(jobs.atomic)).bytes()
}

fn claim_text(claim: &Claim) -> String {
    let mut object = Object::default();
    object.put("worker_id", Some(&claim.worker_id)).put("queues", claim.queues.as_ref());
    object.put("types", claim.types.as_ref()).put("wait_seconds", Some(Seconds::from_ms(claim.wait_ms)));
    object.put("lease_seconds", seconds(claim.lease_ms)).put("request_id", claim.request_id.as_ref());
    object.put("max_jobs", (claim.max_jobs != 1).then_some(claim.max_jobs));
    object.text()
}

pub(super) fn claim(claim: &Claim) -> Vec<u8> {
    claim_text(claim).into_bytes()
}

fn put_holder<'a>(object: &'a mut Object, holder: &Holder) -> &'a mut Object {
    object.put("lease", holder.lease.as_ref()).put("worker_id", holder.worker_id.as_ref())
}

/// The fields of a report, and its outcome.
fn report_fields(report: &Report) -> (Object, &'static str) {
    let mut object = Object::default();
    let outcome = match report {
        Report::Complete(complete) => {
            put_holder(&mut object, &complete.holder);
            if let Some(result) = &complete.result {
                object.raw("result", result.as_str());
            }
            "completed"
        }
        Report::Fail(fail) => {
            put_holder(&mut object, &fail.holder).put("error", fail.error.as_ref());
            object.put("class", fail.class).put("retry_after_seconds", seconds(fail.retry_after_ms));
            if let Some(Throttle { limit, for_ms }) = &fail.throttle {
                let mut throttle = Object::default();
                throttle.put("limit", Some(limit)).put("for_seconds", Some(Seconds::from_ms(*for_ms)));
                object.raw("throttle", &throttle.text());
            }
            "failed"
        }
        Report::Release(release) => {
            put_holder(&mut object, &release.holder).put("delay_seconds", seconds(release.delay_ms));
            object.put("reason", release.reason.as_ref());
            "released"
        }
        Report::Heartbeat(beat) => {
            put_holder(&mut object, &beat.holder).put("progress", beat.progress.as_ref());
            "heartbeat"
        }
    };
    (object, outcome)
}

pub(super) fn report(report: &Report) -> Vec<u8> {
    report_fields(report).0.bytes()
}

pub(super) fn checkpoint(checkpoint: &Checkpoint) -> Vec<u8> {
    let mut object = Object::default();
    put_holder(&mut object, &checkpoint.holder).raw("checkpoint", checkpoint.checkpoint.as_str()).bytes()
}

/// All of these must be `Ok`.
pub(super) fn reports(call: &str, items: &[ReportItem], claim: Option<&Claim>) -> Vec<u8> {
    let entry = |item: &ReportItem| {
        let (mut object, outcome) = report_fields(item.report.as_ref().expect("only good ones"));
        object.put("id", item.id).put("outcome", (call == "report_bulk").then_some(outcome)).text()
    };
    let entries: Vec<String> = items.iter().map(entry).collect();
    let mut object = Object::default();
    object.raw(if call == "report_bulk" { "reports" } else { "leases" }, &format!("[{}]", entries.join(",")));
    if let Some(claim) = claim {
        object.raw("claim", &claim_text(claim));
    }
    object.bytes()
}

pub(super) fn cancel(cancel: &Cancel) -> Vec<u8> {
    let mut object = Object::default();
    object.put("wait", Some(cancel.wait)).put("reason", cancel.reason.as_ref());
    object.put("free_key", Some(cancel.free_key)).put("seen_version", cancel.seen_version).bytes()
}

pub(super) fn retry(retry: &Retry) -> Vec<u8> {
    let mut object = Object::default();
    object.put("seen_version", Some(retry.seen_version)).put("note", retry.note.as_ref());
    if let Some(payload) = retry.payload.as_ref().map(Json::as_str) {
        object.raw("payload", payload);
    }
    object.put("max_retries", retry.max_retries).put("force", Some(retry.force)).bytes()
}

pub(super) fn discard(discard: &Discard) -> Vec<u8> {
    let mut object = Object::default();
    object.put("reason", Some(&discard.reason)).put("free_key", Some(discard.free_key));
    object.put("seen_version", discard.seen_version).bytes()
}

pub(super) fn force_fail(forced: &ForceFail) -> Vec<u8> {
    let mut object = Object::default();
    object.put("reason", Some(&forced.reason)).put("seen_version", forced.seen_version).bytes()
}

pub(super) fn unblock(unblock: &Unblock) -> Vec<u8> {
    let mut object = Object::default();
    object.put("reason", Some(&unblock.reason)).put("seen_version", unblock.seen_version).bytes()
}

pub(super) fn limit_settings(bounds: &LimitBounds) -> Vec<u8> {
    let mut object = Object::default();
    object.put("max_running", bounds.max_running);
    if let Some(RateBounds { count, per_ms, spread }) = bounds.rate {
        let mut rate = Object::default();
        rate.put("count", Some(count)).put("per_seconds", Some(Seconds::from_ms(per_ms)));
        object.raw("rate", &rate.put("spread", Some(spread)).text());
    }
    object.bytes()
}

pub(super) fn type_settings(settings: &TypeDefaults) -> Vec<u8> {
    let mut object = Object::default();
    object.put("queue", settings.queue.as_ref()).put("priority", settings.priority);
    object.put("max_retries", settings.max_retries).put("max_lease_losses", settings.max_lease_losses);
    object.put("lease_seconds", seconds(settings.lease_ms));
    object.put("timeout_seconds", seconds(settings.timeout_ms));
    object.raw("retry", &retry_fields(&settings.retry)).put("on_unknown", settings.on_unknown);
    object.put("max_age_seconds", seconds(settings.max_age_ms));
    object.put("idempotency_scope", settings.idempotency_scope);
    object.put("idempotency_ttl_seconds", seconds(settings.idempotency_ttl_ms));
    object.put("queues", settings.queues.as_ref()).put("priority_ceiling", settings.priority_ceiling);
    object.put("payload_max_bytes", settings.payload_max_bytes);
    object.put("owner", settings.owner.as_ref()).bytes()
}

/// Reason and name of somebody who says something about a queue.
pub(super) fn said(reason: Option<&String>, by: Option<&String>) -> Vec<u8> {
    let mut object = Object::default();
    object.put("reason", reason).put("by", by).bytes()
}

pub(super) fn queue_settings(bounds: &QueueBounds) -> Vec<u8> {
    let mut object = Object::default();
    if let Some(reserve) = &bounds.reserve {
        let mut inner = Object::default();
        let inner = inner.put("slots", Some(reserve.slots)).put("from_priority", Some(reserve.from_priority));
        object.raw("reserve", &inner.text());
    }
    object.put("max_running", bounds.max_running).put("max_depth", bounds.max_depth).bytes()
}
