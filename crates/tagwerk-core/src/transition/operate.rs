//! What people do: cancel, retry, discard, force-fail, delete, replace, unblock.

use super::{Answer, History, Step, state};
use crate::{
    Action, Attempt, AttemptEnd, Cause, Failure, FailureClass, Job, Reason, Rejection, Status, Timestamp,
};

/// Judges an action. A version that was seen is compared only where the action would change something, so that a
/// second click hears what became of the first instead of "look again". A deletion always changes something.
pub(super) fn operate(
    job: &Job,
    action: &Action,
    seen_version: Option<i64>,
    now: Timestamp,
) -> Result<Step, Rejection> {
    let step = act(job, action, now)?;
    match seen_version {
        Some(seen) if seen != job.version && (step.answer == Answer::Done || *action == Action::Delete) => {
            Err(Rejection::VersionChanged { seen, current: job.version })
        }
        _ => Ok(step),
    }
}

fn act(job: &Job, action: &Action, now: Timestamp) -> Result<Step, Rejection> {
    match action {
        Action::Cancel { wait: true } if job.status == Status::Running => Ok(request_cancel(job, now)),
        Action::Cancel { .. } => cancel(job, now),
        Action::Retry { max_retries } => match job.superseded_by {
            Some(by) if job.status == Status::Failed => Err(Rejection::Superseded { by, may_force: true }),
            _ => retry(job, *max_retries, now),
        },
        Action::ForceRetry { max_retries } => retry(job, *max_retries, now),
        Action::Discard => discard(job, now),
        Action::ForceFail { error } => force_fail(job, error, now),
        Action::Delete => Ok(delete(job, now)),
        Action::Replace { available_at } => replace(job, *available_at, now),
        Action::Unblock => unblock(job, now),
    }
}

/// `cancel {wait: true}`: the attempt that runs keeps its slot until its holder's next call or its lease end.
fn request_cancel(job: &Job, now: Timestamp) -> Step {
    if job.cancel_requested {
        return Step::replayed(job);
    }
    let mut next = job.clone();
    next.cancel_requested = true;
    next.acted = true;
    state::done(next, History::Unchanged, now)
}

fn cancel(job: &Job, now: Timestamp) -> Result<Step, Rejection> {
    match job.status {
        Status::Pending | Status::Running => Ok(cancelled(job, now)),
        Status::Completed => Err(Rejection::AlreadyCompleted),
        Status::Failed => Err(Rejection::UseDiscard),
        Status::Cancelled => Ok(Step::replayed(job)),
    }
}

/// The holder's next call after `cancel {wait: true}`: whatever it asks for, it is told to stop, and the job is cancelled.
pub(super) fn cancel_at_contact(job: &Job, now: Timestamp) -> Step {
    Step { answer: Answer::Refused(Rejection::Cancelled), ..cancelled(job, now) }
}

/// Cancels a job in whatever state; a live lease is void from now on.
fn cancelled(job: &Job, now: Timestamp) -> Step {
    let mut next = job.clone();
    let ended = state::end_attempt(&mut next, AttemptEnd::Cancelled, now);
    next.acted = true;
    state::cancel(&mut next, now);
    state::done(next, state::appended(ended), now)
}

/// From review back into the queue, with all its retries and without the losses so far. What is not known stays not
/// known: `verify` is kept.
fn retry(job: &Job, max_retries: Option<u32>, now: Timestamp) -> Result<Step, Rejection> {
    if job.status != Status::Failed {
        return Err(Rejection::NotFailed { status: job.status });
    }
    let mut next = job.clone();
    next.retry_count = 0;
    next.lease_losses = 0;
    next.max_retries = max_retries.unwrap_or(job.max_retries);
    next.expires_at = job.max_age_ms.map(|ms| now.plus_ms(ms));
    next.acted = true;
    next.superseded_by = None;
    state::wait(&mut next, now);
    Ok(state::done(next, History::Unchanged, now))
}

fn discard(job: &Job, now: Timestamp) -> Result<Step, Rejection> {
    match job.status {
        Status::Failed => Ok(cancelled(job, now)),
        Status::Cancelled => Ok(Step::replayed(job)),
        Status::Pending | Status::Running => Err(Rejection::UseCancel { status: job.status }),
        Status::Completed => Err(Rejection::NotFailed { status: job.status }),
    }
}

/// Ends the running attempt. What it did is unknown, so a retry from review is told to verify.
fn force_fail(job: &Job, error: &str, now: Timestamp) -> Result<Step, Rejection> {
    match job.status {
        Status::Running => {}
        Status::Failed => return Ok(Step::replayed(job)),
        Status::Pending | Status::Completed => return Err(Rejection::NotRunning { status: job.status }),
        Status::Cancelled => return Err(Rejection::Cancelled),
    }
    let mut next = job.clone();
    let ended = state::end_attempt(&mut next, AttemptEnd::Forced, now);
    next.acted = true;
    next.verify = true;
    next.error = Some(error.to_owned());
    let failure = Failure { class: FailureClass::Unknown, reason: Reason::Forced, cause: Cause::Operator };
    state::review(&mut next, failure, now);
    let attempt = ended.map(|attempt| Attempt { error: Some(error.to_owned()), ..attempt });
    Ok(state::done(next, state::appended(attempt), now))
}

/// Makes the job erasable: what has not ended is cancelled first, so that key, ledger and order are settled the usual way.
fn delete(job: &Job, now: Timestamp) -> Step {
    match job.status {
        Status::Pending | Status::Running | Status::Failed => cancelled(job, now),
        Status::Completed | Status::Cancelled => Step::replayed(job),
    }
}

fn replace(job: &Job, available_at: Timestamp, now: Timestamp) -> Result<Step, Rejection> {
    if job.status != Status::Pending || job.started {
        return Err(Rejection::AlreadyStarted);
    }
    let mut next = job.clone();
    next.acted = true;
    state::wait(&mut next, available_at);
    Ok(state::done(next, History::Unchanged, now))
}

/// Whether the job holds anything is for whoever keeps the order of its key; here it only stays in review.
fn unblock(job: &Job, now: Timestamp) -> Result<Step, Rejection> {
    if job.status != Status::Failed {
        return Err(Rejection::NotFailed { status: job.status });
    }
    let mut next = job.clone();
    next.acted = true;
    Ok(state::done(next, History::Unchanged, now))
}
