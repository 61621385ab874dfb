//! What happens by itself: the end of a lease, the time limit, the maximum age, a lease that its holder never heard of, and
//! retention. Each may happen only when its time can have come.

use super::job::{Before, End, Facts, Job, Lease, Life};
use crate::call::{Class, Status};
use crate::rules::{Rules, When, plus_ms};

/// A step that no call asks for.
#[derive(Clone, Debug)]
pub(crate) struct Hidden {
    /// It cannot have happened before.
    pub(crate) lo: u64,
    pub(crate) next: Life,
    /// In words: what happened to the job.
    pub(crate) what: &'static str,
}

/// How an attempt came to its end without success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setback {
    Reported(Class),
    LeaseExpired,
    TimedOut,
}

/// Every hidden step that a job can take. `floor`: nothing happens before that any more.
pub(crate) fn hidden(job: &Job, facts: &Facts, (rules, floor): (&Rules, u64)) -> Vec<Hidden> {
    let mut steps = Vec::new();
    let mut add = |lo: u64, what, next: &dyn Fn(When) -> Vec<Life>| {
        let at = When { lo: lo.max(floor), hi: u64::MAX };
        steps.extend(next(at).into_iter().map(|next| Hidden { lo: at.lo, next, what }));
    };
    let here = |job: Job| Life::Here(Box::new(job));
    if let Some(lease) = job.live() {
        for (end, lo) in ends(lease, facts, rules) {
            let what = if end == End::TimedOut { "its time limit was reached" } else { "its lease ended" };
            add(lo, what, &|at| lost(job, end, facts, at).into_iter().map(here).collect());
        }
        if !lease.heard {
            add(lease.claimed.lo, "it was given back because nobody read the answer to the claim", &|at| {
                // To a cancel that waits it is the holder's next word.
                if job.cancel_requested {
                    return vec![here(cancelled_at_contact(job, at))];
                }
                let mut next = job.clone();
                next.end_lease(End::Released, None);
                released(&next, at).into_iter().map(here).collect()
            });
        }
    }
    if job.status == Status::Pending
        && let Some(expires) = job.expires
    {
        add(expires.lo, "its maximum age was reached", &|at| {
            let mut next = job.moved(Status::Failed);
            next.review("expired", at);
            next.failed_by_time = true;
            vec![here(next)]
        });
    }
    let kept = match job.status {
        Status::Completed => rules.completed_kept_ms,
        Status::Cancelled => rules.cancelled_kept_ms,
        Status::Pending | Status::Running | Status::Failed => None,
    };
    if let (Some(kept), Some(finished)) = (kept, job.finished) {
        let lo = plus_ms(finished.lo, i64::try_from(kept).unwrap_or(i64::MAX));
        add(lo, "retention erased it", &|_| vec![gone(job, finished)]);
    }
    steps
}

/// How a lease can end by itself, and from when on. If lease end and time limit fall together it is a time-out.
fn ends(lease: &Lease, facts: &Facts, rules: &Rules) -> Vec<(End, u64)> {
    let expired = (End::LeaseExpired, lease.ends_not_before(rules.lease_early_ms));
    let (Some(limit), Some(timeout_ms)) = (lease.limit, facts.timeout_ms) else { return vec![expired] };
    let early = i64::try_from(rules.lease_early_ms).unwrap_or(i64::MAX);
    let timed_out = (End::TimedOut, plus_ms(limit.lo, -early));
    match (lease.claimed_ms, lease.until_ms) {
        (Some(claimed_ms), Some(until_ms)) if until_ms >= claimed_ms + timeout_ms => {
            // A stop moves both, so an end that was moved may still be the lease's.
            if rules.stopped_ns.is_empty() { vec![timed_out] } else { vec![timed_out, expired] }
        }
        (Some(_), Some(_)) if !lease.extended => vec![expired],
        _ => vec![expired, timed_out],
    }
}

/// The lease is lost.
fn lost(job: &Job, end: End, facts: &Facts, at: When) -> Vec<Job> {
    let mut next = job.clone();
    next.end_lease(end, None);
    if job.cancel_requested {
        let mut next = next.moved(Status::Cancelled);
        next.settle(Status::Cancelled, at);
        return vec![next];
    }
    if let Some(lease) = next.leases.last_mut() {
        lease.before =
            Some(Before { retry_count: job.retry_count, lease_losses: job.lease_losses, verify: job.verify });
    }
    let setback = if end == End::TimedOut { Setback::TimedOut } else { Setback::LeaseExpired };
    follow(&next, setback, facts, at)
}

/// What follows an attempt that did not succeed. With a maximum age there are two answers, since the back-off is random.
pub(crate) fn follow(job: &Job, setback: Setback, facts: &Facts, at: When) -> Vec<Job> {
    let mut next = job.moved(job.status);
    next.failed_by_time = false;
    if setback == Setback::LeaseExpired {
        next.lease_losses += 1;
    }
    let unknown = !matches!(setback, Setback::Reported(Class::Transient | Class::Permanent));
    next.verify = unknown;
    let exhausted = next.retry_count >= next.max_retries;
    let reason = match setback {
        Setback::LeaseExpired if next.lease_losses >= facts.max_lease_losses => Some("worker_lost"),
        Setback::Reported(Class::Permanent) => Some("permanent"),
        Setback::Reported(Class::Transient) => exhausted.then_some("retries_exhausted"),
        Setback::Reported(Class::Unknown) | Setback::LeaseExpired | Setback::TimedOut => {
            (exhausted || facts.review_unknown).then_some("outcome_unknown")
        }
    };
    let by_time = !matches!(setback, Setback::Reported(_));
    if let Some(reason) = reason {
        next.review(reason, at);
        next.failed_by_time = by_time;
        return vec![next];
    }
    let mut late = next.clone();
    next.retry_count += 1;
    next.wait();
    if next.expires.is_none() {
        return vec![next];
    }
    late.review("expired", at);
    late.failed_by_time = by_time;
    vec![next, late]
}

/// A cancel has waited for the holder's next word.
pub(crate) fn cancelled_at_contact(job: &Job, at: When) -> Job {
    let mut next = job.moved(Status::Cancelled);
    next.end_lease(End::Cancelled, None);
    next.acted = true;
    next.settle(Status::Cancelled, at);
    next
}

/// Given back: the number of the attempt is free again; `verify` stays, since who gives a job back has looked up nothing.
pub(crate) fn released(job: &Job, at: When) -> Vec<Job> {
    let mut next = job.moved(Status::Pending);
    next.attempt = next.attempt.saturating_sub(1);
    next.release_count += 1;
    next.wait();
    if next.expires.is_none() {
        return vec![next];
    }
    let mut late = next.clone();
    late.review("expired", at);
    vec![next, late]
}

/// What is left of a job that had ended.
pub(crate) fn gone(job: &Job, finished: When) -> Life {
    Life::Gone { status: job.status, started: job.started, finished, key: job.key.clone() }
}
