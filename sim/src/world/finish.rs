//! The end of a run: faults stop, honest workers go on, and everything must come to an end or say why it waits.

use std::sync::Arc;

use tagwerk_core::{Outcome, Status};
use tagwerk_engine::command::{
    Claim, Claimed, ControlQueue, EffectSaid, Holder, QueueControl, Refusal, Said, Work, WorkerAnswer,
    WorkerCall,
};
use tagwerk_engine::store::Filter;

use super::{Event, Lived, Stop, World};
use crate::call::{Answer, Call, Reply};
use crate::model::Contradiction;

/// Time for leases of dead workers to run out and for back-offs after that.
const GRACE_MS: i64 = 200_000;
/// Retention looks at everything at least this often, even after a clock that was ahead.
const SWEEP_MS: i64 = 700_000;
/// Jobs that the last worker takes at once.
const AT_ONCE: usize = 100;

impl World {
    pub(super) fn finish(&mut self) -> Lived<()> {
        self.open = false;
        self.trace.line(self.mono(), Vec::new(), "faults stop; one honest worker goes on");
        for index in 0..self.servers.len() {
            if let Some(node) = &self.servers[index].node {
                node.journal.plan([]);
            }
            if self.servers[index].down_until > self.mono() {
                self.wait_until(self.servers[index].down_until)?;
            }
        }
        self.resume_all()?;
        let mut last = self.long_enough();
        while self.mono() < last && !self.judges.model.is_at_rest() {
            self.work_off()?;
            if self.decide()? {
                last = self.long_enough();
            }
            self.wait_until(self.mono() + 1_000)?;
        }
        if let Some((job, why)) = self.judges.model.stuck(self.wall()) {
            let found =
                Contradiction::of(Some(job), format!("everybody was honest for long enough, but {why}"));
            return Err(Stop { rule: "liveness".to_owned(), found });
        }
        if self.seed.is_multiple_of(8) {
            self.wait_until(self.mono() + SWEEP_MS)?;
            if let Some(job) = self.judges.model.overstayed(self.wall(), SWEEP_MS) {
                let found = Contradiction::of(Some(job), "retention should have deleted it long ago");
                return Err(Stop { rule: "liveness".to_owned(), found });
            }
        }
        for index in 0..self.servers.len() {
            self.look_at_all(index)?;
        }
        self.tally.add("time", "simulated seconds", u64::try_from(self.mono() / 1_000).unwrap_or(0));
        Ok(())
    }

    /// Until when everything must have come to an end.
    fn long_enough(&self) -> i64 {
        let wall = self.wall();
        let ahead = self.judges.model.last_due().map_or(0, |due| (due - wall).max(0));
        self.mono() + ahead + GRACE_MS + self.judges.model.held_ms()
    }

    /// What was paused goes on, but for worlds that end so.
    fn resume_all(&mut self) -> Lived<()> {
        let ends_paused = self.plan.caps.as_ref().is_none_or(|caps| caps.ends_paused);
        if self.plan.nodes > 1 || ends_paused {
            return Ok(());
        }
        for (queue, reason) in self.judges.model.pauses() {
            let control = QueueControl::Resume { reason: Some(reason) };
            if !matches!(self.ask(Call::Queue(ControlQueue { queue, control }))?, Ok(Answer::Queue(_))) {
                return Err(Stop::world("a queue could not be resumed though nothing was broken any more"));
            }
        }
        Ok(())
    }

    fn wait_until(&mut self, mono: i64) -> Lived<()> {
        while self.mono() < mono {
            self.next()?;
        }
        Ok(())
    }

    /// Claims what there is and completes it.
    fn work_off(&mut self) -> Lived<()> {
        let claim = Claim {
            worker: "last".to_owned(),
            filter: Filter::default(),
            max_jobs: AT_ONCE,
            lease_ms: Some(60_000),
            handles_verify: false,
            wait_ms: 0,
            request_id: None,
            agent: None,
        };
        loop {
            let Ok(Answer::Claim(answer)) = self.ask(Call::Claim(claim.clone()))? else {
                return Err(Stop::world("a claim failed though nothing was broken any more"));
            };
            if answer.jobs.is_empty() {
                return Ok(());
            }
            let calls: Vec<WorkerCall> = answer.jobs.iter().flat_map(|claimed| self.done(claimed)).collect();
            let reply = self.ask(Call::Work(Work { calls, claim: None }))?;
            if !matches!(reply, Ok(Answer::Work(work)) if work.results.iter().all(is_fair)) {
                return Err(Stop::world("an honest report was refused though nothing was broken any more"));
            }
        }
    }

    /// What the last worker says of a job: what is in doubt it has looked up, or done.
    fn done(&self, claimed: &Claimed) -> Vec<WorkerCall> {
        let job = &claimed.job.row.job;
        let says = |said| WorkerCall {
            id: job.id,
            holder: Holder { token: Some(claimed.token.clone()), worker: None },
            said,
        };
        let finished = job.open_effects().map(|effect| {
            let result = self.board.done.get(&*effect.key).map(|known| known.as_str().into());
            says(Said::Effect(Arc::clone(&effect.name), EffectSaid::Finish { result }))
        });
        let completed = says(Said::Report { outcome: Outcome::Completed, result: None });
        finished.chain([completed]).collect()
    }

    /// Sends a call without any fault on the way, and waits for its answer.
    pub(super) fn ask(&mut self, call: Call) -> Lived<Reply> {
        let call = Arc::new(call);
        let request = self.request(0, &call);
        self.requests[request].waiting = false;
        self.later(0, Event::Arrive(request));
        let last = self.mono() + 60_000;
        while self.mono() < last {
            if let Some(reply) = self.requests[request].reply.clone() {
                return Ok(reply);
            }
            self.next()?;
        }
        Err(Stop::world("a call was not answered for a minute though nothing was broken any more"))
    }
}

/// Whether this may be the answer to an honest report: what people did may still have been on its way. Whether it is the
/// right refusal the model has said.
fn is_fair(result: &Result<WorkerAnswer, Refusal>) -> bool {
    match result {
        Ok(_) | Err(Refusal::NoSuchJob(_)) => true,
        Err(Refusal::Rejected { job, .. }) => job.row.job.acted || job.row.job.status == Status::Cancelled,
        Err(_) => false,
    }
}
