//! What people do.

use super::job::{End, Facts, Job};
use super::world::Says;
use crate::call::{Action, Status};
use crate::rules::When;

/// What comes of an action. Deleting is the world's business. A version that was seen counts only where something would change.
pub(crate) fn operate(
    job: &Job,
    (action, seen_version): (Action, Option<i64>),
    facts: &Facts,
    at: When,
) -> (Job, Says) {
    let (next, says) = act(job, action, facts, at);
    let changes = says == Says::Job || action == Action::Delete;
    if changes && seen_version.is_some_and(|seen| seen != job.version) {
        return (job.clone(), Says::Refused("version-changed", None));
    }
    (next, says)
}

fn act(job: &Job, action: Action, facts: &Facts, at: When) -> (Job, Says) {
    let refused = |code| (job.clone(), Says::Refused(code, None));
    let nothing = || (job.clone(), Says::Again);
    match (action, job.status) {
        (Action::Cancel { wait: true }, Status::Running) if job.cancel_requested => nothing(),
        (Action::Cancel { wait: true }, Status::Running) => {
            let mut next = job.moved(Status::Running);
            next.cancel_requested = true;
            next.acted = true;
            (next, Says::Job)
        }
        (Action::Cancel { .. }, Status::Pending | Status::Running)
        | (Action::Discard, Status::Failed)
        | (Action::Delete, Status::Pending | Status::Running | Status::Failed) => {
            (cancelled(job, at), Says::Job)
        }
        (Action::Cancel { .. }, Status::Completed) => refused("already-completed"),
        (Action::Cancel { .. }, Status::Failed) => refused("use-discard"),
        (Action::Cancel { .. } | Action::Discard, Status::Cancelled)
        | (Action::ForceFail, Status::Failed)
        | (Action::Delete, Status::Completed | Status::Cancelled) => nothing(),
        (Action::Retry { max_retries }, Status::Failed) => (retried(job, max_retries, facts, at), Says::Job),
        (Action::Retry { .. }, _) | (Action::Discard, Status::Completed) => refused("not-failed"),
        (Action::Discard, Status::Pending | Status::Running) => refused("use-cancel"),
        (Action::ForceFail, Status::Running) => (forced(job, at), Says::Job),
        (Action::ForceFail, Status::Pending | Status::Completed) => {
            (job.clone(), Says::Refused("not-running", Some(false)))
        }
        (Action::ForceFail, Status::Cancelled) => (job.clone(), Says::Refused("cancelled", Some(false))),
    }
}

fn cancelled(job: &Job, at: When) -> Job {
    let mut next = job.moved(Status::Cancelled);
    next.end_lease(End::Cancelled, None);
    next.acted = true;
    next.settle(Status::Cancelled, at);
    next
}

/// From review: with all retries and without the losses so far; what is not known stays not known.
fn retried(job: &Job, max_retries: Option<u32>, facts: &Facts, at: When) -> Job {
    let mut next = job.moved(Status::Pending);
    next.retry_count = 0;
    next.lease_losses = 0;
    next.max_retries = max_retries.unwrap_or(job.max_retries);
    next.acted = true;
    next.expires = match facts.age {
        super::job::Age::Moment => None,
        _ => facts.expires(at),
    };
    next.wait();
    next
}

/// What the attempt did is unknown, so whoever gets the job after a retry is told to look first.
fn forced(job: &Job, at: When) -> Job {
    let mut next = job.moved(Status::Failed);
    next.end_lease(End::Forced, None);
    next.acted = true;
    next.verify = true;
    next.review("forced", at);
    next
}
