//! Who takes part. Each actor wakes up, sends calls, and hears answers or nothing.
//!
//! An actor knows only what it was answered and what stands on the [`Board`], where everybody pins what liars and
//! operators could get hold of: ids, versions, tokens of others.

mod bulk;
mod caps;
mod dying;
mod effects;
mod follow;
mod hands;
mod honest;
mod keeper;
mod lying;
mod operator;
mod order;
mod poller;
mod producer;
mod slow;
mod tokenless;
mod turns;

use std::collections::BTreeMap;

use tagwerk_core::{Job, JobId, Status};
use tagwerk_engine::command::{Enqueued, OperateAnswer, Refusal};
use tagwerk_engine::store::Listed;

use crate::call::{Answer, Call, Reply};
use crate::chance::Chance;
use crate::plan::{Plan, Role};

/// What everybody could have seen.
#[derive(Debug, Default)]
pub(crate) struct Board {
    pub(crate) jobs: Vec<JobId>,
    pub(crate) versions: BTreeMap<JobId, i64>,
    /// Every lease that was ever answered: job, token, worker.
    pub(crate) leases: Vec<(JobId, String, String)>,
    /// Jobs that were seen in review in the order of an ordering key.
    pub(crate) failed: Vec<JobId>,
    /// What the world outside has been made to do, by key, and what came of it.
    pub(crate) done: BTreeMap<String, String>,
    /// Jobs that were seen in review with effects in doubt: version, and keys by name.
    pub(crate) doubts: BTreeMap<JobId, (i64, BTreeMap<String, String>)>,
}

/// What an actor works with while it is awake.
pub(crate) struct Desk<'w> {
    /// The wall clock.
    pub(crate) now: i64,
    /// Time since the start.
    pub(crate) mono: i64,
    pub(crate) chance: &'w mut Chance,
    pub(crate) board: &'w Board,
    pub(crate) plan: &'w Plan,
    pub(crate) out: Vec<Letter>,
    /// What it does to the world outside.
    pub(crate) acts: Vec<Act>,
    /// In how many milliseconds it wants to wake up again.
    pub(crate) wake_in: Option<i64>,
}

/// A side effect that is done now.
#[derive(Clone, Debug)]
pub(crate) struct Act {
    pub(crate) job: JobId,
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) result: String,
}

/// A call on its way.
pub(crate) struct Letter {
    pub(crate) call: Call,
    /// After how many milliseconds the sender stops waiting for the answer.
    pub(crate) patience_ms: i64,
}

impl Desk<'_> {
    pub(crate) fn send(&mut self, call: Call) {
        let waits = match &call {
            Call::Claim(claim) => claim.wait_ms,
            _ => 0,
        };
        self.out.push(Letter { call, patience_ms: waits + 2_000 });
    }

    /// As people do: sometimes twice.
    fn send_by_hand(&mut self, call: Call) {
        if self.chance.percent(10) {
            self.send(call.clone());
        }
        self.send(call);
    }

    /// As people do: if there was no answer, perhaps once more.
    fn repeat_by_hand(&mut self, call: &Call, reply: Option<&Reply>) {
        if reply.is_none() && self.chance.percent(40) {
            self.send(call.clone());
        }
    }

    /// Wakes up again after some time between these, or earlier if it wanted to already.
    pub(crate) fn wake_within(&mut self, low: i64, high: i64) {
        let ms = self.chance.between(low, high);
        self.wake_in = Some(self.wake_in.map_or(ms, |known| known.min(ms)));
    }
}

/// See the module.
pub(crate) trait Actor {
    /// Its time has come.
    fn wake(&mut self, desk: &mut Desk<'_>);
    /// The answer to a call, or nothing although it waited.
    fn heard(&mut self, desk: &mut Desk<'_>, call: &Call, reply: Option<&Reply>);
}

/// An actor of this role with a name of its own.
pub(crate) fn new(role: Role, name: String) -> Box<dyn Actor> {
    match role {
        Role::Producer => Box::new(producer::Producer::default()),
        Role::Honest => Box::new(honest::Honest::new(name)),
        Role::Slow => Box::new(slow::Slow::new(name)),
        Role::Dying => Box::new(dying::Dying::new(name)),
        Role::Lying => Box::new(lying::Lying::new(name)),
        Role::Tokenless => Box::new(tokenless::Tokenless::new(name)),
        Role::Bulk => Box::new(bulk::Bulk::new(name)),
        Role::Poller => Box::new(poller::Poller::new(name)),
        Role::Operator => Box::new(operator::Operator),
        Role::Keeper => Box::new(keeper::Keeper),
    }
}

impl Board {
    /// Pins what an answer shows.
    pub(crate) fn pin(&mut self, reply: &Reply) {
        let Ok(answer) = reply else { return };
        match answer {
            Answer::Enqueue(items) => {
                for item in items.iter().flatten() {
                    if let Enqueued::Created(full) | Enqueued::Existing { job: full, .. } = item {
                        self.pin_job(full.row.job.id, full.row.job.version);
                    }
                }
            }
            Answer::Claim(claimed) => self.pin_claim(claimed),
            Answer::Work(work) => {
                for result in &work.results {
                    if let Err(Refusal::Rejected { job, .. }) = result {
                        self.pin_doubts(&job.row.job);
                    }
                }
                for result in work.results.iter().flatten() {
                    self.pin_doubts(&result.job.row.job);
                    self.pin_job(result.job.row.job.id, result.job.row.job.version);
                    self.pin_failed(&result.job.row);
                }
                if let Some(claimed) = &work.claimed {
                    self.pin_claim(claimed);
                }
            }
            Answer::Operate(Ok(OperateAnswer { job: Listed::Job(full), .. })) => {
                self.pin_job(full.row.job.id, full.row.job.version);
                self.pin_failed(&full.row);
                self.pin_doubts(&full.row.job);
            }
            Answer::Operate(Err(Refusal::Rejected { job, .. })) => self.pin_doubts(&job.row.job),
            Answer::Operate(_) | Answer::PutType(_) | Answer::Limit(_) | Answer::Queue(_) => {}
        }
    }

    fn pin_doubts(&mut self, job: &Job) {
        let open = job.open_effects().map(|effect| (effect.name.to_string(), effect.key.to_string()));
        let open: BTreeMap<String, String> = open.collect();
        if job.status == Status::Failed && !open.is_empty() {
            self.doubts.insert(job.id, (job.version, open));
        } else {
            self.doubts.remove(&job.id);
        }
    }

    fn pin_job(&mut self, id: JobId, version: i64) {
        if self.versions.insert(id, version).is_none() {
            self.jobs.push(id);
        }
    }

    fn pin_claim(&mut self, answer: &tagwerk_engine::command::ClaimAnswer) {
        for claimed in &answer.jobs {
            let job = &claimed.job.row.job;
            self.pin_job(job.id, job.version);
            let worker = job.lease.as_ref().map(|lease| lease.worker.clone()).unwrap_or_default();
            self.leases.push((job.id, claimed.token.clone(), worker));
        }
    }
}
