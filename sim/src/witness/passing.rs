//! The transaction of a [`super::Witness`].

use tagwerk_core::gate::LimitSettings;
use tagwerk_core::{Attempt, Call, JobId, Status, Timestamp};
use tagwerk_engine::row::{
    ActionRow, AlertRow, AuditRow, Detail, JobRow, KeyRow, KeyWrite, Lane, LaneId, LimitRef, LimitRow,
    LimitUse, OrderRows, QueueRow, Tally, TypeSettings, VersionRow, VersionWrite, Versioned,
};
use tagwerk_engine::store::{
    AlertTx, Change, ClaimQuery, Filter, Found, Insert, PayloadWrite, Prunable, PruneQuery, SpecialName,
    StoreResult, Tx,
};

use super::{End, Fault, Journal, Kind, Strike, Tried, Write};

pub(super) struct WitnessTx<'a> {
    /// Gone once it is committed.
    inner: Option<Box<dyn Tx + 'a>>,
    journal: Journal,
    fault: Option<Fault>,
    methods: u32,
    tried: Tried,
}

impl<'a> WitnessTx<'a> {
    pub(super) fn new(inner: Box<dyn Tx + 'a>, journal: Journal, fault: Option<Fault>) -> Self {
        let tried = Tried {
            writes: Vec::new(),
            shift_ms: 0,
            served: None,
            end: End::Dropped,
            struck: false,
            deadly: false,
        };
        Self { inner: Some(inner), journal, fault, methods: 0, tried }
    }

    /// Every method goes through here.
    fn pass<T>(&mut self, call: impl FnOnce(&mut (dyn Tx + 'a)) -> StoreResult<T>) -> StoreResult<T> {
        self.methods += 1;
        let here = Strike::Method(self.methods);
        if let Some(fault) = self.fault.filter(|fault| fault.at == here) {
            self.strike(fault, End::Failed(fault.kind));
            return Err(fault.kind.error());
        }
        let Some(inner) = self.inner.as_mut() else { return Err(Kind::Other.error()) };
        let done = call(inner.as_mut());
        if let Err(error) = &done {
            self.tried.end = End::Failed(Kind::of(error));
        }
        done
    }

    fn strike(&mut self, fault: Fault, end: End) {
        self.tried.end = end;
        self.tried.struck = true;
        self.tried.deadly = fault.deadly;
        self.journal.book().dead |= fault.deadly;
    }

    fn wrote(&mut self, writes: impl IntoIterator<Item = Write>) {
        self.tried.writes.extend(writes);
    }

    fn finish(&mut self) -> StoreResult<()> {
        let Some(inner) = self.inner.take() else { return Err(Kind::Other.error()) };
        let fault = self.fault.filter(|fault| matches!(fault.at, Strike::BeforeCommit | Strike::AfterCommit));
        let Some(fault) = fault else {
            let done = inner.commit();
            self.tried.end = match &done {
                Ok(()) => End::Committed,
                Err(error) => End::Failed(Kind::of(error)),
            };
            return done;
        };
        let committed = fault.at == Strike::AfterCommit;
        if committed && let Err(error) = inner.commit() {
            self.tried.end = End::Failed(Kind::of(&error));
            return Err(error);
        }
        let end = match fault.kind {
            Kind::OutcomeUnknown => End::Unknown { committed },
            kind => End::Failed(kind),
        };
        self.strike(fault, end);
        Err(fault.kind.error())
    }
}

impl Drop for WitnessTx<'_> {
    fn drop(&mut self) {
        self.inner = None;
        self.journal.note(self.tried.clone());
    }
}

impl AlertTx for WitnessTx<'_> {
    fn open_alerts(&mut self) -> StoreResult<Vec<AlertRow>> {
        self.pass(AlertTx::open_alerts)
    }

    fn alerts(&mut self, ids: &[i64]) -> StoreResult<Vec<Option<AlertRow>>> {
        self.pass(|tx| tx.alerts(ids))
    }

    fn put_alerts(&mut self, rows: &mut [AlertRow]) -> StoreResult<()> {
        self.pass(|tx| tx.put_alerts(rows))
    }

    fn put_alert_marks(&mut self, marks: &[(String, i64)]) -> StoreResult<()> {
        self.pass(|tx| tx.put_alert_marks(marks))
    }
}

impl Tx for WitnessTx<'_> {
    fn intern_in(&mut self, space: Option<&str>, names: &[(&str, &str)]) -> StoreResult<Vec<Lane>> {
        self.pass(|tx| tx.intern_in(space, names))
    }

    fn intern_special(&mut self, names: &[SpecialName<'_>]) -> StoreResult<Vec<Lane>> {
        self.pass(|tx| tx.intern_special(names))
    }

    fn limits(&mut self) -> StoreResult<Vec<LimitRow>> {
        self.pass(Tx::limits)
    }

    fn put_limit(&mut self, name: &str, settings: Option<&LimitSettings>) -> StoreResult<bool> {
        self.wrote([Write::Limit(name.to_owned(), settings.cloned())]);
        self.pass(|tx| tx.put_limit(name, settings))
    }

    fn limit_use(&mut self, name: &str) -> StoreResult<Vec<LimitUse>> {
        self.pass(|tx| tx.limit_use(name))
    }

    fn limit_jobs(&mut self, name: &str) -> StoreResult<(u64, u64)> {
        self.pass(|tx| tx.limit_jobs(name))
    }

    fn open_limit(&mut self, limit: &LimitRef) -> StoreResult<bool> {
        self.pass(|tx| tx.open_limit(limit))
    }

    fn hold_limit(&mut self, limit: &LimitRef, until: Timestamp) -> StoreResult<()> {
        self.pass(|tx| tx.hold_limit(limit, until))
    }

    fn next_ids(&mut self, n: usize) -> StoreResult<JobId> {
        self.pass(|tx| tx.next_ids(n))
    }

    fn insert(&mut self, jobs: &[Insert]) -> StoreResult<()> {
        self.wrote(jobs.iter().map(|job| Write::Insert(Box::new(job.clone()))));
        self.pass(|tx| tx.insert(jobs))
    }

    fn load(&mut self, ids: &[JobId]) -> StoreResult<Vec<Found<JobRow>>> {
        self.pass(|tx| tx.load(ids))
    }

    fn details(&mut self, ids: &[JobId]) -> StoreResult<Vec<Found<Detail>>> {
        self.pass(|tx| tx.details(ids))
    }

    fn put(&mut self, changes: &[Change]) -> StoreResult<()> {
        self.wrote(changes.iter().map(|change| Write::Change(Box::new(change.clone()))));
        self.pass(|tx| tx.put(changes))
    }

    fn put_payloads(&mut self, payloads: &[PayloadWrite]) -> StoreResult<()> {
        self.pass(|tx| tx.put_payloads(payloads))
    }

    fn claimable(&mut self, now: Timestamp, queries: &[ClaimQuery<'_>]) -> StoreResult<Vec<Vec<JobRow>>> {
        self.pass(|tx| tx.claimable(now, queries))
    }

    fn next_due(&mut self, now: Timestamp, filter: &Filter) -> StoreResult<Option<Timestamp>> {
        self.pass(|tx| tx.next_due(now, filter))
    }

    fn overdue(&mut self, now: Timestamp, limit: usize) -> StoreResult<Vec<JobRow>> {
        self.pass(|tx| tx.overdue(now, limit))
    }

    fn expired(&mut self, now: Timestamp, limit: usize) -> StoreResult<Vec<JobRow>> {
        self.pass(|tx| tx.expired(now, limit))
    }

    fn claimed_by_request(&mut self, worker: &str, request_id: &str) -> StoreResult<Vec<JobRow>> {
        self.pass(|tx| tx.claimed_by_request(worker, request_id))
    }

    fn orders(&mut self, keys: &[&str]) -> StoreResult<Vec<OrderRows>> {
        self.pass(|tx| tx.orders(keys))
    }

    fn order_of(&mut self, id: JobId) -> StoreResult<Option<String>> {
        self.pass(|tx| tx.order_of(id))
    }

    fn keys(&mut self, keys: &[&str]) -> StoreResult<Vec<Option<KeyRow>>> {
        self.pass(|tx| tx.keys(keys))
    }

    fn put_keys(&mut self, writes: &[KeyWrite]) -> StoreResult<()> {
        self.wrote(writes.iter().map(|write| Write::Key(write.clone())));
        self.pass(|tx| tx.put_keys(writes))
    }

    fn tombstones(&mut self, after: &str, limit: usize) -> StoreResult<Vec<KeyRow>> {
        self.pass(|tx| tx.tombstones(after, limit))
    }

    fn attempts(&mut self, ids: &[JobId]) -> StoreResult<Vec<Vec<Attempt>>> {
        self.pass(|tx| tx.attempts(ids))
    }

    fn put_attempts(&mut self, attempts: &[(JobId, Attempt)]) -> StoreResult<()> {
        self.wrote(attempts.iter().map(|(id, attempt)| Write::Attempt(*id, Box::new(attempt.clone()))));
        self.pass(|tx| tx.put_attempts(attempts))
    }

    fn note_refused(&mut self, refused: &[(JobId, u32, Call, Timestamp)]) -> StoreResult<()> {
        self.pass(|tx| tx.note_refused(refused))
    }

    fn append_actions(&mut self, actions: &[ActionRow]) -> StoreResult<()> {
        self.pass(|tx| tx.append_actions(actions))
    }

    fn append_audit(&mut self, entries: &[AuditRow]) -> StoreResult<()> {
        self.pass(|tx| tx.append_audit(entries))
    }

    fn touch_tokens(&mut self, used: &[(String, Timestamp)]) -> StoreResult<()> {
        self.pass(|tx| tx.touch_tokens(used))
    }

    fn key_of(&mut self, owner: JobId) -> StoreResult<Option<KeyRow>> {
        self.pass(|tx| tx.key_of(owner))
    }

    fn ledger(&mut self) -> StoreResult<Vec<(Lane, Tally)>> {
        self.pass(Tx::ledger)
    }

    fn counts(&mut self) -> StoreResult<Vec<(Lane, Status, i64)>> {
        self.pass(Tx::counts)
    }

    fn blocked(&mut self) -> StoreResult<Vec<(Lane, i64)>> {
        self.pass(Tx::blocked)
    }

    fn add_ledger(&mut self, deltas: &[(LaneId, Tally)]) -> StoreResult<()> {
        self.pass(|tx| tx.add_ledger(deltas))
    }

    fn prunable(&mut self, query: &PruneQuery) -> StoreResult<Prunable> {
        self.pass(|tx| tx.prunable(query))
    }

    fn erase(&mut self, ids: &[JobId]) -> StoreResult<()> {
        self.wrote(ids.iter().map(|id| Write::Erase(*id)));
        self.pass(|tx| tx.erase(ids))
    }

    fn types(&mut self) -> StoreResult<Vec<(String, TypeSettings)>> {
        self.pass(Tx::types)
    }

    fn put_type(&mut self, kind: &str, settings: Option<&TypeSettings>) -> StoreResult<bool> {
        self.pass(|tx| tx.put_type(kind, settings))
    }

    fn versions(&mut self, of: &[&Versioned]) -> StoreResult<Vec<Option<VersionRow>>> {
        self.pass(|tx| tx.versions(of))
    }

    fn put_versions(&mut self, writes: &[VersionWrite]) -> StoreResult<()> {
        self.pass(|tx| tx.put_versions(writes))
    }

    fn queue_rows(&mut self) -> StoreResult<Vec<QueueRow>> {
        self.pass(Tx::queue_rows)
    }

    fn put_queue(&mut self, row: &QueueRow) -> StoreResult<()> {
        self.wrote([Write::Queue(Box::new(row.clone()))]);
        self.pass(|tx| tx.put_queue(row))
    }

    fn depth(&mut self, queue: &str) -> StoreResult<Vec<(LaneId, i64)>> {
        self.pass(|tx| tx.depth(queue))
    }

    fn served_until(&mut self) -> StoreResult<Option<Timestamp>> {
        self.pass(Tx::served_until)
    }

    fn set_served(&mut self, until: Timestamp, claims: &[(String, Timestamp)]) -> StoreResult<()> {
        self.tried.served = Some(until.as_millis());
        self.pass(|tx| tx.set_served(until, claims))
    }

    fn shift_leases(&mut self, ms: i64) -> StoreResult<u64> {
        self.tried.shift_ms = ms;
        self.pass(|tx| tx.shift_leases(ms))
    }

    fn commit(mut self: Box<Self>) -> StoreResult<()> {
        self.finish()
    }
}
