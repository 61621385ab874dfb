//! What every worker has: claims of its own, the jobs it holds, and what it is about to say of them.

use tagwerk_core::{ErrorClass, JobId, Outcome};
use tagwerk_engine::command::{Claim, ClaimAnswer, Holder, Said, Work, WorkerCall};
use tagwerk_engine::row::Progress;
use tagwerk_engine::store::Filter;

use super::effects::Next;
use super::{Desk, caps, follow};
use crate::call::{Answer, Call, Reply};

/// A job in the hands of a worker.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) id: JobId,
    pub(super) token: String,
    pub(super) lease_ms: i64,
    /// When the worker is done with it, on the clock that never jumps.
    pub(super) done_at: i64,
    /// When it sends the next heartbeat.
    pub(super) beat_at: i64,
    /// What it has said and not heard about.
    pub(super) said: Option<Said>,
    pub(super) tries: u32,
    /// When that was first said.
    pub(super) said_at: i64,
    /// Until when it surely has the lease, by its own count: from when it asked for it.
    pub(super) ends_at: i64,
    /// The time limit of the attempt, counted in the same way.
    pub(super) limit_at: Option<i64>,
    /// What is to be said next about an effect.
    pub(super) next: Option<Next>,
    /// Effects that it has said it did not do.
    pub(super) aborted: Vec<String>,
}

/// How a worker claims.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) max_jobs: usize,
    pub(super) wait_ms: i64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Hands {
    pub(super) worker: String,
    pub(super) held: Vec<Held>,
    claims: u32,
    /// A claim is on its way.
    pub(super) asked: bool,
    /// When it was sent first.
    asked_at: i64,
    /// It deals with what an earlier attempt may have done.
    pub(super) knows_doubt: bool,
}

impl Hands {
    pub(super) const fn new(worker: String) -> Self {
        Self { worker, held: Vec::new(), claims: 0, asked: false, asked_at: 0, knows_doubt: false }
    }

    /// A claim as this worker would send it next.
    pub(super) fn next_claim(&mut self, desk: &mut Desk<'_>, ask: Ask) -> Claim {
        self.claims += 1;
        let plan = desk.plan;
        let chance = &mut *desk.chance;
        let some = |chance: &mut crate::chance::Chance, letter: &str, n: usize| {
            chance.percent(25).then(|| vec![format!("{letter}{}", chance.below(n)), format!("{letter}0")])
        };
        let mut queues = some(chance, "q", plan.queues);
        if let Some(queues) = &mut queues {
            queues.push("default".to_owned());
        }
        Claim {
            worker: self.worker.clone(),
            filter: Filter { queues, types: some(chance, "t", plan.types), space: None },
            max_jobs: ask.max_jobs,
            lease_ms: chance.percent(50).then(|| *chance.pick(&[1_000, 3_000, 10_000])),
            handles_verify: self.knows_doubt,
            wait_ms: ask.wait_ms,
            request_id: chance.percent(60).then(|| format!("r{}", self.claims)),
            agent: None,
        }
    }

    /// Sends a claim.
    pub(super) fn claim(&mut self, desk: &mut Desk<'_>, ask: Ask) {
        let claim = self.next_claim(desk, ask);
        self.asked = true;
        self.asked_at = desk.mono;
        desk.send(Call::Claim(claim));
    }

    /// The answer to a claim. A claim without an answer is sent again if it has a request id. True when jobs came.
    pub(super) fn heard_claim(&mut self, desk: &mut Desk<'_>, call: &Call, reply: Option<&Reply>) -> bool {
        let Call::Claim(claim) = call else { return false };
        if let Some(Ok(Answer::Claim(answer))) = reply {
            self.asked = false;
            return self.take(desk, answer);
        }
        if claim.request_id.is_some() && desk.chance.percent(80) {
            desk.send(call.clone());
        } else {
            self.asked = false;
        }
        false
    }

    /// Takes jobs into its hands.
    pub(super) fn take(&mut self, desk: &mut Desk<'_>, answer: &ClaimAnswer) -> bool {
        for claimed in &answer.jobs {
            let job = &claimed.job.row.job;
            let lease_ms = job.lease.as_ref().map_or(1_000, |lease| lease.lease_ms);
            let timeout_ms =
                job.lease.as_ref().and_then(|lease| Some((lease.time_limit_at?, lease.claimed_at)));
            let limit_at = timeout_ms.map(|(limit, claimed)| self.asked_at + limit.since_ms(claimed));
            let known = self.held.iter().find(|held| held.id == job.id && held.token == claimed.token);
            // The same lease once more: what it has said of it still holds.
            let (ends_at, next, aborted) = known.map_or_else(
                || (self.asked_at + lease_ms, None, Vec::new()),
                |known| (known.ends_at, known.next.clone(), known.aborted.clone()),
            );
            self.held.retain(|held| held.id != job.id);
            self.held.push(Held {
                id: job.id,
                token: claimed.token.clone(),
                lease_ms,
                done_at: desk.mono + desk.chance.between(0, lease_ms * 3 / 2),
                beat_at: desk.mono + next_beat(desk, lease_ms),
                said: None,
                tries: 0,
                said_at: 0,
                ends_at: limit_at.map_or(ends_at, |limit| limit.min(ends_at)),
                limit_at,
                next,
                aborted,
            });
        }
        !answer.jobs.is_empty()
    }

    /// Sends what is to be said of the job at this place, with its token.
    pub(super) fn tell(&mut self, desk: &mut Desk<'_>, index: usize, said: Said) {
        let held = &mut self.held[index];
        if held.said.is_none() {
            held.said_at = desk.mono;
        }
        held.said = Some(said.clone());
        held.tries += 1;
        desk.send(one(held.id, token(&held.token), said));
    }

    /// Where the job of a call is in the hands.
    pub(super) fn place(&self, call: &Call) -> Option<usize> {
        let id = call.jobs().first().copied()?;
        self.held.iter().position(|held| held.id == id)
    }
}

/// When the next heartbeat is sent: usually after a third of the lease, sometimes at once.
pub(super) fn next_beat(desk: &mut Desk<'_>, lease_ms: i64) -> i64 {
    if desk.chance.percent(30) { desk.chance.between(0, 150) } else { lease_ms / 3 }
}

/// A call about one job.
pub(super) fn one(id: JobId, holder: Holder, said: Said) -> Call {
    Call::Work(Work { calls: vec![WorkerCall { id, holder, said }], claim: None })
}

pub(super) fn token(token: &str) -> Holder {
    Holder { token: Some(token.to_owned()), worker: None }
}

/// An end of a run: mostly done, sometimes not.
pub(super) fn outcome(desk: &mut Desk<'_>) -> Said {
    let chance = &mut *desk.chance;
    let fail = |chance: &mut crate::chance::Chance, class| Outcome::Failed {
        class,
        error: chance.percent(70).then(|| format!("error {}", chance.below(3))),
        retry_after_ms: chance.percent(20).then(|| chance.between(0, 8_000)),
    };
    let outcome = match chance.weighted(&[55, 15, 5, 8, 12]) {
        0 => Outcome::Completed,
        1 => fail(chance, ErrorClass::Transient),
        2 => fail(chance, ErrorClass::Permanent),
        3 => fail(chance, ErrorClass::Unknown),
        _ => Outcome::Released {
            delay_ms: if chance.percent(50) { 0 } else { chance.between(1, 5_000) },
            reason: chance.percent(50).then(|| "no time".to_owned()),
        },
    };
    let with_result = matches!(outcome, Outcome::Completed) && chance.percent(40);
    let result = with_result.then(|| format!("{{\"r\":{}}}", chance.below(2)));
    let said = follow::leading(desk, Said::Report { outcome, result });
    caps::throttled(desk, said)
}

/// A sign of life: a heartbeat, sometimes with progress, or a checkpoint.
pub(super) fn contact(desk: &mut Desk<'_>) -> Said {
    let chance = &mut *desk.chance;
    if chance.percent(20) {
        return Said::Checkpoint(format!("{{\"at\":{}}}", chance.below(9)));
    }
    let progress = chance.percent(30).then(|| Progress {
        done: Some(chance.between(0, 9)),
        total: Some(9),
        message: chance.percent(30).then(|| "at it".to_owned()),
    });
    Said::Heartbeat { progress }
}
