//! What the ledger must say, counted event by event.

use std::collections::BTreeMap;

use tagwerk_core::{AttemptEnd, Outcome, Status};
use tagwerk_engine::row::{Counter, Lane, Tally};

use super::job::Job;

/// Counters by queue and type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    lanes: BTreeMap<(String, String), Tally>,
}

impl Ledger {
    fn add(&mut self, job: &Job, counter: Counter, n: i64) {
        self.lanes.entry((job.queue.clone(), job.kind.clone())).or_default().add(counter, n);
    }

    pub(crate) fn accepted(&mut self, job: &Job) {
        self.add(job, Counter::Enqueued, 1);
        self.add(job, Counter::of_status(job.status), 1);
    }

    /// A job has changed. Requeues are counted where the change raised the number of retries.
    pub(crate) fn changed(&mut self, before: &Job, after: &Job) {
        if before.status != after.status {
            self.add(after, Counter::of_status(before.status), -1);
            self.add(after, Counter::of_status(after.status), 1);
            if after.status == Status::Failed {
                self.add(after, Counter::Reviews, 1);
            }
        }
        if after.retry_count > before.retry_count {
            self.add(after, Counter::Retries, 1);
        }
        if after.leases > before.leases {
            self.add(after, Counter::Claims, 1);
        }
        if after.history.len() > before.history.len() {
            match after.history.last().map(|past| past.end) {
                Some(AttemptEnd::LeaseExpired) => self.add(after, Counter::LeaseLosses, 1),
                Some(AttemptEnd::TimedOut) => self.add(after, Counter::TimeOuts, 1),
                _ => {}
            }
        }
    }

    /// A report counted.
    pub(crate) fn reported(&mut self, job: Option<&Job>, outcome: &Outcome) {
        let counter = match outcome {
            Outcome::Completed => Counter::Completions,
            Outcome::Failed { .. } => Counter::Failures,
            Outcome::Released { .. } => Counter::Releases,
        };
        if let Some(job) = job {
            self.add(job, counter, 1);
        }
    }

    /// Somebody retried it from review.
    pub(crate) fn retried(&mut self, job: Option<&Job>) {
        if let Some(job) = job {
            self.add(job, Counter::ReviewRetries, 1);
        }
    }

    pub(crate) fn pruned(&mut self, job: &Job) {
        self.add(job, Counter::of_status(job.status), -1);
        self.add(job, Counter::Pruned, 1);
    }

    /// The first counter of the store's ledger that is not what it must be. How many wait for their turn is counted from the
    /// jobs, all of them.
    pub(crate) fn compare<'j>(
        &self,
        jobs: impl Iterator<Item = &'j Job>,
        store: &[(Lane, Tally)],
    ) -> Result<(), String> {
        let mut counted = self.clone();
        for job in jobs.filter(|job| job.is_blocked()) {
            counted.add(job, Counter::Blocked, 1);
        }
        let mut left = counted.lanes;
        for (lane, tally) in store {
            let name = (lane.queue.to_string(), lane.kind.to_string());
            let want = left.remove(&name).unwrap_or_default();
            for counter in Counter::ALL {
                let (want, got) = (want.get(counter), tally.get(counter));
                if want != got {
                    return Err(format!(
                        "{} of {}/{} must be {want}, it is {got}",
                        counter.name(),
                        name.0,
                        name.1
                    ));
                }
            }
        }
        match left.into_iter().find(|(_, tally)| !tally.is_zero()) {
            Some(((queue, kind), _)) => Err(format!("the ledger has no row for {queue}/{kind}")),
            None => Ok(()),
        }
    }
}
