//! The writing transaction.

mod alerts;
pub(crate) mod claim;
pub(crate) mod jobs;
pub(crate) mod keys;
mod limits;
pub(crate) mod time;
pub(crate) mod upkeep;
pub(crate) mod versions;

use tagwerk_core::gate::LimitSettings;
use tagwerk_core::{Attempt, Call, JobId, Status, Timestamp};
use tagwerk_engine::row::{
    ActionRow, AuditRow, Detail, JobRow, KeyRow, KeyWrite, Lane, LaneId, LimitRef, LimitRow, LimitUse,
    OrderRows, QueueRow, Tally, TypeSettings, VersionRow, VersionWrite, Versioned,
};
use tagwerk_engine::store::{
    Change, ClaimQuery, Filter, Found, Insert, PayloadWrite, Prunable, PruneQuery, SpecialName, StoreError,
    StoreResult, Tx,
};

use crate::audit;
use crate::codec;
use crate::lanes::Made;
use crate::writer::Writer;
use crate::{figures, token, turns};
pub(crate) use jobs::LOAD;
pub(crate) use time::served_until;

/// Ids stay below this, so that every JSON reader holds them exactly.
const ID_END: i64 = 1 << 53;

/// A transaction of the one writer.
pub(crate) struct SqliteTx<'a> {
    writer: &'a mut Writer,
    is_over: bool,
}

impl<'a> SqliteTx<'a> {
    /// Begins.
    pub(crate) fn begin(writer: &'a mut Writer) -> StoreResult<Self> {
        writer.begin()?;
        Ok(Self { writer, is_over: false })
    }

    /// The writer, which is about to write.
    fn writing(&mut self) -> &mut Writer {
        self.writer.has_written = true;
        self.writer
    }
}

impl Drop for SqliteTx<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.writer.roll_back();
        }
    }
}

impl Tx for SqliteTx<'_> {
    fn intern_in(&mut self, space: Option<&str>, names: &[(&str, &str)]) -> StoreResult<Vec<Lane>> {
        let writer = &mut *self.writer;
        let mut lanes = Vec::with_capacity(names.len());
        for names in names {
            let (lane, is_fresh) = writer.lanes.intern(&writer.conn, *names, space)?;
            if is_fresh {
                writer.has_written = true;
                writer.fresh.push(Made::Lane(lane.id));
            }
            lanes.push(lane);
        }
        Ok(lanes)
    }

    fn intern_special(&mut self, names: &[SpecialName<'_>]) -> StoreResult<Vec<Lane>> {
        let writer = self.writing();
        let mut lanes = Vec::with_capacity(names.len());
        for name in names {
            let lane = writer.lanes.intern_special(&writer.conn, name, &mut writer.fresh)?;
            writer.book.special.know(&lane);
            lanes.push(lane);
        }
        Ok(lanes)
    }

    fn limits(&mut self) -> StoreResult<Vec<LimitRow>> {
        Ok(self.writer.gates.all())
    }

    fn put_limit(&mut self, name: &str, settings: Option<&LimitSettings>) -> StoreResult<bool> {
        let Writer { conn, lanes, gates, book, .. } = self.writing();
        let (existed, concerned) = gates.put(conn, lanes, (name, settings))?;
        for limit in concerned {
            book.special.open(limit);
        }
        Ok(existed)
    }

    fn limit_use(&mut self, name: &str) -> StoreResult<Vec<LimitUse>> {
        Ok(self.writer.gates.uses(&self.writer.lanes, name))
    }

    fn limit_jobs(&mut self, name: &str) -> StoreResult<(u64, u64)> {
        Ok(limits::jobs(self.writer, name)?)
    }

    fn hold_limit(&mut self, limit: &LimitRef, until: Timestamp) -> StoreResult<()> {
        let Writer { conn, lanes, gates, fresh, .. } = self.writing();
        gates.hold((limit, lanes.intern_limit(conn, limit, fresh)?), until);
        Ok(())
    }

    fn open_limit(&mut self, limit: &LimitRef) -> StoreResult<bool> {
        let Writer { lanes, gates, book, .. } = self.writing();
        let (lifted, concerned) = gates.open(lanes, limit);
        for limit in concerned {
            book.special.open(limit);
        }
        Ok(lifted)
    }

    fn next_ids(&mut self, n: usize) -> StoreResult<JobId> {
        let sequence = &mut self.writer.sequence;
        let end = i64::try_from(n).ok().and_then(|n| sequence.next_job.checked_add(n));
        let Some(end) = end.filter(|end| *end <= ID_END) else {
            return Err(StoreError::Other("all ids below 2^53 are used up".to_owned()));
        };
        let first = std::mem::replace(&mut sequence.next_job, end);
        self.writer.has_written = true;
        Ok(JobId(first))
    }

    fn insert(&mut self, jobs: &[Insert]) -> StoreResult<()> {
        Ok(jobs::insert(self.writing(), jobs)?)
    }

    fn load(&mut self, ids: &[JobId]) -> StoreResult<Vec<Found<JobRow>>> {
        Ok(jobs::load(self.writer, ids)?)
    }

    fn details(&mut self, ids: &[JobId]) -> StoreResult<Vec<Found<Detail>>> {
        Ok(jobs::details(self.writer, ids)?)
    }

    fn put(&mut self, changes: &[Change]) -> StoreResult<()> {
        Ok(jobs::put(self.writing(), changes)?)
    }

    fn put_payloads(&mut self, payloads: &[PayloadWrite]) -> StoreResult<()> {
        Ok(jobs::put_payloads(self.writing(), payloads)?)
    }

    fn claimable(&mut self, now: Timestamp, queries: &[ClaimQuery<'_>]) -> StoreResult<Vec<Vec<JobRow>>> {
        Ok(claim::claimable(self.writer, now.as_millis(), queries)?)
    }

    fn next_due(&mut self, now: Timestamp, filter: &Filter) -> StoreResult<Option<Timestamp>> {
        Ok(claim::next_due(self.writer, now.as_millis(), filter)?.map(Timestamp::from_millis))
    }

    fn overdue(&mut self, now: Timestamp, limit: usize) -> StoreResult<Vec<JobRow>> {
        Ok(time::overdue(self.writer, now, limit)?)
    }

    fn expired(&mut self, now: Timestamp, limit: usize) -> StoreResult<Vec<JobRow>> {
        Ok(time::expired(self.writer, now, limit)?)
    }

    fn claimed_by_request(&mut self, worker: &str, request_id: &str) -> StoreResult<Vec<JobRow>> {
        Ok(time::claimed_by_request(self.writer, worker, request_id)?)
    }

    fn orders(&mut self, keys: &[&str]) -> StoreResult<Vec<OrderRows>> {
        Ok(keys.iter().map(|key| turns::read(self.writer, key)).collect::<Result<_, _>>()?)
    }

    fn order_of(&mut self, id: JobId) -> StoreResult<Option<String>> {
        Ok(turns::of_job(&self.writer.conn, id)?)
    }

    fn keys(&mut self, keys: &[&str]) -> StoreResult<Vec<Option<KeyRow>>> {
        Ok(keys::read(&self.writer.conn, keys)?)
    }

    fn put_keys(&mut self, writes: &[KeyWrite]) -> StoreResult<()> {
        Ok(keys::write(&self.writing().conn, writes)?)
    }

    fn tombstones(&mut self, after: &str, limit: usize) -> StoreResult<Vec<KeyRow>> {
        Ok(keys::tombstones(&self.writer.conn, after, limit)?)
    }

    fn attempts(&mut self, ids: &[JobId]) -> StoreResult<Vec<Vec<Attempt>>> {
        Ok(upkeep::attempts(&self.writer.conn, ids)?)
    }

    fn put_attempts(&mut self, attempts: &[(JobId, Attempt)]) -> StoreResult<()> {
        Ok(upkeep::put_attempts(&self.writing().conn, attempts)?)
    }

    fn note_refused(&mut self, refused: &[(JobId, u32, Call, Timestamp)]) -> StoreResult<()> {
        Ok(upkeep::note_refused(&self.writing().conn, refused)?)
    }

    fn append_actions(&mut self, actions: &[ActionRow]) -> StoreResult<()> {
        Ok(upkeep::append_actions(&self.writing().conn, actions)?)
    }

    fn append_audit(&mut self, entries: &[AuditRow]) -> StoreResult<()> {
        Ok(audit::append(&self.writing().conn, entries)?)
    }

    fn touch_tokens(&mut self, used: &[(String, Timestamp)]) -> StoreResult<()> {
        Ok(token::touch(&self.writing().conn, used)?)
    }

    fn key_of(&mut self, owner: JobId) -> StoreResult<Option<KeyRow>> {
        Ok(keys::of_owner(&self.writer.conn, owner)?)
    }

    fn ledger(&mut self) -> StoreResult<Vec<(Lane, Tally)>> {
        Ok(figures::ledger(&self.writer.conn, &self.writer.lanes)?)
    }

    fn counts(&mut self) -> StoreResult<Vec<(Lane, Status, i64)>> {
        Ok(figures::counts(&self.writer.conn, &self.writer.lanes)?)
    }

    fn blocked(&mut self) -> StoreResult<Vec<(Lane, i64)>> {
        Ok(figures::blocked(&self.writer.conn, &self.writer.lanes)?)
    }

    fn add_ledger(&mut self, deltas: &[(LaneId, Tally)]) -> StoreResult<()> {
        Ok(upkeep::add_ledger(&self.writing().conn, deltas)?)
    }

    fn prunable(&mut self, query: &PruneQuery) -> StoreResult<Prunable> {
        Ok(upkeep::prunable(self.writer, query)?)
    }

    fn erase(&mut self, ids: &[JobId]) -> StoreResult<()> {
        Ok(upkeep::erase(self.writing(), ids)?)
    }

    fn types(&mut self) -> StoreResult<Vec<(String, TypeSettings)>> {
        Ok(codec::settings::read_all(&self.writer.conn)?)
    }

    fn put_type(&mut self, kind: &str, settings: Option<&TypeSettings>) -> StoreResult<bool> {
        Ok(codec::settings::write(&self.writing().conn, kind, settings)?)
    }

    fn versions(&mut self, of: &[&Versioned]) -> StoreResult<Vec<Option<VersionRow>>> {
        Ok(versions::read(&self.writer.conn, of)?)
    }

    fn put_versions(&mut self, writes: &[VersionWrite]) -> StoreResult<()> {
        Ok(versions::write(&self.writing().conn, writes)?)
    }

    fn queue_rows(&mut self) -> StoreResult<Vec<QueueRow>> {
        Ok(codec::queue::read_all(&self.writer.conn)?)
    }

    fn put_queue(&mut self, row: &QueueRow) -> StoreResult<()> {
        Ok(self.writing().put_queue(row)?)
    }

    fn depth(&mut self, queue: &str) -> StoreResult<Vec<(LaneId, i64)>> {
        Ok(figures::depth(&self.writer.conn, &self.writer.lanes, queue)?)
    }

    fn served_until(&mut self) -> StoreResult<Option<Timestamp>> {
        Ok(time::served_until(&self.writer.conn)?)
    }

    fn set_served(&mut self, until: Timestamp, claims: &[(String, Timestamp)]) -> StoreResult<()> {
        Ok(time::set_served(&self.writing().conn, until, claims)?)
    }

    fn shift_leases(&mut self, ms: i64) -> StoreResult<u64> {
        let writer = self.writing();
        writer.recent.clear();
        Ok(time::shift_leases(&writer.conn, ms)?)
    }

    fn commit(mut self: Box<Self>) -> StoreResult<()> {
        self.writer.commit()?;
        self.is_over = true;
        Ok(())
    }
}
