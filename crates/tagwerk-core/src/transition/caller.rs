//! Who calls, seen from the job: the holder, the holder of a lost lease (late), somebody whose report counted already,
//! or somebody whose word no longer counts (stale).

use crate::{Attempt, AttemptEnd, Before, Call, Caller, Cause, Job, Lease, Rejection, Status};

/// Where a caller stands.
pub(super) enum Place<'a> {
    /// Holds the live lease.
    Holder(&'a Lease),
    /// Held the newest lease; it was lost, and nobody has decided anything since.
    Late(&'a Attempt, &'a Before),
    /// Its attempt ended by its own report.
    Reported(&'a Attempt),
    /// A newer lease exists, or a person acted, or the job is final, or the token is unknown.
    Stale,
}

/// The place of a caller who sent a token; `None` for a call without one.
pub(super) fn place_by_token<'a>(job: &'a Job, caller: &'a Caller) -> Option<Place<'a>> {
    match caller {
        Caller::Live(bits) => Some(match &job.lease {
            Some(lease) if lease.bits == *bits => Place::Holder(lease),
            _ => Place::Stale,
        }),
        Caller::Past(attempt) => Some(place_of_past(job, attempt)),
        Caller::Stranger => Some(Place::Stale),
        Caller::NoToken { .. } => None,
    }
}

/// The place of somebody who reports without a token as `worker`: that of the newest lease's holder, but only if the
/// report can be nobody else's.
pub(super) fn place_without_token<'a>(
    job: &'a Job,
    worker: Option<&str>,
    newest: Option<&'a Attempt>,
) -> Result<Place<'a>, Rejection> {
    // Whoever it is, a cancelled job is nobody's to work on, and "send the token" would not help.
    let refuse = |rejection| if job.status == Status::Cancelled { cancelled(job) } else { rejection };
    let not_running = Rejection::NotRunning { status: job.status };
    if job.leases == 0 {
        return Err(refuse(not_running));
    }
    if job.earlier_lost {
        return Err(refuse(Rejection::LeaseRequired));
    }
    let holder = job.lease.as_ref().map(|lease| &lease.worker).or(newest.map(|attempt| &attempt.worker));
    if worker.is_some() && holder.is_some() && worker != holder.map(String::as_str) {
        return Err(refuse(Rejection::LeaseRequired));
    }
    match (&job.lease, newest) {
        (Some(lease), _) => Ok(Place::Holder(lease)),
        (None, Some(attempt)) => Ok(place_of_past(job, attempt)),
        (None, None) => Err(refuse(not_running)),
    }
}

/// The place of the holder of a lease that has ended.
fn place_of_past<'a>(job: &Job, attempt: &'a Attempt) -> Place<'a> {
    if attempt.end.is_reported() {
        return Place::Reported(attempt);
    }
    match &attempt.before {
        Some(before) if is_undecided_since(job, attempt) => Place::Late(attempt, before),
        _ => Place::Stale,
    }
}

/// Whether nothing but time has happened to the job since this attempt was lost.
fn is_undecided_since(job: &Job, attempt: &Attempt) -> bool {
    let by_time_alone = match job.status {
        Status::Pending => true,
        Status::Failed => job.failure.is_some_and(|failure| {
            matches!(failure.cause, Cause::LeaseExpired | Cause::TimedOut | Cause::MaxAge)
        }),
        Status::Running | Status::Completed | Status::Cancelled => false,
    };
    by_time_alone && attempt.seq == job.leases && job.lease.is_none() && !job.acted
}

/// What is told to who still works on a cancelled job.
fn cancelled(job: &Job) -> Rejection {
    job.superseded_by.map_or(Rejection::Cancelled, |by| Rejection::Superseded { by, may_force: false })
}

/// What a stale caller is told.
pub(super) fn stale(job: &Job, call: Call) -> Rejection {
    match (job.status, call) {
        (Status::Cancelled, _) => cancelled(job),
        (
            Status::Completed,
            Call::Heartbeat | Call::Checkpoint | Call::EffectBegin | Call::EffectFinish | Call::EffectAbort,
        ) => Rejection::NotRunning { status: job.status },
        _ => Rejection::LeaseLost { may_report: false },
    }
}

/// What a late caller is told who asks for more than to report: finish, begin nothing; a lease is never revived.
pub(super) fn late(attempt: &Attempt) -> Rejection {
    match attempt.end {
        AttemptEnd::TimedOut => Rejection::TimedOut { may_report: true },
        _ => Rejection::LeaseLost { may_report: true },
    }
}
