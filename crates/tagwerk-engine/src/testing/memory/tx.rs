//! The writing transaction of the memory store.

use std::collections::BTreeSet;
use std::sync::Arc;

use tagwerk_core::gate::LimitSettings;
use tagwerk_core::{Attempt, Call, JobId, LeaseBits, Status, Timestamp};

use super::Writer;
use super::faults::{Faults, Point};
use super::gates;
use super::state::{Record, State, is_offered, running_lease};
use crate::row::{
    ActionRow, AuditRow, Counter, Detail, JobRow, KeyRow, KeyWrite, Lane, LaneId, LimitRef, LimitRow,
    LimitUse, OrderRows, QueueRow, Tally, TypeSettings, VersionRow, VersionWrite, Versioned,
};
use crate::store::{
    Change, ClaimQuery, Filter, Found, Insert, OldPayload, PayloadWrite, Prunable, PruneQuery, SpecialName,
    StoreError, StoreResult, Tx, Unreadable,
};

/// A transaction: a copy of everything, put in the place of the original at the commit.
pub(super) struct MemoryTx<'a> {
    writer: Writer<'a>,
    faults: Faults,
    pub(super) state: State,
    /// Rows that the last `claimable` gave and that have not been changed since, and the time it was asked for.
    given: (Timestamp, BTreeSet<JobId>),
    /// An error was returned: the transaction is only good for dropping.
    failed: bool,
}

impl<'a> MemoryTx<'a> {
    pub(super) fn new(writer: Writer<'a>, faults: Faults) -> Self {
        let state = State::clone(&writer.disk.committed());
        Self { writer, faults, state, given: (Timestamp::EPOCH, BTreeSet::new()), failed: false }
    }

    /// Every method begins here.
    pub(super) fn reach(&mut self, point: Point) -> StoreResult<()> {
        assert!(!self.failed, "{point:?} after an error: the transaction is only good for dropping");
        let reached = self.faults.reach(point);
        self.failed = reached.is_err();
        reached
    }

    fn fail<T>(&mut self, error: StoreError) -> StoreResult<T> {
        self.failed = true;
        Err(error)
    }

    /// What `claimable` gave has been changed to something that was no longer claimable.
    fn check_given(&self) {
        let (_, left) = &self.given;
        assert!(left.is_empty(), "jobs {left:?} were given by `claimable` and left claimable");
    }
}

impl Tx for MemoryTx<'_> {
    fn intern_in(&mut self, space: Option<&str>, names: &[(&str, &str)]) -> StoreResult<Vec<Lane>> {
        self.reach(Point::Method("intern"))?;
        Ok(names.iter().map(|names| self.state.lane(*names, space)).collect())
    }

    fn intern_special(&mut self, names: &[SpecialName<'_>]) -> StoreResult<Vec<Lane>> {
        self.reach(Point::Method("intern_special"))?;
        Ok(names.iter().map(|name| self.state.special_lane(name)).collect())
    }

    fn limits(&mut self) -> StoreResult<Vec<LimitRow>> {
        self.reach(Point::Method("limits"))?;
        let row = |(name, settings): (&String, &LimitSettings)| LimitRow {
            name: name.clone(),
            settings: settings.clone(),
        };
        Ok(self.state.limits.iter().map(row).collect())
    }

    fn put_limit(&mut self, name: &str, settings: Option<&LimitSettings>) -> StoreResult<bool> {
        self.reach(Point::Method("put_limit"))?;
        let before = match settings {
            Some(settings) => self.state.limits.insert(name.to_owned(), settings.clone()),
            None => self.state.limits.remove(name),
        };
        Ok(before.is_some())
    }

    fn limit_use(&mut self, name: &str) -> StoreResult<Vec<LimitUse>> {
        self.reach(Point::Method("limit_use"))?;
        Ok(gates::uses(&self.state, name))
    }

    fn limit_jobs(&mut self, name: &str) -> StoreResult<(u64, u64)> {
        self.reach(Point::Method("limit_jobs"))?;
        let names = |row: &JobRow| row.lane.limits().iter().any(|limit| limit.name == name);
        let (mut waiting, mut running) = (0, 0);
        for (_, record) in self.state.jobs.iter().filter(|(_, record)| names(&record.row)) {
            match record.row.job.status {
                Status::Pending | Status::Failed => waiting += 1,
                Status::Running => running += 1,
                Status::Completed | Status::Cancelled => {}
            }
        }
        Ok((waiting, running))
    }

    fn hold_limit(&mut self, limit: &LimitRef, until: Timestamp) -> StoreResult<()> {
        self.reach(Point::Method("hold_limit"))?;
        let gate = self.state.gates.entry(limit.clone()).or_default();
        gate.hold_until = gate.hold_until.max(Some(until));
        Ok(())
    }

    fn open_limit(&mut self, limit: &LimitRef) -> StoreResult<bool> {
        self.reach(Point::Method("open_limit"))?;
        Ok(gates::open(&mut self.state, limit))
    }

    fn next_ids(&mut self, n: usize) -> StoreResult<JobId> {
        self.reach(Point::Method("next_ids"))?;
        match self.state.take_ids(n) {
            Some(first) => Ok(first),
            None => self.fail(StoreError::Other("all ids below 2^53 are used up".to_owned())),
        }
    }

    fn insert(&mut self, jobs: &[Insert]) -> StoreResult<()> {
        self.reach(Point::Method("insert"))?;
        for Insert { row, detail } in jobs {
            let id = row.job.id;
            assert!((1..self.state.next_id).contains(&id.0), "id {id} was never given out");
            assert!(self.state.row(id).is_none(), "id {id} is used twice");
            self.state.set(Record {
                row: row.clone(),
                detail: Arc::new(detail.clone()),
                history: Arc::default(),
            });
        }
        Ok(())
    }

    fn load(&mut self, ids: &[JobId]) -> StoreResult<Vec<Found<JobRow>>> {
        self.reach(Point::Method("load"))?;
        let found = |id: &JobId| {
            let row = self.state.row(*id)?;
            let is_damaged = self.state.damaged.contains(id);
            Some(if is_damaged { Err(unreadable("row", *id)) } else { Ok(row.clone()) })
        };
        Ok(ids.iter().map(found).collect())
    }

    fn details(&mut self, ids: &[JobId]) -> StoreResult<Vec<Found<Detail>>> {
        self.reach(Point::Method("details"))?;
        let found = |id: &JobId| {
            let record = self.state.jobs.get(id)?;
            let is_damaged = self.state.damaged_details.contains(id);
            Some(if is_damaged {
                Err(unreadable("cold part", *id))
            } else {
                Ok(Detail::clone(&record.detail))
            })
        };
        Ok(ids.iter().map(found).collect())
    }

    fn put(&mut self, changes: &[Change]) -> StoreResult<()> {
        self.reach(Point::Method("put"))?;
        for Change { before, after } in changes {
            assert_eq!(
                (before.job.id, &before.lane),
                (after.job.id, &after.lane),
                "id and lane never change"
            );
            let Some(record) =
                self.state.jobs.get(&before.job.id).filter(|found| guard(&found.row) == guard(before))
            else {
                return self.fail(StoreError::Conflict);
            };
            self.state.set(Record { row: after.clone(), ..Record::clone(record) });
            if !is_claimable(after, self.given.0) {
                self.given.1.remove(&after.job.id);
            }
        }
        Ok(())
    }

    fn put_payloads(&mut self, payloads: &[PayloadWrite]) -> StoreResult<()> {
        self.reach(Point::Method("put_payloads"))?;
        for write in payloads {
            let Some(record) = self.state.jobs.get(&write.job) else {
                return self.fail(StoreError::Conflict);
            };
            let mut record = Record::clone(record);
            let old =
                std::mem::replace(&mut Arc::make_mut(&mut record.detail).payload, write.payload.clone());
            if write.old == OldPayload::Keep {
                Arc::make_mut(&mut record.history).old_payloads.push((write.at, old));
            }
            self.state.set(record);
        }
        Ok(())
    }

    fn claimable(&mut self, now: Timestamp, queries: &[ClaimQuery<'_>]) -> StoreResult<Vec<Vec<JobRow>>> {
        self.reach(Point::Method("claimable"))?;
        self.check_given();
        let mut given = BTreeSet::new();
        let state = &mut self.state;
        let answers = queries.iter().map(|query| gates::choose(state, now, query, &mut given)).collect();
        self.given = (now, given);
        Ok(answers)
    }

    fn next_due(&mut self, now: Timestamp, filter: &Filter) -> StoreResult<Option<Timestamp>> {
        self.reach(Point::Method("next_due"))?;
        Ok(gates::next_due(&self.state, now, filter))
    }

    fn overdue(&mut self, now: Timestamp, limit: usize) -> StoreResult<Vec<JobRow>> {
        self.reach(Point::Method("overdue"))?;
        let over = self.state.ends.iter().map(|(end, ())| *end).take_while(|(at, _)| *at <= now);
        Ok(self.state.readable(over.map(|(_, id)| id)).take(limit).cloned().collect())
    }

    fn expired(&mut self, now: Timestamp, limit: usize) -> StoreResult<Vec<JobRow>> {
        self.reach(Point::Method("expired"))?;
        let over = self.state.ages.iter().map(|(age, ())| *age).take_while(|(at, _)| *at <= now);
        Ok(self.state.readable(over.map(|(_, id)| id)).take(limit).cloned().collect())
    }

    fn claimed_by_request(&mut self, worker: &str, request_id: &str) -> StoreResult<Vec<JobRow>> {
        self.reach(Point::Method("claimed_by_request"))?;
        let running = self.state.readable(self.state.ends.iter().map(|((_, id), ())| *id));
        let is_wanted = |row: &&JobRow| {
            running_lease(row).is_some_and(|lease| {
                lease.worker == worker && lease.request_id.as_deref() == Some(request_id)
            })
        };
        let mut rows: Vec<JobRow> = running.filter(is_wanted).cloned().collect();
        rows.sort_by_key(|row| row.job.id);
        Ok(rows)
    }

    fn orders(&mut self, keys: &[&str]) -> StoreResult<Vec<OrderRows>> {
        self.reach(Point::Method("orders"))?;
        Ok(keys.iter().map(|key| self.state.order(key)).collect())
    }

    fn order_of(&mut self, id: JobId) -> StoreResult<Option<String>> {
        self.reach(Point::Method("order_of"))?;
        let mut standing = self.state.ordered.iter().map(|(place, ())| place);
        Ok(standing.find(|(_, other)| *other == id).map(|(key, _)| key.to_string()))
    }

    fn keys(&mut self, keys: &[&str]) -> StoreResult<Vec<Option<KeyRow>>> {
        self.reach(Point::Method("keys"))?;
        Ok(keys.iter().map(|key| self.state.keys.get(&(*key).to_owned()).cloned()).collect())
    }

    fn put_keys(&mut self, writes: &[KeyWrite]) -> StoreResult<()> {
        self.reach(Point::Method("put_keys"))?;
        for write in writes {
            let (key, expected) = match write {
                KeyWrite::Insert(row) => (&row.key, None),
                KeyWrite::Replace { row, from } => (&row.key, Some(*from)),
                KeyWrite::Delete { key, owner } => (key, Some(*owner)),
            };
            if self.state.keys.get(key).map(|found| found.owner) != expected {
                return self.fail(StoreError::Conflict);
            }
            match write {
                KeyWrite::Insert(row) | KeyWrite::Replace { row, .. } => {
                    self.state.keys.insert(key.clone(), row.clone());
                }
                KeyWrite::Delete { .. } => self.state.keys.remove(key),
            }
        }
        Ok(())
    }

    fn tombstones(&mut self, after: &str, limit: usize) -> StoreResult<Vec<KeyRow>> {
        self.reach(Point::Method("tombstones"))?;
        let behind = self.state.keys.behind(&after.to_owned()).map(|(_, row)| row);
        Ok(behind.filter(|row| row.tombstone.is_some()).take(limit).cloned().collect())
    }

    fn attempts(&mut self, ids: &[JobId]) -> StoreResult<Vec<Vec<Attempt>>> {
        self.reach(Point::Method("attempts"))?;
        let kept =
            |record: &Arc<Record>| record.history.attempts.values().map(|row| row.attempt.clone()).collect();
        Ok(ids.iter().map(|id| self.state.jobs.get(id).map(kept).unwrap_or_default()).collect())
    }

    fn put_attempts(&mut self, attempts: &[(JobId, Attempt)]) -> StoreResult<()> {
        self.reach(Point::Method("put_attempts"))?;
        for (id, attempt) in attempts {
            assert!(self.state.row(*id).is_some(), "an attempt of job {id}, which is not there");
            self.state.amend(*id, |history| history.keep(attempt));
        }
        Ok(())
    }

    fn note_refused(&mut self, refused: &[(JobId, u32, Call, Timestamp)]) -> StoreResult<()> {
        self.reach(Point::Method("note_refused"))?;
        for (id, seq, call, at) in refused {
            self.state.amend(*id, |history| {
                if let Some(row) = history.attempts.get_mut(seq) {
                    row.refused_calls += 1;
                    row.last_refused = Some((*call, *at));
                }
            });
        }
        Ok(())
    }

    fn append_actions(&mut self, actions: &[ActionRow]) -> StoreResult<()> {
        self.reach(Point::Method("append_actions"))?;
        for action in actions {
            self.state.amend(action.job, |history| history.actions.push(action.clone()));
        }
        Ok(())
    }

    fn append_audit(&mut self, entries: &[AuditRow]) -> StoreResult<()> {
        self.reach(Point::Method("append_audit"))?;
        self.state.append_audit(entries);
        Ok(())
    }

    fn touch_tokens(&mut self, _: &[(String, Timestamp)]) -> StoreResult<()> {
        self.reach(Point::Method("touch_tokens"))
    }

    fn key_of(&mut self, owner: JobId) -> StoreResult<Option<KeyRow>> {
        self.reach(Point::Method("key_of"))?;
        let mut keys = self.state.keys.iter().map(|(_, row)| row);
        Ok(keys.find(|row| row.owner == owner && row.tombstone.is_none()).cloned())
    }

    fn ledger(&mut self) -> StoreResult<Vec<(Lane, Tally)>> {
        self.reach(Point::Method("ledger"))?;
        Ok(self.state.ledger())
    }

    fn counts(&mut self) -> StoreResult<Vec<(Lane, Status, i64)>> {
        self.reach(Point::Method("counts"))?;
        Ok(self.state.counts())
    }

    fn blocked(&mut self) -> StoreResult<Vec<(Lane, i64)>> {
        self.reach(Point::Method("blocked"))?;
        Ok(self.state.blocked())
    }

    fn add_ledger(&mut self, deltas: &[(LaneId, Tally)]) -> StoreResult<()> {
        self.reach(Point::Method("add_ledger"))?;
        for (lane, delta) in deltas {
            assert!(
                self.state.lanes.values().any(|known| known.id == *lane),
                "no lane has the number {lane:?}"
            );
            self.state.ledger.entry(*lane).or_default().merge(delta);
        }
        Ok(())
    }

    fn prunable(&mut self, query: &PruneQuery) -> StoreResult<Prunable> {
        self.reach(Point::Method("prunable"))?;
        let is_old =
            |record: &Record| query.created_until.is_none_or(|until| record.row.job.created_at <= until);
        let records = self.state.jobs.behind(&query.after).map(|(_, record)| record);
        let mut behind = records.take_while(|record| is_old(record)).peekable();
        let (mut rows, mut last) = (Vec::new(), query.after);
        for record in behind.by_ref().take(query.scan) {
            last = record.row.job.id;
            if is_prunable(&record.row, query) && !self.state.damaged.contains(&last) {
                rows.push((record.row.clone(), record.detail.key.clone()));
            }
            if rows.len() >= query.wanted {
                break;
            }
        }
        Ok(Prunable { rows, next: behind.peek().map(|_| last) })
    }

    fn erase(&mut self, ids: &[JobId]) -> StoreResult<()> {
        self.reach(Point::Method("erase"))?;
        for id in ids {
            self.state.erase(*id);
            self.given.1.remove(id);
        }
        Ok(())
    }

    fn types(&mut self) -> StoreResult<Vec<(String, TypeSettings)>> {
        self.reach(Point::Method("types"))?;
        Ok(self.state.types.iter().map(|(kind, settings)| (kind.clone(), settings.clone())).collect())
    }

    fn put_type(&mut self, kind: &str, settings: Option<&TypeSettings>) -> StoreResult<bool> {
        self.reach(Point::Method("put_type"))?;
        let before = match settings {
            Some(settings) => self.state.types.insert(kind.to_owned(), settings.clone()),
            None => self.state.types.remove(kind),
        };
        Ok(before.is_some())
    }

    fn versions(&mut self, of: &[&Versioned]) -> StoreResult<Vec<Option<VersionRow>>> {
        self.reach(Point::Method("versions"))?;
        Ok(of.iter().map(|of| self.state.versions.get(of).cloned()).collect())
    }

    fn put_versions(&mut self, writes: &[VersionWrite]) -> StoreResult<()> {
        self.reach(Point::Method("put_versions"))?;
        self.state.put_versions(writes);
        Ok(())
    }

    fn queue_rows(&mut self) -> StoreResult<Vec<QueueRow>> {
        self.reach(Point::Method("queue_rows"))?;
        Ok(self.state.queue_rows())
    }

    fn put_queue(&mut self, row: &QueueRow) -> StoreResult<()> {
        self.reach(Point::Method("put_queue"))?;
        self.state.queues.insert(row.name.clone(), row.clone());
        Ok(())
    }

    fn depth(&mut self, queue: &str) -> StoreResult<Vec<(LaneId, i64)>> {
        self.reach(Point::Method("depth"))?;
        let lanes = self.state.lanes.values().filter(|lane| *lane.queue == *queue);
        let depth = |lane: &Lane| {
            let tally = self.state.ledger.get(&lane.id).copied().unwrap_or_default();
            (lane.id, tally.get(Counter::Pending) + tally.get(Counter::Running))
        };
        Ok(lanes.map(depth).collect())
    }

    fn served_until(&mut self) -> StoreResult<Option<Timestamp>> {
        self.reach(Point::Method("served_until"))?;
        Ok(self.state.served_until)
    }

    fn set_served(&mut self, until: Timestamp, claims: &[(String, Timestamp)]) -> StoreResult<()> {
        self.reach(Point::Method("set_served"))?;
        self.state.served_until = Some(until);
        self.state.claims.extend(claims.iter().cloned());
        Ok(())
    }

    fn shift_leases(&mut self, ms: i64) -> StoreResult<u64> {
        self.reach(Point::Method("shift_leases"))?;
        let running: Vec<JobId> = self.state.ends.iter().map(|((_, id), ())| *id).collect();
        for id in &running {
            let mut record = Record::clone(self.state.jobs.get(id).expect("it was just found"));
            let lease = record.row.job.lease.as_mut().expect("a running job has a lease");
            lease.expires_at = lease.expires_at.plus_ms(ms);
            lease.time_limit_at = lease.time_limit_at.map(|limit| limit.plus_ms(ms));
            self.state.set(record);
        }
        Ok(u64::try_from(running.len()).expect("usize fits in u64"))
    }

    fn commit(mut self: Box<Self>) -> StoreResult<()> {
        self.reach(Point::BeforeCommit)?;
        self.check_given();
        self.writer.commit(std::mem::take(&mut self.state));
        self.faults.reach(Point::AfterCommit)
    }
}

fn unreadable(what: &str, id: JobId) -> Unreadable {
    Unreadable(format!("the {what} of job {id} is damaged"))
}

/// What a guarded write compares.
fn guard(row: &JobRow) -> (JobId, i64, Status, Option<LeaseBits>) {
    (row.job.id, row.job.version, row.job.status, row.job.lease.as_ref().map(|lease| lease.bits))
}

pub(super) fn is_claimable(row: &JobRow, now: Timestamp) -> bool {
    is_offered(row) && row.job.available_at <= now
}

fn is_prunable(row: &JobRow, query: &PruneQuery) -> bool {
    let until = match row.job.status {
        Status::Completed => query.completed_until,
        Status::Cancelled => query.cancelled_until,
        Status::Pending | Status::Running | Status::Failed => None,
    };
    until.is_some_and(|until| row.job.finished_at.is_some_and(|at| at <= until))
}
