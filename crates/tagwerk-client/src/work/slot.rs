//! One job after the other.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tagwerk_api::answer::ClaimedJob;
use tagwerk_api::request::{ClaimRequest, HeartbeatRequest, ReleaseRequest};
use tokio::sync::watch;

use super::effect::Journal;
use super::report::{AWAY, Reported, report};
use super::{Context, Event, Facts, Failure, Settings, Tally, outcome};
use crate::task::seconds;
use crate::{Answer, Error};

/// A server that answers "nothing" at once is not asked again before this.
const IDLE: Duration = Duration::from_secs(1);

/// Works until told to stop.
pub(super) async fn work(settings: Arc<Settings>, stop: watch::Receiver<bool>) -> Result<Tally, Error> {
    let mut tally = Tally::default();
    while !*stop.borrow() {
        let Some(job) = next(&settings, stop.clone()).await? else { continue };
        let id = job.summary.id;
        let event = match run(&settings, job).await {
            Reported::Completed => {
                tally.completed += 1;
                Event::Completed(id)
            }
            Reported::Failed(failure) => {
                tally.failed += 1;
                Event::Failed(id, failure)
            }
            Reported::Released => {
                tally.released += 1;
                Event::Released(id)
            }
            Reported::Lost => {
                tally.lost += 1;
                Event::Lost(id)
            }
            Reported::Refused(error) => {
                tally.lost += 1;
                Event::NotReported(id, error)
            }
        };
        (settings.listener)(&event);
    }
    Ok(tally)
}

/// The next job; `None` if there was none in time, or it is time to stop.
async fn next(settings: &Settings, mut stop: watch::Receiver<bool>) -> Result<Option<ClaimedJob>, Error> {
    let mut claim = ClaimRequest {
        worker_id: settings.name.clone(),
        queues: settings.queues.clone(),
        types: Some(settings.handlers.types()),
        wait_seconds: Some(seconds(settings.poll)),
        lease_seconds: Some(seconds(settings.lease)),
        handles_verify: settings.handles_verify.then_some(true),
        request_id: Some(settings.requests.next()),
    };
    let mut tries = 0;
    loop {
        let Some((answer, is_quick)) = ask(settings, &claim, &mut stop).await else { break };
        let pause = match answer {
            Ok(answer) if answer.value.is_some() => return Ok(answer.value),
            Ok(answer) => {
                if is_quick {
                    wait(answer.retry_after.unwrap_or(IDLE).max(IDLE), &mut stop).await;
                }
                return Ok(None);
            }
            Err(error) if is_final(&error) => return Err(error),
            Err(error) => {
                tries += 1;
                let pause = AWAY.wait(tries, error.retry_after()).unwrap_or(AWAY.cap);
                (settings.listener)(&Event::Trouble(error));
                pause
            }
        };
        if wait(pause, &mut stop).await {
            break;
        }
    }
    // The claim may have got a job that nobody has heard of: the same claim gets the same job, which is given back.
    claim.wait_seconds = None;
    if let Ok(answer) = settings.client.claim(&claim).await
        && let Some(job) = answer.value
    {
        let reason = Some("the worker is stopping".to_owned());
        let release = ReleaseRequest { lease: Some(job.lease), reason, ..ReleaseRequest::default() };
        if let Err(error) = settings.client.release(job.summary.id, &release).await {
            (settings.listener)(&Event::NotReported(job.summary.id, error));
        }
    }
    Ok(None)
}

/// The answer to a claim, and whether it came at once; `None`: it is time to stop.
async fn ask(
    settings: &Settings,
    claim: &ClaimRequest,
    stop: &mut watch::Receiver<bool>,
) -> Option<(Result<Answer<Option<ClaimedJob>>, Error>, bool)> {
    let mut call = pin!(settings.client.claim(claim));
    // tidy: sleep because it measures whether an answer came at once
    let mut at_once = pin!(tokio::time::sleep(IDLE.min(settings.poll)));
    let mut is_quick = true;
    loop {
        tokio::select! {
            answer = &mut call => return Some((answer, is_quick)),
            () = &mut at_once, if is_quick => is_quick = false,
            _ = stop.wait_for(|stop| *stop) => return None,
        }
    }
}

/// Whether asking again would get the same answer: the request itself is refused.
fn is_final(error: &Error) -> bool {
    matches!(error, Error::BadToken | Error::Request(_) | Error::Authorities(_))
        || error.problem().is_some_and(|problem| !problem.retryable && problem.status < 500)
}

/// Waits, or until it is time to stop; whether it is.
async fn wait(length: Duration, stop: &mut watch::Receiver<bool>) -> bool {
    tokio::select! {
        // tidy: sleep because the server that is away cannot say when it is back
        () = tokio::time::sleep(length) => false,
        _ = stop.wait_for(|stop| *stop) => true,
    }
}

/// Runs the handler under heartbeats and reports.
async fn run(settings: &Settings, job: ClaimedJob) -> Reported {
    let (stopper, told) = watch::channel(false);
    let server = Some((settings.client.clone(), job.lease.clone()));
    let context = Context::new(Facts::of(&job), (job.checkpoint.clone(), Journal::default()), (told, server));
    let started = settings.handlers.start(&job.summary.job_type, context.clone(), job.payload.clone());
    let Some(mut task) = started else {
        // Only types with a handler are claimed.
        let failure = Failure::release(Duration::from_secs(30), "this worker has no handler for the type");
        return report(settings, (&job, Vec::new()), Err(failure)).await;
    };
    let mut hold = Hold::Held;
    let outcome = tokio::select! {
        outcome = outcome(&mut task) => outcome,
        never = beats(settings, (&job, &context), (&stopper, &mut hold)) => match never {},
    };
    if hold == Hold::Lost {
        return Reported::Lost;
    }
    let follow_ups = std::mem::take(&mut context.said().follow_ups);
    report(settings, (&job, follow_ups), outcome).await
}

/// How the lease stands, as far as the server has said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// It is held, or is over and a report still counts.
    Held,
    /// A report does not count any more.
    Lost,
}

/// Keeps the lease until the handler has ended. Told to stop, it says so and beats no more.
async fn beats(
    settings: &Settings,
    (job, context): (&ClaimedJob, &Context),
    (stopper, hold): (&watch::Sender<bool>, &mut Hold),
) -> Infallible {
    let every = Duration::from_millis(u64::try_from(job.heartbeat_seconds.ms()).unwrap_or(0).max(100));
    loop {
        // tidy: sleep because heartbeats go by time
        tokio::time::sleep(every).await;
        let progress = context.said().progress.clone();
        let beat = HeartbeatRequest { lease: job.lease.clone(), progress };
        let Err(error) = settings.client.heartbeat(job.summary.id, &beat).await else { continue };
        let refused = error.problem().filter(|problem| problem.stop == Some(true));
        if let Some(problem) = refused {
            if problem.may_report != Some(true) {
                *hold = Hold::Lost;
            }
            stopper.send_replace(true);
            std::future::pending::<Infallible>().await;
        }
        (settings.listener)(&Event::Trouble(error));
    }
}
