//! Reports, repeated until they arrive or nobody could want them any more.

use std::time::Duration;

use tagwerk_api::answer::ClaimedJob;
use tagwerk_api::problem::Code;
use tagwerk_api::request::{CompleteRequest, EnqueueRequest, FailRequest, ReleaseRequest};
use tagwerk_api::{ErrorClass, Json};

use super::failure::throttle;
use super::{Event, Failure, Kind, Outcome, Settings};
use crate::task::seconds;
use crate::{Client, Error, Retries};

/// How long a report is repeated while the server is away.
pub(super) const PATIENCE: Duration = Duration::from_hours(1);
/// Waits between tries while the server is away.
pub(super) const AWAY: Retries =
    Retries { tries: u32::MAX, first: Duration::from_millis(200), cap: Duration::from_secs(20), seed: 0 };

/// What came of a report.
#[derive(Debug)]
pub(super) enum Reported {
    Completed,
    Failed(Failure),
    Released,
    /// The lease is lost or the job cancelled.
    Lost,
    Refused(Error),
}

/// Reports what the handler came to.
pub(super) async fn report(
    settings: &Settings,
    (job, follow_ups): (&ClaimedJob, Vec<EnqueueRequest>),
    outcome: Outcome,
) -> Reported {
    let reported = match outcome {
        Ok(result) => complete(settings, job, (result, follow_ups)).await.map(|()| Reported::Completed),
        Err(failure) => end(settings, job, failure).await,
    };
    reported.unwrap_or_else(|error| {
        let is_stop = error.problem().is_some_and(|problem| problem.stop == Some(true));
        if is_stop { Reported::Lost } else { Reported::Refused(error) }
    })
}

/// The work is done. If the server refuses what comes with that, the result is left out; with follow-ups it cannot be, so the job
/// goes to review, where somebody sees why.
async fn complete(
    settings: &Settings,
    job: &ClaimedJob,
    (result, follow_ups): (Option<Json>, Vec<EnqueueRequest>),
) -> Result<(), Error> {
    let lease = Some(job.lease.clone());
    let enqueue = (!follow_ups.is_empty()).then_some(follow_ups);
    let leads_on = enqueue.is_some();
    let whole = CompleteRequest { lease: lease.clone(), result, enqueue, ..CompleteRequest::default() };
    let error = match repeat(settings, job, &Report::Complete(whole)).await {
        Err(error) if is_about_the_body(&error) => error,
        Err(error) if error.code() == Some(Code::EffectsOpen) => {
            end(settings, job, in_doubt(&error)).await?;
            return Err(error);
        }
        outcome => return outcome,
    };
    if leads_on {
        let failure = Failure::permanent(format!("the work is done, its completion was refused: {error}"));
        end(settings, job, failure).await?;
        return Err(error);
    }
    (settings.listener)(&Event::Trouble(error));
    let bare = CompleteRequest { lease, ..CompleteRequest::default() };
    repeat(settings, job, &Report::Complete(bare)).await
}

/// The handler has left an effect open and says that all is well, or that nothing happened: it does not know.
fn in_doubt(error: &Error) -> Failure {
    Failure::unknown(format!("the handler ended while an effect is open: {error}"))
}

/// Whether another body would be taken.
fn is_about_the_body(error: &Error) -> bool {
    let code = error.code();
    let of_body =
        [Code::InvalidJson, Code::InvalidRequest, Code::ResultTooLarge, Code::BodyTooLarge, Code::Forbidden];
    code.is_some_and(|code| of_body.contains(&code))
}

/// Not completed.
async fn end(settings: &Settings, job: &ClaimedJob, failure: Failure) -> Result<Reported, Error> {
    match &failure.0 {
        Kind::Failed { .. } => {
            repeat(settings, job, &Report::Fail(failed(job, &failure))).await?;
            Ok(Reported::Failed(failure))
        }
        Kind::Released { delay, reason } => {
            let request = ReleaseRequest {
                lease: Some(job.lease.clone()),
                delay_seconds: Some(seconds(*delay)),
                reason: Some(reason.clone()),
                ..ReleaseRequest::default()
            };
            match repeat(settings, job, &Report::Release(request)).await {
                Ok(()) => Ok(Reported::Released),
                Err(error) if error.code() == Some(Code::EffectsOpen) => {
                    let failure = in_doubt(&error);
                    repeat(settings, job, &Report::Fail(failed(job, &failure))).await?;
                    Ok(Reported::Failed(failure))
                }
                Err(error) => Err(error),
            }
        }
    }
}

fn failed(job: &ClaimedJob, failure: &Failure) -> FailRequest {
    let lease = Some(job.lease.clone());
    let Kind::Failed { class, error, retry_after, throttle: held, .. } = failure.0.clone() else {
        return FailRequest { lease, ..FailRequest::default() };
    };
    FailRequest {
        lease,
        error: Some(Json::from(&serde_json::Value::from(error))),
        class: Some(class),
        retry_after_seconds: retry_after.filter(|_| class == ErrorClass::Transient).map(seconds),
        throttle: throttle(held),
        ..FailRequest::default()
    }
}

/// What is sent.
enum Report {
    Complete(CompleteRequest),
    Fail(FailRequest),
    Release(ReleaseRequest),
}

impl Report {
    async fn send(&self, client: &Client, id: i64) -> Result<(), Error> {
        match self {
            Self::Complete(request) => client.complete(id, request).await.map(drop),
            Self::Fail(request) => client.fail(id, request).await.map(drop),
            Self::Release(request) => client.release(id, request).await.map(drop),
        }
    }
}

/// Whether the server may be back, and the same call is worth another try.
pub(super) fn is_away(error: &Error) -> bool {
    error.is_unreachable() || error.is_retryable() || error.is_outcome_unknown()
}

/// Sends a report again while the server is away: with its lease it counts once.
async fn repeat(settings: &Settings, job: &ClaimedJob, report: &Report) -> Result<(), Error> {
    let mut waited = Duration::ZERO;
    let mut tries = 0;
    loop {
        let Err(error) = report.send(&settings.client, job.summary.id).await else { return Ok(()) };
        if !is_away(&error) || waited > PATIENCE {
            return Err(error);
        }
        tries += 1;
        let pause = AWAY.wait(tries, error.retry_after()).unwrap_or(AWAY.cap);
        (settings.listener)(&Event::Trouble(error));
        // tidy: sleep because the server that is away cannot say when it is back
        tokio::time::sleep(pause).await;
        waited += pause;
    }
}
