//! Calls of a holder who goes on working: heartbeat and checkpoint.

use super::caller::{self, Place};
use super::{Answer, History, Step, operate};
use crate::{Call, Caller, Job, Lease, Rejection, Timestamp};

/// Extends the lease from now. It never shortens it, and never moves it past the time limit.
pub(super) fn heartbeat(job: &Job, caller: &Caller, now: Timestamp) -> Result<Step, Rejection> {
    let lease = holder(job, caller, Call::Heartbeat)?;
    if job.cancel_requested {
        return Ok(operate::cancel_at_contact(job, now));
    }
    let extended = lease.expires_at.max(now.plus_ms(lease.lease_ms));
    let expires_at = lease.time_limit_at.map_or(extended, |limit| limit.min(extended));
    let mut next = job.clone();
    next.lease = Some(Lease { expires_at, ..lease.clone() });
    Ok(unversioned(next))
}

/// Lets the engine store a checkpoint: only the holder may, and nothing of the job changes.
pub(super) fn checkpoint(job: &Job, caller: &Caller, now: Timestamp) -> Result<Step, Rejection> {
    holder(job, caller, Call::Checkpoint)?;
    if job.cancel_requested {
        return Ok(operate::cancel_at_contact(job, now));
    }
    Ok(unversioned(job.clone()))
}

/// The caller's lease, if the caller is the holder.
pub(super) fn holder<'a>(job: &'a Job, caller: &'a Caller, call: Call) -> Result<&'a Lease, Rejection> {
    match caller::place_by_token(job, caller) {
        Some(Place::Holder(lease)) => Ok(lease),
        Some(Place::Late(attempt, _)) => Err(caller::late(attempt)),
        Some(Place::Reported(_) | Place::Stale) => Err(caller::stale(job, call)),
        None => Err(Rejection::LeaseRequired),
    }
}

/// Done without a new version: what a worker does while it works must not make an operator's `seen_version` out of date.
pub(super) fn unversioned(job: Job) -> Step {
    Step { job, history: History::Unchanged, answer: Answer::Done }
}
