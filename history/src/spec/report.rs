//! Calls of workers about an attempt: who may, and what follows.

use super::job::{End, Facts, Job};
use super::time::{self, Setback};
use super::world::Says;
use crate::call::{By, Said, Status};
use crate::rules::{Rules, When};

/// Where a caller stands.
enum Place {
    Holder,
    /// Held the newest lease, which was lost, and nobody has decided anything since.
    Late(End),
    /// Its lease ended by its own report: index of the lease.
    Reported(usize),
    Stale,
    Refused(&'static str),
}

/// A call about an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Contact<'a> {
    Report(&'a Said),
    Heartbeat,
    Checkpoint(&'a str),
}

/// Everything that can come of it. Nothing, if the holder's lease must have ended before.
pub(crate) fn contact(
    job: &Job,
    (by, contact): (&By, Contact<'_>),
    (facts, rules): (&Facts, &Rules),
    at: When,
) -> Vec<(Job, Says)> {
    let places = [Some(place(job, by, contact)), perhaps_anothers(job, by, contact)];
    let places = places.into_iter().flatten();
    places.flat_map(|place| at_place(job, (place, contact), (facts, rules), at)).collect()
}

/// Nobody knows who holds the newest lease, so who names a worker may name another one.
fn perhaps_anothers(job: &Job, by: &By, contact: Contact<'_>) -> Option<Place> {
    let unknown = job.leases.last().is_some_and(|lease| lease.worker.is_none());
    let named = by.lease.is_none() && by.worker.is_some() && matches!(contact, Contact::Report(_));
    let code = if job.status == Status::Cancelled { "cancelled" } else { "lease-required" };
    (unknown && named).then_some(Place::Refused(code))
}

fn at_place(
    job: &Job,
    (place, contact): (Place, Contact<'_>),
    (facts, rules): (&Facts, &Rules),
    at: When,
) -> Vec<(Job, Says)> {
    let refused = |code, may_report| vec![(job.clone(), Says::Refused(code, may_report))];
    match place {
        Place::Refused(code) => refused(code, None),
        Place::Stale => refused(stale(job, contact), Some(false)),
        Place::Reported(index) => match contact {
            Contact::Report(said) if job.leases[index].said.as_ref() == Some(said) => {
                vec![(job.clone(), Says::Again)]
            }
            Contact::Report(_) => refused("already-reported", Some(false)),
            _ => refused(stale(job, contact), Some(false)),
        },
        Place::Late(end) => match contact {
            Contact::Report(said) => late(job, said, facts, at),
            _ if end == End::TimedOut => refused("timed-out", Some(true)),
            _ => refused("lease-lost", Some(true)),
        },
        Place::Holder if is_surely_over(job, rules, at) => Vec::new(),
        Place::Holder if job.cancel_requested => {
            vec![(time::cancelled_at_contact(job, at), Says::Refused("cancelled", Some(false)))]
        }
        Place::Holder => held(job, contact, facts, at),
    }
}

/// Whether the lease that is said to live must have ended.
fn is_surely_over(job: &Job, rules: &Rules, at: When) -> bool {
    let Some((late, lease)) = rules.lease_late_ms.zip(job.live()) else { return false };
    at.lo > lease.ends.hi.saturating_add(late.saturating_mul(1_000_000))
}

/// The holder's call.
fn held(job: &Job, contact: Contact<'_>, facts: &Facts, at: When) -> Vec<(Job, Says)> {
    let mut next = job.clone();
    match contact {
        Contact::Report(said) => {
            next.end_lease(End::of(said), Some(said));
            apply(&next, said, facts, at).into_iter().map(|next| (next, Says::Job)).collect()
        }
        Contact::Heartbeat => {
            if let Some(lease) = next.live_mut() {
                lease.extend(at);
            }
            vec![(next, Says::Done)]
        }
        Contact::Checkpoint(value) => {
            next.checkpoint = Some(value.to_owned());
            vec![(next, Says::Done)]
        }
    }
}

/// A late report takes the place of the loss.
fn late(job: &Job, said: &Said, facts: &Facts, at: When) -> Vec<(Job, Says)> {
    let mut next = job.clone();
    if let Some(lease) = next.leases.last_mut() {
        if let Some(before) = lease.before.take() {
            next.retry_count = before.retry_count;
            next.lease_losses = before.lease_losses;
            next.verify = before.verify;
        }
        lease.end = Some(End::of(said));
        lease.said = Some(said.clone());
    }
    apply(&next, said, facts, at).into_iter().map(|next| (next, Says::Job)).collect()
}

/// What a report does to the job, whose attempt has ended.
fn apply(job: &Job, said: &Said, facts: &Facts, at: When) -> Vec<Job> {
    match said {
        Said::Completed { result } => {
            let mut next = job.moved(Status::Completed);
            next.verify = false;
            next.result.clone_from(result);
            next.settle(Status::Completed, at);
            vec![next]
        }
        Said::Failed { class } => time::follow(job, Setback::Reported(*class), facts, at),
        Said::Released => time::released(job, at),
    }
}

fn place(job: &Job, by: &By, contact: Contact<'_>) -> Place {
    if let Some(token) = &by.lease {
        let index = job.leases.iter().position(|lease| lease.token.as_ref() == Some(token));
        return index.map_or(Place::Stale, |index| place_of(job, index));
    }
    let refused = |code| Place::Refused(if job.status == Status::Cancelled { "cancelled" } else { code });
    if !matches!(contact, Contact::Report(_)) {
        return Place::Refused("lease-required");
    }
    let Some((newest, earlier)) = job.leases.split_last() else { return refused("not-running") };
    let reported = |end: Option<End>| end.is_some_and(End::is_reported);
    // A lease that a person ended was not ended by its own report either.
    if !earlier.iter().all(|lease| reported(lease.end)) {
        return refused("lease-required");
    }
    if by.worker.is_some() && newest.worker.is_some() && by.worker != newest.worker {
        return refused("lease-required");
    }
    place_of(job, earlier.len())
}

/// The place of who has (or had) a lease.
fn place_of(job: &Job, index: usize) -> Place {
    let lease = &job.leases[index];
    let newest = index + 1 == job.leases.len();
    match lease.end {
        None => Place::Holder,
        Some(end) if end.is_reported() => Place::Reported(index),
        Some(end @ (End::LeaseExpired | End::TimedOut)) if newest && !job.acted && lease.before.is_some() => {
            match job.status {
                Status::Pending => Place::Late(end),
                Status::Failed if job.failed_by_time => Place::Late(end),
                _ => Place::Stale,
            }
        }
        Some(_) => Place::Stale,
    }
}

fn stale(job: &Job, contact: Contact<'_>) -> &'static str {
    match (job.status, contact) {
        (Status::Cancelled, _) => "cancelled",
        (Status::Completed, Contact::Heartbeat | Contact::Checkpoint(_)) => "not-running",
        _ => "lease-lost",
    }
}
