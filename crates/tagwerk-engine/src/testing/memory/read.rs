//! Snapshots of the memory store.

use std::collections::BTreeMap;
use std::sync::Arc;

use tagwerk_core::{JobId, Status, Timestamp};

use super::state::{Record, State, is_open, place};
use crate::row::{
    ActionRow, AttemptRow, AuditQuery, AuditRow, FullJob, JobRow, KeyRow, Lane, OrderRows, Place, QueueRow,
    Tally, TokenRow, TypeSettings,
};
use crate::store::{LaneReady, ListQuery, Listed, Listing, Read, StoreFacts, StoreResult};

/// What was committed when it was made.
pub(super) struct MemoryRead {
    pub(super) state: Arc<State>,
}

impl MemoryRead {
    pub(super) const fn new(state: Arc<State>) -> Self {
        Self { state }
    }

    fn behind(&self, after: JobId) -> impl Iterator<Item = &Record> {
        self.state.jobs.behind(&after).map(|(_, record)| &**record)
    }

    fn listed(&self, record: &Record, shown: FullJob) -> Listed {
        let id = record.row.job.id;
        if self.state.damaged.contains(&id) || self.state.damaged_details.contains(&id) {
            return Listed::Damaged { id, why: "a test said so".to_owned() };
        }
        Listed::Job(Box::new(shown))
    }

    /// A job as lists show it: without payload, result and checkpoint.
    fn without_texts(&self, record: &Record) -> Listed {
        let mut shown = record.full();
        shown.detail.payload.clear();
        shown.row.note.result = None;
        shown.row.note.checkpoint = None;
        for effect in &mut shown.row.job.effects {
            effect.result = None;
        }
        self.listed(record, shown)
    }
}

impl Read for MemoryRead {
    fn jobs(&mut self, ids: &[JobId]) -> StoreResult<Vec<Option<Listed>>> {
        let listed = |record: &Arc<Record>| self.listed(record, record.full());
        Ok(ids.iter().map(|id| self.state.jobs.get(id).map(listed)).collect())
    }

    fn list(&mut self, query: &ListQuery) -> StoreResult<Listing> {
        let after = query.after.unwrap_or(JobId(0));
        let mut passing = self.behind(after).filter(|record| passes(record, query)).peekable();
        let rows: Vec<&Record> = passing.by_ref().take(query.limit).collect();
        let last = rows.last().map_or(after, |record| record.row.job.id);
        let next = passing.peek().map(|_| last);
        Ok(Listing { rows: rows.into_iter().map(|record| self.without_texts(record)).collect(), next })
    }

    fn attempts(&mut self, id: JobId, after_seq: u32, limit: usize) -> StoreResult<Vec<AttemptRow>> {
        let Some(record) = self.state.jobs.get(&id) else { return Ok(Vec::new()) };
        let behind = record.history.attempts.values().filter(|row| row.attempt.seq > after_seq);
        Ok(behind.take(limit).cloned().collect())
    }

    fn actions(&mut self, id: JobId) -> StoreResult<Vec<ActionRow>> {
        Ok(self.state.jobs.get(&id).map(|record| record.history.actions.clone()).unwrap_or_default())
    }

    fn audit(&mut self, query: &AuditQuery) -> StoreResult<Vec<AuditRow>> {
        let fits = |row: &&AuditRow| {
            row.n > query.after
                && query.since.is_none_or(|since| row.at >= since)
                && query.until.is_none_or(|until| row.at < until)
        };
        Ok(self.state.audit.iter().filter(fits).take(query.limit).cloned().collect())
    }

    fn tokens(&mut self) -> StoreResult<Vec<TokenRow>> {
        // They are made beside the server, which nobody does here.
        Ok(Vec::new())
    }

    fn ledger(&mut self) -> StoreResult<Vec<(Lane, Tally)>> {
        Ok(self.state.ledger())
    }

    fn counts(&mut self) -> StoreResult<Vec<(Lane, Status, i64)>> {
        Ok(self.state.counts())
    }

    fn ready(&mut self, now: Timestamp) -> StoreResult<Vec<LaneReady>> {
        let mut oldest = BTreeMap::new();
        for row in self.state.in_claim_order().filter(|row| row.job.available_at <= now) {
            let due = oldest.entry(row.lane.id).or_insert(row.job.available_at);
            *due = row.job.available_at.min(*due);
        }
        let lanes = self.state.lanes_by_id();
        let ready = |(id, oldest_due)| LaneReady { lane: lanes[&id].clone(), oldest_due };
        Ok(oldest.into_iter().map(ready).collect())
    }

    fn ahead(&mut self, row: &JobRow, now: Timestamp, cap: usize) -> StoreResult<usize> {
        let before = self.state.in_claim_order().take_while(|other| place(other) < place(row));
        let ready =
            before.filter(|other| other.job.available_at <= now && other.lane.queue == row.lane.queue);
        Ok(ready.take(cap).count())
    }

    fn running(&mut self, after: JobId, limit: usize) -> StoreResult<Vec<JobRow>> {
        let rows = self.state.readable(self.state.jobs.behind(&after).map(|(id, _)| *id));
        Ok(rows.filter(|row| row.job.status == Status::Running).take(limit).cloned().collect())
    }

    fn order(&mut self, key: &str) -> StoreResult<OrderRows> {
        Ok(self.state.order(key))
    }

    fn followers(&mut self, key: &str, behind: JobId, cap: usize) -> StoreResult<usize> {
        let rows = self.state.readable(self.state.in_order(key, behind));
        Ok(rows.filter(|row| row.job.status == Status::Pending).take(cap).count())
    }

    fn places(&mut self, after: (&str, JobId), limit: usize) -> StoreResult<Vec<Place>> {
        let (key, job) = after;
        let behind = self.state.ordered.behind(&(key.into(), job)).take(limit);
        let place = |((key, job), ()): (&(Arc<str>, JobId), &())| {
            let record = self.state.jobs.get(job);
            let open = record.is_some_and(|record| is_open(&record.row));
            Place { key: Arc::clone(key), job: *job, open }
        };
        Ok(behind.map(place).collect())
    }

    fn key(&mut self, key: &str) -> StoreResult<Option<KeyRow>> {
        Ok(self.state.keys.get(&key.to_owned()).cloned())
    }

    fn types(&mut self) -> StoreResult<Vec<(String, TypeSettings)>> {
        Ok(self.state.types.iter().map(|(kind, settings)| (kind.clone(), settings.clone())).collect())
    }

    fn queue_rows(&mut self) -> StoreResult<Vec<QueueRow>> {
        Ok(self.state.queue_rows())
    }

    fn queues(&mut self) -> StoreResult<Vec<(String, Option<Timestamp>)>> {
        let of_lanes = self.state.lanes.keys().map(|(queue, ..)| (queue.to_string(), None));
        let mut queues: BTreeMap<String, Option<Timestamp>> = of_lanes.collect();
        queues.extend(self.state.queues.keys().map(|queue| (queue.clone(), None)));
        queues.extend(self.state.claims.iter().map(|(queue, at)| (queue.clone(), Some(*at))));
        Ok(queues.into_iter().collect())
    }

    fn served_until(&mut self) -> StoreResult<Option<Timestamp>> {
        Ok(self.state.served_until)
    }

    fn scan(&mut self, after: JobId, limit: usize) -> StoreResult<Vec<Listed>> {
        Ok(self.behind(after).take(limit).map(|record| self.without_texts(record)).collect())
    }

    fn integrity(&mut self) -> StoreResult<Vec<String>> {
        Ok(Vec::new())
    }

    fn loose_ends(&mut self) -> StoreResult<Vec<String>> {
        Ok(Vec::new())
    }

    fn facts(&mut self) -> StoreResult<StoreFacts> {
        let damaged_rows = self.state.damaged.union(&self.state.damaged_details).count() as u64;
        Ok(StoreFacts { engine: "memory".to_owned(), schema: 1, bytes: 0, wal_bytes: 0, damaged_rows })
    }
}

fn passes(record: &Record, query: &ListQuery) -> bool {
    let Record { row, detail, .. } = record;
    let subject = detail.subject.as_ref();
    let is = |wish: &Option<String>, value: Option<&str>| wish.is_none() || wish.as_deref() == value;
    (query.statuses.is_empty() || query.statuses.contains(&row.job.status))
        && is(&query.kind, Some(&row.lane.kind))
        && is(&query.queue, Some(&row.lane.queue))
        && is(&query.subject_kind, subject.map(|subject| subject.kind.as_str()))
        && is(&query.subject_id, subject.map(|subject| subject.id.as_str()))
        && is(&query.correlation_id, detail.correlation_id.as_deref())
        && is(&query.key, detail.key.as_deref())
        && query.since.is_none_or(|since| row.job.created_at >= since)
        && query.until.is_none_or(|until| row.job.created_at < until)
}
