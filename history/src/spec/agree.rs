//! Whether an answer fits what happened, and what it tells besides.

use super::job::{Job, Life};
use super::world::{Outcome, Says, World};
use crate::call::{Asked, Attempt, Status, Told, View};
use crate::rules::Rules;

/// How closely answers are held against the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// Every field.
    All,
    /// Only what people reason with: state, holder, result, checkpoint. Versions and counters would convict a single call
    /// of being one too many, without saying of what.
    Gist,
}

impl Outcome {
    /// The world after the call, with what the answer told; or why the answer does not fit.
    pub(crate) fn agree(
        self,
        (asked, told): (&Asked, &Told),
        rules: &Rules,
        strictness: Strictness,
    ) -> Result<World, String> {
        let Self { mut world, job: id, says } = self;
        let operated = matches!(asked, Asked::Operate { .. });
        match (told, &says) {
            (Told::Job(view), Says::Job) | (Told::Again(view), Says::Again) => {
                world.absorb(id, view, (rules, strictness))?;
            }
            // A deletion shows the job as it was erased.
            (Told::Job(view) | Told::Again(view), Says::Done) if operated => {
                let kept = matches!(world.life(id), Life::Gone { status, .. } if *status == view.status);
                kept.then_some(()).ok_or_else(|| format!("job {id} was not erased as {:?}", view.status))?;
            }
            // A checkpoint's answer shows the job, a heartbeat's does not.
            (Told::Job(view), Says::Done) => world.absorb(id, view, (rules, strictness))?,
            (Told::Job(view) | Told::Again(view), Says::Job | Says::Again) if operated => {
                world.absorb(id, view, (rules, strictness))?;
            }
            (Told::Lease { view, lease, again }, Says::Lease | Says::LeaseAgain)
                if *again == (says == Says::LeaseAgain) =>
            {
                world.absorb(id, view, (rules, strictness))?;
                world.heard(id, lease)?;
            }
            (Told::Done { until_ms }, Says::Done) => {
                if let (Some(until_ms), Some(Life::Here(job))) = (until_ms, world.jobs.get_mut(&id)) {
                    absorb_until(job, *until_ms, rules)?;
                }
            }
            (Told::Done { .. }, Says::Job | Says::Again) if operated => {}
            (Told::Tombstone { job, status }, Says::Tombstone) if *job == id => {
                let kept = matches!(world.life(id), Life::Gone { status: kept, .. } if kept == status);
                kept.then_some(()).ok_or_else(|| format!("job {id} did not end as {status:?}"))?;
            }
            (Told::Attempts(list), Says::Attempts) => {
                if let Some(Life::Here(job)) = world.jobs.get_mut(&id) {
                    absorb_attempts(job, list)?;
                }
            }
            (Told::Refused { status: 404, .. }, Says::Missing) => {}
            (Told::Refused { code, .. }, Says::Held)
                if code == "duplicate" || code == "idempotency-key-reused" => {}
            (Told::Refused { code, may_report, .. }, Says::Refused(by_rules, may)) if code == by_rules => {
                if may_report.is_some() && may.is_some() && may_report != may {
                    return Err(format!("a later report may count: {}", may.unwrap_or_default()));
                }
            }
            _ if says == Says::Job && !asked.changes() => return Err(format!("job {id} is there")),
            _ => return Err(in_words(&says, id)),
        }
        Ok(world)
    }
}

/// What the rules say instead of the answer.
fn in_words(says: &Says, id: i64) -> String {
    match says {
        Says::Job => format!("the call counts, for job {id}"),
        Says::Again => format!("nothing new is done, job {id} is the answer"),
        Says::Lease => "the job is handed out anew".to_owned(),
        Says::LeaseAgain => "the same claim holds the job already".to_owned(),
        Says::Done => "it is done".to_owned(),
        Says::Tombstone => format!("the key belongs to job {id}, which is gone"),
        Says::Held => format!("the key belongs to job {id}"),
        Says::Missing => format!("job {id} is not there"),
        Says::Attempts => format!("job {id} is there and has a history"),
        Says::Refused(code, _) => format!("the answer is {code}"),
    }
}

impl World {
    /// Takes in what an answer shows of a job.
    fn absorb(&mut self, id: i64, view: &View, how: (&Rules, Strictness)) -> Result<(), String> {
        if view.id != id {
            return Err(format!("the job is {id}"));
        }
        match self.jobs.get_mut(&id) {
            Some(Life::Here(job)) => show(job, view, how),
            _ => Err(format!("job {id} is not there")),
        }
    }

    /// The client of a claim heard of its lease.
    fn heard(&mut self, id: i64, token: &str) -> Result<(), String> {
        let Some(Life::Here(job)) = self.jobs.get_mut(&id) else { return Ok(()) };
        let Some(lease) = job.live_mut() else { return Ok(()) };
        lease.heard = true;
        match &lease.token {
            Some(known) if known != token => Err("it has another token".to_owned()),
            _ => {
                lease.token = Some(token.to_owned());
                Ok(())
            }
        }
    }
}

/// Compares, and keeps what only the server knows.
fn show(job: &mut Job, view: &View, (rules, strictness): (&Rules, Strictness)) -> Result<(), String> {
    same("is", &job.status, &view.status)?;
    if strictness == Strictness::All {
        same("has the version", &job.version, &view.version)?;
        same("has the attempt", &job.attempt, &view.attempt)?;
        same("has used retries", &job.retry_count, &view.retry_count)?;
        same("may use retries", &job.max_retries, &view.max_retries)?;
        same("has lost leases", &job.lease_losses, &view.lease_losses)?;
        same("was given back", &job.release_count, &view.release_count)?;
        same("says verify", &job.verify, &view.verify)?;
        same("is to be cancelled", &job.cancel_requested, &view.cancel_requested)?;
        same("is in review as", &job.reason, &view.reason.as_deref())?;
        match job.due_ms {
            Some(due_ms) => same("is due at", &due_ms, &view.due_ms)?,
            None => job.due_ms = Some(view.due_ms),
        }
    }
    if let Some(whole) = &view.whole {
        same("has the result", &job.result, &whole.result)?;
        same("has the checkpoint", &job.checkpoint, &whole.checkpoint)?;
    }
    let key = job.key.as_ref().map(|key| key.name.as_str());
    same("has the key", &key, &view.key.as_deref())?;
    if view.status == Status::Running { show_lease(job, view, rules) } else { Ok(()) }
}

fn show_lease(job: &mut Job, view: &View, rules: &Rules) -> Result<(), String> {
    let due_ms = view.due_ms;
    if let Some(claimed_ms) = view.claimed_ms.filter(|claimed_ms| *claimed_ms < due_ms) {
        return Err(format!("it is not due before {due_ms}, and this claim was made at {claimed_ms}"));
    }
    if let Some(lease) = job.live_mut() {
        match &lease.worker {
            Some(worker) => same("is held by", &Some(worker.as_str()), &view.worker.as_deref())?,
            None => lease.worker.clone_from(&view.worker),
        }
        match lease.claimed_ms {
            Some(claimed_ms) => same("is held since", &Some(claimed_ms), &view.claimed_ms)?,
            None => lease.claimed_ms = view.claimed_ms,
        }
    }
    view.until_ms.map_or(Ok(()), |until_ms| absorb_until(job, until_ms, rules))
}

/// A lease is never shortened.
fn absorb_until(job: &mut Job, until_ms: i64, rules: &Rules) -> Result<(), String> {
    let Some(lease) = job.live_mut() else { return Ok(()) };
    if let Some(before) = lease.until_ms.filter(|before| until_ms < before - rules.clock_ms) {
        return Err(format!("its lease holds until {before}, not only until {until_ms}"));
    }
    lease.told_until(until_ms);
    Ok(())
}

fn absorb_attempts(job: &mut Job, list: &[Attempt]) -> Result<(), String> {
    if list.len() != job.leases.len() {
        return Err(format!("it was claimed {} times, its history tells {}", job.leases.len(), list.len()));
    }
    for (lease, attempt) in job.leases.iter_mut().zip(list) {
        match &lease.worker {
            Some(worker) => same("was claimed by", worker, &attempt.worker)?,
            None => lease.worker = Some(attempt.worker.clone()),
        }
        match lease.claimed_ms {
            Some(claimed_ms) => same("was claimed at", &claimed_ms, &attempt.claimed_ms)?,
            None => lease.claimed_ms = Some(attempt.claimed_ms),
        }
        let outcome = lease.end.map(super::job::End::name);
        same("has an attempt that ended as", &outcome, &attempt.outcome.as_deref())?;
        let class = lease.end.and_then(super::job::End::class);
        if class.is_some() {
            same("has an attempt of class", &class, &attempt.class)?;
        }
    }
    Ok(())
}

/// Both the same, or how they differ.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, by_rules: &T, told: &T) -> Result<(), String> {
    if by_rules == told { Ok(()) } else { Err(format!("it {what} {by_rules:?}, not {told:?}")) }
}
