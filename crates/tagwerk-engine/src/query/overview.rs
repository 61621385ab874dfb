//! Counts and who is there: from the ledger (kept in the jobs' own transactions), one seek per lane for what is ready, and
//! what this node has seen. No scan over the jobs.

use std::collections::BTreeMap;

use tagwerk_core::{JobId, Timestamp, limits};

use crate::registry::{ALL_QUEUES, Registry, WorkerSeen};
use crate::row::{JobRow, QueueRow, Tally, TypeSettings};
use crate::store::{LaneReady, Read, StoreResult};

/// Everything about the whole store.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Overview {
    /// Sums over all lanes.
    pub tally: Tally,
    /// Due time of the oldest ready job.
    pub oldest_ready: Option<Timestamp>,
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// Its name.
    pub queue: String,
    /// Its counters.
    pub tally: Tally,
    /// Due time of its oldest ready job.
    pub oldest_ready: Option<Timestamp>,
    /// When somebody last asked it for a job.
    pub last_claim_at: Option<Timestamp>,
    /// What is said about it.
    pub said: QueueRow,
}

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeView {
    /// Its name.
    pub kind: String,
    /// Its settings, if it has any.
    pub settings: Option<TypeSettings>,
    /// Its counters.
    pub tally: Tally,
    /// Due time of its oldest ready job.
    pub oldest_ready: Option<Timestamp>,
}

/// A worker.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerView {
    /// Its name.
    pub worker: String,
    /// What this node has seen of it; `None` if it only holds jobs.
    pub seen: Option<WorkerSeen>,
    /// The jobs that it holds, ascending id.
    pub holds: Vec<JobRow>,
}

/// The whole store.
pub fn overview(read: &mut dyn Read, now: Timestamp) -> StoreResult<Overview> {
    let mut tally = Tally::default();
    for (_, lane) in read.ledger()? {
        tally.merge(&lane);
    }
    let oldest_ready = read.ready(now)?.into_iter().map(|lane| lane.oldest_due).min();
    Ok(Overview { tally, oldest_ready })
}

/// All queues that ever had a job or a claim or about which something was said, by name.
pub fn queues(read: &mut dyn Read, registry: &Registry, now: Timestamp) -> StoreResult<Vec<QueueView>> {
    let stored: BTreeMap<String, Option<Timestamp>> = read.queues()?.into_iter().collect();
    let any = stored.get(ALL_QUEUES).copied().flatten();
    let mut all: BTreeMap<String, Tally> = stored
        .keys()
        .filter(|queue| *queue != ALL_QUEUES)
        .map(|queue| (queue.clone(), Tally::default()))
        .collect();
    for (lane, tally) in read.ledger()? {
        all.entry(lane.queue.to_string()).or_default().merge(&tally);
    }
    let mut said: BTreeMap<String, QueueRow> =
        read.queue_rows()?.into_iter().map(|row| (row.name.clone(), row)).collect();
    for queue in said.keys() {
        all.entry(queue.clone()).or_default();
    }
    let ready = read.ready(now)?;
    Ok(all
        .into_iter()
        .map(|(queue, tally)| QueueView {
            oldest_ready: oldest(&ready, |lane| *lane.lane.queue == *queue),
            last_claim_at: registry.last_claim(&queue).max(stored.get(&queue).copied().flatten()).max(any),
            said: said.remove(&queue).unwrap_or_else(|| QueueRow::plain(&queue)),
            queue,
            tally,
        })
        .collect())
}

/// All types that ever had a job or settings, by name.
pub fn types(read: &mut dyn Read, now: Timestamp) -> StoreResult<Vec<TypeView>> {
    let mut all: BTreeMap<String, (Tally, Option<TypeSettings>)> = read
        .types()?
        .into_iter()
        .map(|(kind, settings)| (kind, (Tally::default(), Some(settings))))
        .collect();
    for (lane, tally) in read.ledger()? {
        all.entry(lane.kind.to_string()).or_default().0.merge(&tally);
    }
    let ready = read.ready(now)?;
    Ok(all
        .into_iter()
        .map(|(kind, (tally, settings))| TypeView {
            oldest_ready: oldest(&ready, |lane| *lane.lane.kind == *kind),
            kind,
            settings,
            tally,
        })
        .collect())
}

/// All workers that this node has seen lately or that hold a job, by name.
pub fn workers(read: &mut dyn Read, registry: &Registry) -> StoreResult<Vec<WorkerView>> {
    let mut all: BTreeMap<String, WorkerView> = registry
        .workers()
        .into_iter()
        .map(|(worker, seen)| (worker.clone(), WorkerView { worker, seen: Some(seen), holds: Vec::new() }))
        .collect();
    for row in read.running(JobId(0), limits::WORKERS_REMEMBERED)? {
        let Some(lease) = &row.job.lease else { continue };
        let worker = lease.worker.clone();
        all.entry(worker.clone())
            .or_insert_with(|| WorkerView { worker, seen: None, holds: Vec::new() })
            .holds
            .push(row);
    }
    Ok(all.into_values().collect())
}

fn oldest(ready: &[LaneReady], belongs: impl Fn(&LaneReady) -> bool) -> Option<Timestamp> {
    ready.iter().filter(|lane| belongs(lane)).map(|lane| lane.oldest_due).min()
}
