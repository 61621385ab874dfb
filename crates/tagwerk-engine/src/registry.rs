//! Who has been seen: workers and the queues that were claimed from. In the memory of this node; the last claim of each
//! queue is also written to the store about once a second.

use std::collections::HashMap;

use tagwerk_core::{Timestamp, limits};

use crate::command::Claim;

/// Stands for a claim that named no queue where claim times are stored. No queue can have this name.
pub const ALL_QUEUES: &str = "*";

/// What is known of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerSeen {
    /// When it was first seen by this node.
    pub first_seen_at: Timestamp,
    /// When it last asked for a job.
    pub last_claim_at: Option<Timestamp>,
    /// When it last sent a report, heartbeat or checkpoint.
    pub last_report_at: Option<Timestamp>,
    /// Its software, as its client names itself.
    pub agent: Option<String>,
    /// The queues of its last claim; `None` = all.
    pub queues: Option<Vec<String>>,
    /// The types of its last claim; `None` = all.
    pub types: Option<Vec<String>>,
}

impl WorkerSeen {
    fn new(now: Timestamp) -> Self {
        Self {
            first_seen_at: now,
            last_claim_at: None,
            last_report_at: None,
            agent: None,
            queues: None,
            types: None,
        }
    }

    /// When it was last seen at all.
    #[must_use]
    pub fn last_seen_at(&self) -> Timestamp {
        self.last_claim_at.max(self.last_report_at).unwrap_or(self.first_seen_at)
    }
}

/// Workers and queues seen by this node.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    workers: HashMap<String, WorkerSeen>,
    /// Last claim by queue since the start of this node.
    queue_claims: HashMap<String, Timestamp>,
    /// Last claim that named no queue, which counts for all.
    any_claim: Option<Timestamp>,
    /// Queues whose last claim is not yet in the store.
    unsaved: HashMap<String, Timestamp>,
}

impl Registry {
    /// The workers seen, by name.
    #[must_use]
    pub fn workers(&self) -> Vec<(String, WorkerSeen)> {
        let mut all: Vec<_> = self.workers.iter().map(|(name, seen)| (name.clone(), seen.clone())).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// When somebody last asked for jobs of this queue, by name or with all queues, since the start of this node.
    #[must_use]
    pub fn last_claim(&self, queue: &str) -> Option<Timestamp> {
        self.queue_claims.get(queue).copied().max(self.any_claim)
    }

    pub(crate) fn claimed(&mut self, claim: &Claim, now: Timestamp) {
        let seen = self.worker(&claim.worker, now);
        seen.last_claim_at = Some(now);
        seen.agent.clone_from(&claim.agent);
        seen.queues.clone_from(&claim.filter.queues);
        seen.types.clone_from(&claim.filter.types);
        match &claim.filter.queues {
            None => {
                self.any_claim = Some(now);
                self.unsaved.insert(ALL_QUEUES.to_owned(), now);
            }
            Some(queues) => {
                for queue in queues {
                    if self.queue_claims.len() >= limits::WORKERS_REMEMBERED {
                        forget_oldest(&mut self.queue_claims);
                    }
                    self.queue_claims.insert(queue.clone(), now);
                    self.unsaved.insert(queue.clone(), now);
                }
            }
        }
    }

    pub(crate) fn reported(&mut self, worker: &str, now: Timestamp) {
        self.worker(worker, now).last_report_at = Some(now);
    }

    fn worker(&mut self, name: &str, now: Timestamp) -> &mut WorkerSeen {
        if self.workers.len() >= limits::WORKERS_REMEMBERED && !self.workers.contains_key(name) {
            self.forget(now);
        }
        self.workers.entry(name.to_owned()).or_insert_with(|| WorkerSeen::new(now))
    }

    /// Forgets workers that were not seen for long; if that makes no room, the quarter that was unseen longest.
    fn forget(&mut self, now: Timestamp) {
        self.workers.retain(|_, seen| now.since_ms(seen.last_seen_at()) < limits::WORKER_FORGOTTEN_AFTER_MS);
        if self.workers.len() >= limits::WORKERS_REMEMBERED {
            let mut times: Vec<Timestamp> = self.workers.values().map(WorkerSeen::last_seen_at).collect();
            times.sort_unstable();
            let cutoff = times.get(times.len() / 4).copied().unwrap_or(now);
            self.workers.retain(|_, seen| seen.last_seen_at() > cutoff);
        }
    }

    /// Claim times that the store does not have yet.
    pub(crate) fn unsaved(&self) -> Vec<(String, Timestamp)> {
        self.unsaved.iter().map(|(queue, at)| (queue.clone(), *at)).collect()
    }

    pub(crate) fn saved(&mut self) {
        self.unsaved.clear();
    }
}

/// Makes room: the quarter that was seen longest ago goes, so that made-up names do not keep real ones out.
fn forget_oldest(seen: &mut HashMap<String, Timestamp>) {
    let mut times: Vec<Timestamp> = seen.values().copied().collect();
    times.sort_unstable();
    if let Some(cutoff) = times.get(times.len() / 4).copied() {
        seen.retain(|_, at| *at > cutoff);
    }
}
