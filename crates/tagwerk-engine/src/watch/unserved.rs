//! Jobs that wait for somebody to ask: no worker ever came, or none comes any more.
//!
//! A worker counts as there when it claims, waits for a job, or reports what it does: one that is busy with a long job will
//! ask again. What counts is whether its claim would take the job, by queue and by type.

use std::collections::HashMap;

use tagwerk_core::alert::{Kind, Rules, Scope, Unserved};
use tagwerk_core::{Timestamp, limits};

use crate::engine::Vitals;
use crate::registry::{ALL_QUEUES, WorkerSeen};
use crate::store::{Read, StoreResult};

/// Queue and type.
type Pair = (String, String);

/// What is kept from look to look.
#[derive(Default)]
pub(super) struct Unserveds {
    /// Since when jobs wait that nobody has asked for since then.
    waiting: HashMap<Pair, Timestamp>,
    /// When somebody has last asked for them. The next claim of the same worker may be for others.
    asked: HashMap<Pair, Timestamp>,
}

impl Unserveds {
    /// All pairs that have jobs which are ready, or due within the time after which somebody is to be told: then it is told
    /// when they become due, not later.
    pub(super) fn look(
        &mut self,
        read: &mut dyn Read,
        vitals: &Vitals,
        (rules, now, since): (&Rules, Timestamp, Timestamp),
    ) -> StoreResult<Vec<(String, Unserved)>> {
        let Some(horizon_ms) = rules.longest(Kind::NoWorker) else { return Ok(Vec::new()) };
        let workers: Vec<WorkerSeen> = vitals.registry.workers().into_iter().map(|(_, seen)| seen).collect();
        let stored: HashMap<String, Timestamp> =
            read.queues()?.into_iter().filter_map(|(queue, at)| Some((queue, at?))).collect();
        let mut due: HashMap<Pair, Timestamp> = HashMap::new();
        for lane in read.ready(now.plus_ms(horizon_ms))? {
            let pair = (lane.lane.queue.to_string(), lane.lane.kind.to_string());
            let oldest = due.entry(pair).or_insert(lane.oldest_due);
            *oldest = lane.oldest_due.min(*oldest);
        }
        self.waiting.retain(|pair, _| due.contains_key(pair));
        self.asked.retain(|pair, _| due.contains_key(pair));
        let mut found = Vec::new();
        for (pair, oldest) in due {
            let threshold = rules.threshold(Kind::NoWorker, &Scope::Queue(pair.0.clone()));
            let Some(threshold) = threshold.filter(|ms| oldest <= now.plus_ms(*ms)) else { continue };
            let asked = self.asked(&pair, (&workers, now));
            // What was stored before this process knows no types, and is the best that is known of that time.
            let before = [pair.0.as_str(), ALL_QUEUES].iter().filter_map(|queue| stored.get(*queue)).max();
            let before = before.copied().filter(|at| *at < since);
            let waiting = (*self.waiting.entry(pair.clone()).or_insert(now)).min(oldest);
            let last = waiting.max(asked.or(before).unwrap_or(Timestamp::EPOCH));
            // Nobody can ask a server that does not run, so what came before it counts only when it has run for as long.
            let is_told = asked.is_some() || now.since_ms(since) >= threshold;
            let waited_ms = is_told.then(|| now.since_ms(last).max(0));
            let known = asked.or(before).is_some();
            found.push((pair.0, Unserved { kind: pair.1, waited_ms, known }));
        }
        Ok(found)
    }

    /// When somebody has last asked for a pair, since this process runs.
    fn asked(&mut self, pair: &Pair, (workers, now): (&[WorkerSeen], Timestamp)) -> Option<Timestamp> {
        let wants =
            |names: &Option<Vec<String>>, name: &String| names.as_ref().is_none_or(|all| all.contains(name));
        let takes = |queues: &Option<Vec<String>>, types: &Option<Vec<String>>| {
            wants(queues, &pair.0) && wants(types, &pair.1)
        };
        let of_worker = |seen: &WorkerSeen| {
            let last_claim = seen.last_claim_at?;
            let there =
                seen.last_seen_at().max(seen.waits_until.map_or(Timestamp::EPOCH, |until| until.min(now)));
            if takes(&seen.queues, &seen.types) {
                return Some(there);
            }
            let earlier = seen.earlier.iter().filter(|wish| takes(&wish.queues, &wish.types));
            let at = earlier.map(|wish| wish.at).max()?;
            // One that asks for this and that in turn, and is busy since, will ask again.
            let is_busy = seen.last_report_at > seen.last_claim_at;
            let in_turn = last_claim.since_ms(at) <= limits::NO_WORKER_AFTER_MS;
            Some(if is_busy && in_turn { there } else { at })
        };
        let seen = workers.iter().filter_map(of_worker).max();
        let known = self.asked.get(pair).copied().max(seen);
        if let Some(at) = known {
            self.asked.insert(pair.clone(), at);
        }
        known
    }
}
