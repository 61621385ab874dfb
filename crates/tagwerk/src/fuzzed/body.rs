//! Bodies at the door. The first line names the call, then its header if it has one; the rest is the body.
//!
//! Holds: nothing makes the door panic; what is accepted keeps the limits; JSON is kept byte for byte; what is accepted,
//! written down again as a client would, is read as the same; what is refused is refused with a reason.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use serde_json::value::RawValue;
use tagwerk_api::Json;
use tagwerk_api::door::{
    Claim, Door, DoorLimits, Holder, NewJob, NewJobs, Report, ReportItem, Reported, RetryFields, TypeDefaults,
};
use tagwerk_api::problem::Refusal;

use super::body_written as written;
use super::{first_line, limits};

/// The property.
pub(crate) fn body(data: &[u8]) {
    let Some((line, body)) = first_line(data) else { return };
    let (call, header) = line.split_once(' ').map_or((line, None), |(call, header)| (call, Some(header)));
    let header = header.map(str::as_bytes);
    let limits = limits();
    let door = Door::new(limits.clone());
    let seen = Seen { door: &door, limits: &limits, body, header };
    match call {
        "enqueue" | "enqueue_bulk" => seen.producers(call),
        "claim" | "claim_bulk" => seen.claims(call),
        "complete" | "fail" | "release" | "heartbeat" | "checkpoint" => seen.reports(call),
        "report_bulk" | "heartbeat_bulk" => seen.bulk_reports(call),
        "cancel" | "retry" | "discard" | "force_fail" | "unblock" | "put_type" | "put_limit" => {
            seen.operators(call);
        }
        "put_queue" | "pause_queue" | "resume_queue" | "drain_queue" => seen.queues(call),
        _ => {}
    }
}

/// What a call was made with.
struct Seen<'a> {
    door: &'a Door,
    limits: &'a DoorLimits,
    body: &'a [u8],
    header: Option<&'a [u8]>,
}

/// The value, or nothing if it was refused for a reason.
fn accepted<T>(read: Result<T, Refusal>) -> Option<T> {
    match read {
        Ok(value) => Some(value),
        Err(refusal) => {
            assert!(!refusal.detail.is_empty());
            assert!((400..=422).contains(&refusal.code.status()), "{refusal:?}");
            assert!(refusal.errors.len() <= 100, "{refusal:?}");
            assert!(refusal.errors.iter().all(|error| !error.message.is_empty()), "{refusal:?}");
            None
        }
    }
}

impl Seen<'_> {
    fn producers(&self, call: &str) {
        if call == "enqueue" {
            let Some(job) = accepted(self.door.enqueue(self.body, self.header)) else { return };
            keeps_job_limits(self.limits, &job);
            assert_eq!(job.payload.as_ref().map(Json::as_str), self.field("payload").as_deref());
            let again = self.door.enqueue(&written::job(&job), None);
            assert_eq!(again.as_ref(), Ok(&job));
            return;
        }
        let Some(jobs) = accepted(self.door.enqueue_bulk(self.body, self.header)) else { return };
        assert!(jobs.jobs.len() <= self.limits.bulk_jobs_max);
        let good =
            jobs.jobs.into_iter().filter_map(accepted).inspect(|job| keeps_job_limits(self.limits, job));
        let good = NewJobs { jobs: good.map(Ok).collect(), atomic: jobs.atomic };
        assert_eq!(self.door.enqueue_bulk(&written::jobs(&good), None), Ok(good));
    }

    fn claims(&self, call: &str) {
        let read =
            |body: &[u8]| if call == "claim" { self.door.claim(body) } else { self.door.claim_bulk(body) };
        let Some(claim) = accepted(read(self.body)) else { return };
        keeps_claim_limits(self.limits, &claim);
        assert_eq!(read(&written::claim(&claim)), Ok(claim));
    }

    fn reports(&self, call: &str) {
        let (door, body) = (self.door, self.body);
        if call == "checkpoint" {
            let Some(read) = accepted(door.checkpoint(body)) else { return };
            assert_eq!(Some(read.checkpoint.as_str()), self.field("checkpoint").as_deref());
            assert!(read.checkpoint.as_str().len() <= self.limits.checkpoint_max_bytes);
            assert_eq!(door.checkpoint(&written::checkpoint(&read)), Ok(read));
            return;
        }
        let read = |body: &[u8]| -> Result<Reported<Report>, Refusal> {
            Ok(match call {
                "complete" => wrapped(door.complete(body)?, Report::Complete),
                "fail" => wrapped(door.fail(body)?, Report::Fail),
                "release" => wrapped(door.release(body)?, Report::Release),
                _ => wrapped(door.heartbeat(body)?, Report::Heartbeat),
            })
        };
        let Some(Reported { value, ignored }) = accepted(read(body)) else { return };
        keeps_report_limits(self.limits, &value);
        fits_a_header(&ignored);
        if let Report::Complete(complete) = &value {
            let sent = self.field("result").filter(|text| text != "null");
            assert_eq!(complete.result.as_ref().map(Json::as_str), sent.as_deref());
        }
        let again = read(&written::report(&value));
        assert_eq!(again, Ok(Reported { value, ignored: Vec::new() }));
    }

    fn bulk_reports(&self, call: &str) {
        let read = |body: &[u8]| {
            if call == "report_bulk" { self.door.report_bulk(body) } else { self.door.heartbeat_bulk(body) }
        };
        let Some(Reported { value, ignored }) = accepted(read(self.body)) else { return };
        fits_a_header(&ignored);
        assert!(value.reports.len() <= self.limits.reports_max);
        let mut good = Vec::new();
        for item in value.reports {
            let Some(report) = accepted(item.report) else { continue };
            let id = item.id.expect("an accepted entry names its job");
            assert!((1..=self.limits.id_max).contains(&id));
            keeps_report_limits(self.limits, &report);
            good.push(ReportItem { id: Some(id), report: Ok(report) });
        }
        let claim = value.claim.and_then(accepted);
        if let Some(claim) = &claim {
            keeps_claim_limits(self.limits, claim);
        }
        let again = read(&written::reports(call, &good, claim.as_ref())).unwrap();
        assert_eq!(again.value.reports, good);
        assert_eq!(again.value.claim, claim.map(Ok));
    }

    fn operators(&self, call: &str) {
        let (door, limits, body) = (self.door, self.limits, self.body);
        let prose = |text: &str| assert!(!text.is_empty() && text.len() <= limits.text_max_bytes);
        let again = match call {
            "cancel" => {
                let Some(read) = accepted(door.cancel(body, self.header)) else { return };
                read.reason.iter().for_each(|text| prose(text));
                door.cancel(&written::cancel(&read), None) == Ok(read)
            }
            "retry" => {
                let Some(read) = accepted(door.retry(body, self.header)) else { return };
                read.note.iter().for_each(|text| prose(text));
                within(limits.max_retries.clone(), read.max_retries);
                door.retry(&written::retry(&read), None) == Ok(read)
            }
            "discard" => {
                let Some(read) = accepted(door.discard(body, self.header)) else { return };
                prose(&read.reason);
                door.discard(&written::discard(&read), None) == Ok(read)
            }
            "force_fail" => {
                let Some(read) = accepted(door.force_fail(body, self.header)) else { return };
                prose(&read.reason);
                door.force_fail(&written::force_fail(&read), None) == Ok(read)
            }
            "unblock" => {
                let Some(read) = accepted(door.unblock(body, self.header)) else { return };
                prose(&read.reason);
                door.unblock(&written::unblock(&read), None) == Ok(read)
            }
            "put_limit" => {
                let Some(read) = accepted(door.limit_settings("crm", body)) else { return };
                within(limits.limit_running.clone(), read.max_running);
                within(limits.rate_count.clone(), read.rate.map(|rate| rate.count));
                within(limits.rate_per_ms.clone(), read.rate.map(|rate| rate.per_ms));
                door.limit_settings("crm", &written::limit_settings(&read)) == Ok(read)
            }
            _ => {
                let job_type = "send-invoice";
                let Some(read) = accepted(door.type_settings(job_type, body)) else { return };
                keeps_type_limits(limits, &read);
                door.type_settings(job_type, &written::type_settings(&read)) == Ok(read)
            }
        };
        assert!(again, "what was accepted is read differently when it is written again");
    }

    fn queues(&self, call: &str) {
        let (door, limits, body) = (self.door, self.limits, self.body);
        let prose = |text: &String| assert!(!text.is_empty() && text.len() <= limits.text_max_bytes);
        let again = match call {
            "put_queue" => {
                let Some(read) = accepted(door.queue_settings(body)) else { return };
                within(limits.queue_max_running.clone(), read.max_running);
                within(limits.queue_max_depth.clone(), read.max_depth);
                if let Some(reserve) = &read.reserve {
                    assert!(read.max_running.is_some_and(|max| (1..max).contains(&reserve.slots)));
                    within(0..=limits.priority_max, Some(reserve.from_priority));
                }
                door.queue_settings(&written::queue_settings(&read)) == Ok(read)
            }
            "pause_queue" => {
                let Some(read) = accepted(door.pause(body)) else { return };
                prose(&read.reason);
                assert!(read.by.iter().all(|by| is_key(by, limits.key_max_bytes)));
                door.pause(&written::said(Some(&read.reason), read.by.as_ref())) == Ok(read)
            }
            "resume_queue" => {
                let Some(read) = accepted(door.resume(body)) else { return };
                read.reason.iter().for_each(prose);
                door.resume(&written::said(read.reason.as_ref(), None)) == Ok(read)
            }
            _ => {
                let Some(read) = accepted(door.drain(body)) else { return };
                read.reason.iter().for_each(prose);
                door.drain(&written::said(read.reason.as_ref(), read.by.as_ref())) == Ok(read)
            }
        };
        assert!(again, "what was accepted is read differently when it is written again");
    }

    /// A field of the body as another reader sees it.
    fn field(&self, name: &str) -> Option<String> {
        let fields: HashMap<String, &RawValue> = serde_json::from_slice(self.body).unwrap_or_default();
        fields.get(name).map(|raw| raw.get().to_owned())
    }
}

fn wrapped<T>(read: Reported<T>, wrap: fn(T) -> Report) -> Reported<Report> {
    Reported { value: wrap(read.value), ignored: read.ignored }
}

fn within<T: PartialOrd>(range: RangeInclusive<T>, value: Option<T>) {
    assert!(value.is_none_or(|value| range.contains(&value)));
}

fn fits_a_header(ignored: &[String]) {
    assert!(ignored.len() <= 32);
    let safe = |name: &String| name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
    assert!(ignored.iter().all(safe), "{ignored:?}");
}

fn is_name(text: &str, max_bytes: usize) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=max_bytes).contains(&text.len())
        && text.bytes().all(allowed)
        && text.as_bytes()[0].is_ascii_alphanumeric()
}

fn is_shown(text: &str, max_bytes: usize) -> bool {
    (1..=max_bytes).contains(&text.len()) && !text.contains(char::is_control) && !text.trim().is_empty()
}

fn is_key(text: &str, max_bytes: usize) -> bool {
    (1..=max_bytes).contains(&text.len()) && !text.contains('\0')
}

fn is_limit(limits: &DoorLimits, text: &str) -> bool {
    let (name, partition) = text.split_once(':').unwrap_or((text, "p"));
    is_name(name, limits.name_max_bytes) && is_shown(partition, limits.partition_max_bytes)
}

fn keeps_job_limits(limits: &DoorLimits, job: &NewJob) {
    assert!(is_shown(&job.job_type, limits.type_max_bytes));
    assert!(job.queue.iter().all(|queue| is_name(queue, limits.name_max_bytes)));
    assert!(job.payload.iter().all(|payload| payload.as_str().len() <= limits.payload_max_bytes));
    assert!(job.delay_ms.is_none() || job.run_at_ms.is_none());
    assert!(job.max_age_ms.is_none() || job.expires_at_ms.is_none());
    within(0..=limits.priority_max, job.priority);
    within(limits.delay_ms.clone(), job.delay_ms);
    within(limits.max_age_ms.clone(), job.max_age_ms);
    within(limits.max_retries.clone(), job.max_retries);
    within(limits.max_lease_losses.clone(), job.max_lease_losses);
    within(limits.lease_ms.clone(), job.lease_ms);
    within(limits.timeout_ms.clone(), job.timeout_ms);
    within(limits.ttl_ms.clone(), job.idempotency_ttl_ms);
    keeps_retry_limits(limits, &job.retry);
    let mut keys = job.idempotency_key.iter().chain(&job.correlation_id);
    assert!(keys.all(|key| is_key(key, limits.key_max_bytes)));
    if let Some(subject) = &job.subject {
        assert!(is_key(&subject.kind, limits.key_max_bytes) && is_key(&subject.id, limits.key_max_bytes));
        within(0..=limits.id_max, subject.version);
    }
    assert!(job.traceparent.iter().all(|text| is_shown(text, limits.traceparent_max_bytes)));
    assert!(job.limits.len() <= limits.limits_per_job && job.limits.is_sorted_by(|a, b| a < b));
    assert!(job.limits.iter().all(|text| is_limit(limits, text)));
}

fn keeps_retry_limits(limits: &DoorLimits, retry: &RetryFields) {
    within(limits.retry_delay_ms.clone(), retry.base_ms);
    within(limits.retry_delay_ms.clone(), retry.cap_ms);
    within(limits.retry_factor.clone(), retry.factor);
}

fn keeps_type_limits(limits: &DoorLimits, settings: &TypeDefaults) {
    assert!(settings.queue.iter().all(|queue| is_name(queue, limits.name_max_bytes)));
    within(0..=limits.priority_max, settings.priority);
    within(limits.max_retries.clone(), settings.max_retries);
    within(limits.max_lease_losses.clone(), settings.max_lease_losses);
    within(limits.lease_ms.clone(), settings.lease_ms);
    within(limits.timeout_ms.clone(), settings.timeout_ms);
    within(limits.max_age_ms.clone(), settings.max_age_ms);
    within(limits.ttl_ms.clone(), settings.idempotency_ttl_ms);
    keeps_retry_limits(limits, &settings.retry);
    assert!(settings.owner.iter().all(|owner| is_key(owner, limits.text_max_bytes)));
    assert!(settings.queues.iter().all(|names| (1..=limits.claim_names_max).contains(&names.len())));
    assert!(settings.queues.iter().flatten().all(|queue| is_name(queue, limits.name_max_bytes)));
    within(0..=limits.priority_max, settings.priority_ceiling);
    within(limits.payload_sizes(), settings.payload_max_bytes);
}

fn keeps_claim_limits(limits: &DoorLimits, claim: &Claim) {
    assert!(is_shown(&claim.worker_id, limits.worker_id_max_bytes) && !claim.worker_id.contains('/'));
    for names in claim.queues.iter().chain(&claim.types) {
        assert!((1..=limits.claim_names_max).contains(&names.len()));
    }
    assert!(claim.queues.iter().flatten().all(|queue| is_name(queue, limits.name_max_bytes)));
    assert!(claim.types.iter().flatten().all(|name| is_shown(name, limits.type_max_bytes)));
    assert!((0..=limits.wait_max_ms).contains(&claim.wait_ms));
    within(limits.lease_ms.clone(), claim.lease_ms);
    assert!(claim.request_id.iter().all(|id| is_key(id, limits.request_id_max_bytes)));
    assert!(limits.claim_jobs.contains(&claim.max_jobs));
}

fn keeps_report_limits(limits: &DoorLimits, report: &Report) {
    let holder: &Holder = match report {
        Report::Complete(complete) => {
            assert!(complete.result.iter().all(|json| json.as_str().len() <= limits.result_max_bytes));
            &complete.holder
        }
        Report::Fail(fail) => {
            assert!(fail.error.iter().all(|error| !error.contains('\0')));
            within(limits.delay_ms.clone(), fail.retry_after_ms);
            assert!(fail.throttle.iter().all(|throttle| is_limit(limits, &throttle.limit)));
            within(limits.throttle_ms.clone(), fail.throttle.as_ref().map(|throttle| throttle.for_ms));
            &fail.holder
        }
        Report::Release(release) => {
            within(limits.delay_ms.clone(), release.delay_ms);
            assert!(release.reason.iter().all(|reason| is_key(reason, limits.text_max_bytes)));
            &release.holder
        }
        Report::Heartbeat(beat) => {
            if let Some(progress) = &beat.progress {
                within(0..=limits.id_max, progress.done);
                within(0..=limits.id_max, progress.total);
                let message = progress.message.iter();
                assert!(message.clone().all(|text| is_key(text, limits.progress_message_max_bytes)));
            }
            &beat.holder
        }
    };
    // Whatever was sent as a token is only compared; it never shows.
    assert!(holder.lease.iter().all(|lease| !format!("{lease:?}").contains("lease")));
}
