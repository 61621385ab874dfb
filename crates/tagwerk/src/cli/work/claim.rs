//! A slot: claims a job, runs it, reports, again.

use std::sync::Arc;
use std::time::Duration;

use tagwerk_client::Error;
use tagwerk_client::api::Seconds;
use tagwerk_client::api::answer::ClaimedJob;
use tagwerk_client::api::request::{ClaimRequest, ReleaseRequest};
use tagwerk_engine::ports::Clock;
use tokio::sync::watch;

use super::pause::{backoff, pause};
use super::run;
use super::shared::{Phase, Shared, reach};
use crate::cli::failure::Failure;

/// A claim waits this long for a job: long enough to be cheap, short enough for proxies that cut idle connections.
const WAIT: Duration = Duration::from_secs(20);

/// A server that answers "nothing" at once is not asked again before this.
const IDLE: Duration = Duration::from_secs(1);

/// Works until there is a reason to end.
pub(super) async fn slot(shared: Arc<Shared>, slot: u32) -> Result<(), Failure> {
    let mut number = 0;
    while shared.time_left().is_some() && shared.take_ticket() {
        number += 1;
        match next(&shared, shared.claim(slot, number)).await? {
            Some(job) => run::run(&shared, job).await?,
            None => shared.return_ticket(),
        }
    }
    Ok(())
}

/// The next job; `None` if there was none, or it is time to end. While the server is away, the same claim is repeated.
async fn next(shared: &Shared, mut claim: ClaimRequest) -> Result<Option<ClaimedJob>, Failure> {
    let mut phase = shared.phase();
    let mut failures = 0;
    while let Some(left) = shared.time_left() {
        let wait = left.min(WAIT);
        claim.wait_seconds = Some(Seconds::from_ms(i64::try_from(wait.as_millis()).unwrap_or(0)));
        let begun = shared.clock.monotonic();
        let answer = tokio::select! {
            answer = shared.client.claim(&claim) => answer,
            () = reach(&mut phase, Phase::Finish) => break,
        };
        match answer {
            Ok(answer) => {
                shared.trouble.over(&shared.journal);
                let quick = shared.clock.monotonic().saturating_sub(begun) < IDLE.min(wait);
                if answer.value.is_none() && quick {
                    pause_in_phase(&mut phase, answer.retry_after.unwrap_or(IDLE).clamp(IDLE, WAIT)).await;
                }
                return Ok(answer.value);
            }
            Err(error) if is_final(&error) => return Err(error.into()),
            Err(error) => {
                shared.trouble.note(&error, &shared.journal);
                failures += 1;
                let wait = backoff(failures, shared.chance());
                pause_in_phase(&mut phase, error.retry_after().unwrap_or(wait).max(wait).min(left)).await;
            }
        }
    }
    give_back(shared, claim).await;
    Ok(None)
}

/// Whether asking again would get the same answer: the request itself is refused.
fn is_final(error: &Error) -> bool {
    error.problem().is_some_and(|problem| !problem.retryable && problem.status < 500)
}

async fn pause_in_phase(phase: &mut watch::Receiver<Phase>, length: Duration) {
    tokio::select! {
        () = pause(length) => {}
        () = reach(phase, Phase::Finish) => {}
    }
}

/// A claim whose answer nobody waited for may have got a job: the same claim gets the same job, and gives it back.
async fn give_back(shared: &Shared, mut claim: ClaimRequest) {
    claim.wait_seconds = None;
    let Ok(answer) = shared.client.claim(&claim).await else { return };
    let Some(job) = answer.value else { return };
    let release = ReleaseRequest {
        lease: Some(job.lease),
        reason: Some("the worker is ending".to_owned()),
        ..ReleaseRequest::default()
    };
    if let Err(error) = shared.client.release(job.summary.id, &release).await {
        shared.trouble.note(&error, &shared.journal);
    }
}
