//! Reports: repeated until they arrive, or nobody could want them any more.

use std::time::Duration;

use tagwerk_client::api::answer::{ClaimedJob, CompletedJob, Job};
use tagwerk_client::api::problem::Code;
use tagwerk_client::api::request::{CompleteRequest, FailRequest, ReleaseRequest};
use tagwerk_client::api::{ErrorClass, Json};
use tagwerk_client::{Answer, Client, Error};
use tagwerk_core::limits;
use tagwerk_engine::ports::Clock;

use super::capture::LastLine;
use super::child::Output;
use super::journal::Entry;
use super::pause::{backoff, pause};
use super::run::Ended;
use super::shared::{Phase, Shared, length, reach};
use super::verdict::{Verdict, error};

/// How long a report is repeated when the worker is to end at once.
const ABORT_PATIENCE: Duration = Duration::from_secs(5);

/// A run that is over.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) verdict: Verdict,
    pub(super) ended: Ended,
    pub(super) output: Output,
    pub(super) ms: u128,
}

/// Reports the outcome and says so.
pub(super) async fn report(shared: &Shared, job: &ClaimedJob, mut done: Done) {
    let (outcome, mut detail, answer) = match &done.verdict {
        Verdict::Completed => {
            let result = result(shared, job, &mut done.output.stdout);
            ("completed", None, complete(shared, job, result).await)
        }
        Verdict::Failed(class, why) => {
            let text = error(why.as_deref(), done.ended.status, &done.output.stderr);
            ("failed", Some(class.name().to_owned()), fail(shared, job, (*class, &text)).await)
        }
        Verdict::Missing(_) | Verdict::Nothing => {
            let detail = done.ended.told.clone();
            entry(shared, job, Entry { outcome: "dropped", detail, ms: done.ms, ..Entry::default() }).await;
            return;
        }
    };
    let (outcome, status) = match &answer {
        Ok(answer) => (outcome, Some(answer.value.summary.status.name())),
        Err(error) => {
            detail = Some(error.code().map_or_else(|| error.to_string(), |code| code.name().to_owned()));
            ("not-reported", None)
        }
    };
    entry(shared, job, Entry { outcome, detail, status, ms: done.ms, ..Entry::default() }).await;
}

async fn entry(shared: &Shared, job: &ClaimedJob, entry: Entry<'_>) {
    let summary = &job.summary;
    let entry = Entry { job: summary.id, job_type: &summary.job_type, attempt: summary.attempt, ..entry };
    shared.journal.entry(&entry).await;
}

/// The last line of stdout, if it is JSON.
fn result(shared: &Shared, job: &ClaimedJob, stdout: &mut LastLine) -> Option<Json> {
    let line = stdout.line();
    if line.is_too_long {
        let most = limits::RESULT_MAX_BYTES;
        let id = job.summary.id;
        shared
            .journal
            .note(&format!("job {id}: the last line of stdout has more than {most} bytes and is no result"));
    }
    Json::from_text(line.text()?.to_owned()).ok()
}

async fn complete(shared: &Shared, job: &ClaimedJob, result: Option<Json>) -> Result<Answer<Job>, Error> {
    let has_result = result.is_some();
    let lease = Some(job.lease.clone());
    let report =
        Report::Complete(CompleteRequest { lease: lease.clone(), result, ..CompleteRequest::default() });
    let refused = |error: &Error| {
        let code = error.code();
        matches!(
            code,
            Some(Code::InvalidJson | Code::InvalidRequest | Code::ResultTooLarge | Code::BodyTooLarge)
        )
    };
    match repeat(shared, job, &report).await {
        // That the work is done must not be lost to the form of its result.
        Err(error) if has_result && refused(&error) => {
            let id = job.summary.id;
            shared
                .journal
                .note(&format!("job {id}: completed without its result, which was refused: {error}"));
            let report = Report::Complete(CompleteRequest { lease, ..CompleteRequest::default() });
            repeat(shared, job, &report).await
        }
        answer => answer,
    }
}

async fn fail(
    shared: &Shared,
    job: &ClaimedJob,
    (class, text): (ErrorClass, &str),
) -> Result<Answer<Job>, Error> {
    let report = Report::Fail(FailRequest {
        lease: Some(job.lease.clone()),
        error: Some(Json::from(&serde_json::Value::from(text))),
        class: Some(class),
        ..FailRequest::default()
    });
    repeat(shared, job, &report).await
}

/// Gives a job back that was not begun.
pub(super) async fn release(shared: &Shared, job: &ClaimedJob) {
    let report = Report::Release(ReleaseRequest {
        lease: Some(job.lease.clone()),
        reason: Some("the worker cannot run its command".to_owned()),
        ..ReleaseRequest::default()
    });
    let answer = repeat(shared, job, &report).await;
    let outcome = if answer.is_ok() { "released" } else { "not-reported" };
    entry(shared, job, Entry { outcome, ..Entry::default() }).await;
}

/// What is sent.
enum Report {
    Complete(CompleteRequest),
    Fail(FailRequest),
    Release(ReleaseRequest),
}

impl Report {
    async fn send(&self, client: &Client, id: i64) -> Result<Answer<Job>, Error> {
        match self {
            Self::Complete(request) => {
                client.complete(id, request).await.map(|answer| answer.map(CompletedJob::into_job))
            }
            Self::Fail(request) => client.fail(id, request).await,
            Self::Release(request) => client.release(id, request).await,
        }
    }
}

/// Sends a report until it is answered. A server that was away moves live leases along by that time, up to an hour, so a
/// report may count for its lease and that hour.
async fn repeat(shared: &Shared, job: &ClaimedJob, report: &Report) -> Result<Answer<Job>, Error> {
    let begun = shared.clock.monotonic();
    let beats = u32::try_from(limits::HEARTBEATS_PER_LEASE).unwrap_or(3);
    let lease = length(job.heartbeat_seconds).saturating_mul(beats);
    let patience = lease.saturating_add(Duration::from_millis(limits::GAP_CAP_MS.unsigned_abs()));
    let mut phase = shared.phase();
    let mut failures = 0;
    loop {
        let error = match report.send(&shared.client, job.summary.id).await {
            Ok(answer) => {
                shared.trouble.over(&shared.journal);
                return Ok(answer);
            }
            Err(error) => error,
        };
        let is_answered = error.problem().is_some_and(|problem| !problem.retryable && problem.status < 500);
        let patience = if *phase.borrow() == Phase::Abort { ABORT_PATIENCE } else { patience };
        if is_answered || shared.clock.monotonic().saturating_sub(begun) > patience {
            return Err(error);
        }
        shared.trouble.note(&error, &shared.journal);
        failures += 1;
        let wait = backoff(failures, shared.chance());
        tokio::select! {
            () = pause(error.retry_after().unwrap_or(wait).max(wait)) => {}
            // Once more, at once.
            () = reach(&mut phase, Phase::Abort), if failures == 1 => {}
        }
    }
}
