//! Jobs and keys together, and every call on them.

use std::collections::BTreeMap;

use super::job::{Claimer, Facts, Job, Life};
use super::report::{self, Contact};
use super::time::{self, Hidden};
use super::{key, operate};
use crate::call::{Action, Asked, Key, Status};
use crate::rules::{Rules, When};

/// The state of a part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) jobs: BTreeMap<i64, Life>,
    /// Who has a key, under which terms.
    pub(crate) keys: BTreeMap<String, (i64, Key)>,
    /// Claims that nobody knows of and that were used to explain something.
    pub(crate) unknown_claims: u32,
}

/// What the caller is told by the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// It was done; the job is shown.
    Job,
    /// It had been done before; the job is shown.
    Again,
    /// The job is handed out.
    Lease,
    /// It is handed out still.
    LeaseAgain,
    /// It was done, there is no job to show.
    Done,
    /// What is left of the key's job.
    Tombstone,
    /// The key holds and the caller wanted a refusal in this case.
    Held,
    /// 404
    Missing,
    /// The history.
    Attempts,
    /// 409, whether a report may still count.
    Refused(&'static str, Option<bool>),
}

/// One way in which a call can go.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) world: World,
    /// The job that it is about.
    pub(crate) job: i64,
    pub(crate) says: Says,
}

/// What a call is made with, besides what it asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstance<'a> {
    pub(crate) facts: &'a BTreeMap<i64, Facts>,
    pub(crate) rules: &'a Rules,
    pub(crate) at: When,
    /// Ids that an enqueue may give.
    pub(crate) births: &'a [i64],
    /// The job that a claim got, and its token.
    pub(crate) claims: Option<i64>,
    pub(crate) token: Option<&'a str>,
}

impl World {
    /// Nothing is there yet.
    pub(crate) fn empty(ids: impl Iterator<Item = i64>) -> Self {
        let jobs = ids.map(|id| (id, Life::Unborn)).collect();
        Self { jobs, keys: BTreeMap::new(), unknown_claims: 0 }
    }

    pub(crate) fn life(&self, id: i64) -> &Life {
        self.jobs.get(&id).unwrap_or(&Life::Unborn)
    }

    /// The job, if it is there.
    pub(crate) fn job(&self, id: i64) -> Option<&Job> {
        match self.life(id) {
            Life::Here(job) => Some(job),
            _ => None,
        }
    }

    pub(crate) fn with(&self, id: i64, life: Life) -> Self {
        let mut next = self.clone();
        next.jobs.insert(id, life);
        next
    }

    fn with_job(&self, id: i64, job: Job) -> Self {
        self.with(id, Life::Here(Box::new(job)))
    }

    /// Every way in which a call can go.
    pub(crate) fn outcomes(&self, asked: &Asked, by: &Circumstance<'_>) -> Vec<Outcome> {
        match asked {
            Asked::Enqueue { key, .. } => self.enqueue(key.as_ref(), by),
            Asked::Claim { worker, request, lease_ms } => {
                let claimer = Claimer {
                    worker: Some(worker),
                    request: request.as_deref(),
                    length_ms: *lease_ms,
                    token: by.token,
                };
                by.claims.map_or_else(Vec::new, |id| self.claim(id, &claimer, by))
            }
            _ => asked.job().map_or_else(Vec::new, |id| self.on_job(id, asked, by)),
        }
    }

    /// Whether a key holds. Of a job that no answer ever names nobody knows how it went on.
    fn holds(&self, owner: i64, held: &Key, at: When) -> key::Holds {
        if owner < 0 { key::EITHER } else { key::holds(held, self.life(owner), at) }
    }

    fn outcome(&self, job: i64, says: Says) -> Outcome {
        Outcome { world: self.clone(), job, says }
    }

    fn enqueue(&self, key: Option<&Key>, by: &Circumstance<'_>) -> Vec<Outcome> {
        let mut all = Vec::new();
        let mut free = true;
        if let Some((owner, held)) = key.and_then(|key| self.keys.get(&key.name)) {
            let holds = self.holds(*owner, held, by.at);
            free = holds.maybe_not;
            if holds.maybe {
                let gone = matches!(self.life(*owner), Life::Gone { .. });
                all.push(self.outcome(*owner, if gone { Says::Tombstone } else { Says::Again }));
                all.push(self.outcome(*owner, Says::Held));
            }
        }
        let births = by.births.iter().filter(|id| free && *self.life(**id) == Life::Unborn);
        all.extend(births.filter_map(|id| {
            let facts = by.facts.get(id)?;
            let mut world = self.with_job(*id, Job::new(facts, key, by.at));
            if let Some(key) = key {
                world.keys.insert(key.name.clone(), (*id, key.clone()));
            }
            Some(Outcome { world, job: *id, says: Says::Job })
        }));
        all
    }

    fn claim(&self, id: i64, claimer: &Claimer<'_>, by: &Circumstance<'_>) -> Vec<Outcome> {
        let Some((job, facts)) = self.job(id).zip(by.facts.get(&id)) else { return Vec::new() };
        let mut all = Vec::new();
        if let Some(next) = job.claimed(claimer, facts, by.at) {
            all.push(Outcome { world: self.with_job(id, next), job: id, says: Says::Lease });
        }
        let same = |lease: &&super::job::Lease| {
            lease.worker.as_deref() == claimer.worker
                && lease.request.is_some()
                && lease.request.as_deref() == claimer.request
        };
        if job.live().as_ref().is_some_and(same) {
            let mut next = job.clone();
            if let (Some(lease), Some(token)) = (next.live_mut(), claimer.token)
                && lease.token.is_none()
            {
                lease.token = Some(token.to_owned());
            }
            all.push(Outcome { world: self.with_job(id, next), job: id, says: Says::LeaseAgain });
        }
        all
    }

    fn on_job(&self, id: i64, asked: &Asked, by: &Circumstance<'_>) -> Vec<Outcome> {
        let Some((job, facts)) = self.job(id).zip(by.facts.get(&id)) else {
            return vec![self.outcome(id, Says::Missing)];
        };
        let of_contact = |who, contact| {
            let all = report::contact(job, (who, contact), (facts, by.rules), by.at);
            let all = all.into_iter();
            all.map(|(next, says)| Outcome { world: self.with_job(id, next), job: id, says }).collect()
        };
        match asked {
            Asked::Report { by, said, .. } => of_contact(by, Contact::Report(said)),
            Asked::Heartbeat { by, .. } => of_contact(by, Contact::Heartbeat),
            Asked::Checkpoint { by, value, .. } => of_contact(by, Contact::Checkpoint(value)),
            Asked::Operate { action, seen_version, .. } => {
                self.operate((id, job), (*action, *seen_version), (facts, by.at))
            }
            Asked::Attempts { .. } => vec![self.outcome(id, Says::Attempts)],
            _ => vec![self.outcome(id, Says::Job)],
        }
    }

    fn operate(
        &self,
        (id, job): (i64, &Job),
        (action, seen): (Action, Option<i64>),
        (facts, at): (&Facts, When),
    ) -> Vec<Outcome> {
        let (next, says) = operate::operate(job, (action, seen), facts, at);
        let done = matches!(says, Says::Job | Says::Again);
        match action {
            Action::Delete if done => {
                let world = self.with(id, time::gone(&next, next.finished.unwrap_or(at)));
                vec![Outcome { world, job: id, says: Says::Done }]
            }
            Action::Retry { .. } if says == Says::Job => self.take_back((id, job), next, at),
            _ => vec![Outcome { world: self.with_job(id, next), job: id, says }],
        }
    }

    /// A retry from review takes the job's key back, or is refused if another job has it.
    fn take_back(&self, (id, job): (i64, &Job), next: Job, at: When) -> Vec<Outcome> {
        let other =
            job.key.as_ref().and_then(|key| self.keys.get(&key.name)).filter(|(owner, _)| *owner != id);
        let mut all = Vec::new();
        let mut free = true;
        if let Some((owner, held)) = other {
            let holds = self.holds(*owner, held, at);
            free = holds.maybe_not;
            if holds.maybe {
                all.push(self.outcome(id, Says::Refused("idempotency-key-held", None)));
            }
        }
        if free {
            let key = next.key.clone();
            let mut world = self.with_job(id, next);
            if let Some(key) = key {
                world.keys.insert(key.name.clone(), (id, key));
            }
            all.push(Outcome { world, job: id, says: Says::Job });
        }
        all
    }

    /// Why a call cannot go in any way.
    pub(crate) fn why_not(&self, asked: &Asked, claims: Option<i64>) -> String {
        let Some(id) = claims.or_else(|| asked.job()) else { return "it is there already".to_owned() };
        match self.life(id) {
            Life::Unborn => format!("job {id} was not accepted yet"),
            Life::Gone { .. } => format!("job {id} is gone"),
            Life::Here(job) => job.why_not_claimable(),
        }
    }

    /// Every step that no call asks for. `unknown`: from when on a claim that nobody knows of may have taken a job.
    pub(crate) fn hidden(
        &self,
        facts: &BTreeMap<i64, Facts>,
        rules: &Rules,
        (floor, unknown): (u64, Option<u64>),
    ) -> Vec<(World, i64, Hidden)> {
        let mut all = Vec::new();
        for (id, life) in &self.jobs {
            let (Life::Here(job), Some(facts)) = (life, facts.get(id)) else { continue };
            let mut steps = time::hidden(job, facts, (rules, floor));
            if let Some(since) = unknown.filter(|_| job.status == Status::Pending) {
                let at = When { lo: since.max(floor), hi: u64::MAX };
                let nobody = Claimer { worker: None, request: None, length_ms: None, token: None };
                steps.extend(job.claimed(&nobody, facts, at).map(|next| Hidden {
                    lo: at.lo,
                    next: Life::Here(Box::new(next)),
                    what: "a claim took it whose answer nobody heard",
                }));
            }
            all.extend(steps.into_iter().map(|step| {
                let mut world = self.with(*id, step.next.clone());
                world.unknown_claims += u32::from(step.what.starts_with("a claim"));
                (world, *id, step)
            }));
        }
        all
    }
}
