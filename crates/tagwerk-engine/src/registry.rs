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
    /// Until when it waits for a job, if it does.
    pub waits_until: Option<Timestamp>,
    /// Its software, as its client names itself.
    pub agent: Option<String>,
    /// The queues of its last claim; `None` = all.
    pub queues: Option<Vec<String>>,
    /// The types of its last claim; `None` = all.
    pub types: Option<Vec<String>>,
    /// What it asked for before, other than now, each with the last time.
    pub earlier: Vec<Asked>,
}

/// What a worker has asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When last.
    pub at: Timestamp,
    /// The queues; `None` = all.
    pub queues: Option<Vec<String>>,
    /// The types; `None` = all.
    pub types: Option<Vec<String>>,
}

/// Wishes of a worker that are remembered: who turns between more of them is seen at each often enough.
const EARLIER: usize = 8;
/// Names of queues and types in one of them: who names many asks for all of them at once, not in turn.
const EARLIER_NAMES: usize = 16;

impl WorkerSeen {
    fn new(now: Timestamp) -> Self {
        Self {
            first_seen_at: now,
            last_claim_at: None,
            last_report_at: None,
            waits_until: None,
            agent: None,
            queues: None,
            types: None,
            earlier: Vec::new(),
        }
    }

    /// What it asks for from now on, if that is not what it asked for last.
    fn asks(&mut self, claim: &Claim) {
        if (&self.queues, &self.types) == (&claim.filter.queues, &claim.filter.types) {
            return;
        }
        let queues = std::mem::replace(&mut self.queues, claim.filter.queues.clone());
        let types = std::mem::replace(&mut self.types, claim.filter.types.clone());
        let is = |wish: &Asked, queues: &Option<Vec<String>>, types: &Option<Vec<String>>| {
            (&wish.queues, &wish.types) == (queues, types)
        };
        self.earlier.retain(|wish| !is(wish, &queues, &types) && !is(wish, &self.queues, &self.types));
        let names = [&queues, &types].into_iter().flatten().map(Vec::len).sum::<usize>();
        if let Some(at) = self.last_claim_at.filter(|_| names <= EARLIER_NAMES) {
            if self.earlier.len() >= EARLIER {
                self.earlier.remove(0);
            }
            self.earlier.push(Asked { at, queues, types });
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
        seen.asks(claim);
        seen.last_claim_at = Some(now);
        seen.waits_until = None;
        seen.agent.clone_from(&claim.agent);
        match &claim.filter.queues {
            None => {
                self.any_claim = Some(now);
                self.unsaved.insert(ALL_QUEUES.to_owned(), now);
            }
            Some(queues) => {
                for queue in queues {
                    let is_full = self.queue_claims.len() >= limits::WORKERS_REMEMBERED;
                    if is_full && !self.queue_claims.contains_key(queue) {
                        forget_oldest(&mut self.queue_claims, |at| *at);
                    }
                    self.queue_claims.insert(queue.clone(), now);
                    self.unsaved.insert(queue.clone(), now);
                }
            }
        }
    }

    /// The last claim of this worker waits for a job.
    pub(crate) fn waits(&mut self, worker: &str, until: Timestamp) {
        if let Some(seen) = self.workers.get_mut(worker) {
            seen.waits_until = Some(until);
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
            forget_oldest(&mut self.workers, WorkerSeen::last_seen_at);
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

/// Makes room: the quarter that was seen longest ago goes, so that made-up names do not keep real ones out. Of those seen
/// at the same instant the names decide, so that it is never more than a quarter.
fn forget_oldest<T>(seen: &mut HashMap<String, T>, at: impl Fn(&T) -> Timestamp) {
    let mut names: Vec<(Timestamp, String)> =
        seen.iter().map(|(name, seen)| (at(seen), name.clone())).collect();
    names.sort_unstable();
    for (_, name) in names.iter().take(seen.len() / 4 + 1) {
        seen.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_seen_at_one_instant_is_not_forgotten_as_a_whole() {
        let mut registry = Registry::default();
        let now = Timestamp::from_millis(1);
        for n in 0..=limits::WORKERS_REMEMBERED {
            registry.reported(&format!("w{n}"), now);
        }
        let known = registry.workers().len();
        assert!(known > limits::WORKERS_REMEMBERED / 2, "{known}");
        assert!(known <= limits::WORKERS_REMEMBERED, "{known}");
    }

    #[test]
    fn the_longest_unseen_go_first() {
        let mut seen: HashMap<String, Timestamp> =
            (0..8).map(|n| (format!("q{n}"), Timestamp::from_millis(n))).collect();
        forget_oldest(&mut seen, |at| *at);
        let mut left: Vec<&str> = seen.keys().map(String::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["q3", "q4", "q5", "q6", "q7"]);
    }
}
