//! One snapshot: a read transaction on one connection.

use rusqlite::params;
use tagwerk_core::{JobId, Status, Timestamp};
use tagwerk_engine::row::{
    ActionRow, AlertQuery, AlertRow, AttemptRow, AuditQuery, AuditRow, FullJob, JobRow, KeyRow, Lane,
    OrderRows, Place, QueueRow, Tally, TokenRow, TypeSettings,
};
use tagwerk_engine::store::{
    AlertRead, LaneReady, ListQuery, Listed, Listing, Read, StoreError, StoreFacts, StoreResult,
};

use crate::cells::Cells;
use crate::codec::job::{Decoder, Depth};
use crate::codec::{attempt, detail, key, queue, settings};
use crate::error::{Fail, Res, store_error};
use crate::figures;
use crate::open::beside;
use crate::read::{Slot, SqliteReaders, list, loose, ready};
use crate::tx::{keys, served_until};
use crate::{alert, audit};
use crate::{migrate, token, turns, tx};

const ACTIONS: &str = "SELECT at, call, version, text FROM action WHERE job = ?1 ORDER BY n";
const QUEUES: &str = "SELECT name, last_claim FROM queue ORDER BY name";
const IDS: &str = "SELECT id FROM job WHERE id > ?1 ORDER BY id LIMIT ?2";

/// A consistent view.
pub(super) struct Snapshot<'a> {
    readers: &'a SqliteReaders,
    slot: Option<Slot>,
}

/// What a snapshot works with.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) conn: &'a rusqlite::Connection,
    pub(super) lanes: &'a crate::lanes::Lanes,
    pub(super) damaged: &'a super::Damaged,
}

impl<'a> Snapshot<'a> {
    /// Begins the read transaction; its first read fixes what it sees.
    pub(super) fn begin(readers: &'a SqliteReaders, slot: Slot) -> Res<Self> {
        let mut snapshot = Self { readers, slot: Some(slot) };
        let Some(slot) = snapshot.slot.as_mut() else { return Ok(snapshot) };
        slot.conn.prepare_cached("BEGIN")?.execute([])?;
        slot.lanes.refresh(&slot.conn)?;
        Ok(snapshot)
    }

    fn view(&self) -> Res<View<'_>> {
        let slot = self.slot.as_ref().ok_or_else(|| Fail::Row("the snapshot is over".to_owned()))?;
        Ok(View { conn: &slot.conn, lanes: &slot.lanes, damaged: &self.readers.damaged })
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        let slot = self.slot.take();
        // A connection that cannot leave its transaction would hold the log back for ever; it is closed.
        let slot = slot.filter(|slot| slot.leave().is_ok());
        self.readers.give_back(slot);
    }
}

impl View<'_> {
    /// What decodes hot rows.
    pub(super) fn decoder(&self, depth: Depth) -> Decoder<'_> {
        Decoder { conn: self.conn, lanes: self.lanes, depth }
    }

    /// A hot row; `None` where there is none.
    pub(super) fn row(&self, id: JobId, depth: Depth) -> Res<Option<JobRow>> {
        let mut select = self.conn.prepare_cached(tx::LOAD)?;
        let mut rows = select.query([id.0])?;
        rows.next()?.map(|row| self.decoder(depth).decode(row)).transpose()
    }

    /// A job as it is shown; a row that cannot be decoded as what it is.
    pub(super) fn listed(&self, id: JobId, depth: Depth) -> Res<Option<Listed>> {
        match self.full(id, depth) {
            Ok(found) => Ok(found.map(|job| Listed::Job(Box::new(job)))),
            Err(Fail::Row(why)) => {
                self.damaged.note(id.0);
                Ok(Some(Listed::Damaged { id, why }))
            }
            Err(fail) => Err(fail),
        }
    }

    fn full(&self, id: JobId, depth: Depth) -> Res<Option<FullJob>> {
        let Some(row) = self.row(id, depth)? else { return Ok(None) };
        match detail::read(self.conn, id, depth)? {
            Some(detail) => Ok(Some(FullJob { row, detail })),
            None => Err(Fail::Row(format!("job {id}: its detail is missing"))),
        }
    }

    fn actions(&self, job: JobId) -> Res<Vec<ActionRow>> {
        let mut select = self.conn.prepare_cached(ACTIONS)?;
        let mut rows = select.query([job.0])?;
        let mut actions = Vec::new();
        while let Some(row) = rows.next()? {
            let cells = Cells(row);
            actions.push(ActionRow {
                job,
                at: cells.time(0)?,
                call: cells.code(1)?,
                version: cells.int(2)?,
                text: cells.maybe_string(3)?,
            });
        }
        Ok(actions)
    }

    fn ids_behind(&self, after: JobId, limit: usize) -> Res<Vec<JobId>> {
        let mut select = self.conn.prepare_cached(IDS)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let ids = select.query_map([after.0, limit], |row| row.get(0).map(JobId))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }

    fn scan(&self, after: JobId, limit: usize) -> Res<Vec<Listed>> {
        let mut listed = Vec::new();
        for id in self.ids_behind(after, limit)? {
            listed.extend(self.listed(id, Depth::List)?);
        }
        Ok(listed)
    }

    fn running(&self, after: JobId, limit: usize) -> Res<Vec<JobRow>> {
        let mut running = Vec::new();
        for id in list::running_ids(self.conn, after)? {
            if running.len() == limit {
                break;
            }
            match self.row(id, Depth::Full) {
                Ok(row) => running.extend(row),
                Err(Fail::Row(why)) => tracing::debug!(why, "a damaged row is left out of the running ones"),
                Err(fail) => return Err(fail),
            }
        }
        Ok(running)
    }

    fn queues(&self) -> Res<Vec<(String, Option<Timestamp>)>> {
        let mut select = self.conn.prepare_cached(QUEUES)?;
        let decode = |row: &rusqlite::Row<'_>| {
            let at: Option<i64> = row.get(1)?;
            Ok((row.get(0)?, at.map(Timestamp::from_millis)))
        };
        Ok(select.query_map([], decode)?.collect::<Result<_, _>>()?)
    }

    fn key(&self, name: &str) -> Res<Option<KeyRow>> {
        let mut select = self.conn.prepare_cached(keys::SELECT)?;
        let mut rows = select.query(params![name])?;
        rows.next()?.map(key::decode).transpose()
    }

    fn integrity(&self) -> Res<Vec<String>> {
        let mut check = self.conn.prepare("PRAGMA integrity_check")?;
        let mut lines = check.query([])?;
        let mut found: Vec<String> = Vec::new();
        loop {
            match lines.next() {
                Ok(Some(row)) => found.push(row.get(0)?),
                Ok(None) => break,
                // So damaged that the check itself gives up.
                Err(error) if matches!(store_error(&error), StoreError::Damaged(_)) => {
                    found.push(error.to_string());
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        found.retain(|line| line != "ok");
        Ok(found)
    }

    fn facts(&self, readers: &SqliteReaders) -> Res<StoreFacts> {
        let Ok(schema) = migrate::version(self.conn) else {
            return Err(Fail::Row("the schema has no version".to_owned()));
        };
        let bytes = |path: &std::path::Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        Ok(StoreFacts {
            engine: format!("sqlite {}", rusqlite::version()),
            schema,
            bytes: bytes(&readers.path),
            wal_bytes: bytes(&beside(&readers.path, "-wal")),
            damaged_rows: readers.damaged.count(),
        })
    }
}

impl turns::Source for View<'_> {
    fn conn(&self) -> &rusqlite::Connection {
        self.conn
    }

    fn readable(&mut self, id: JobId) -> Res<Option<JobRow>> {
        match self.row(id, Depth::List) {
            Err(Fail::Row(why)) => {
                tracing::debug!(why, "a damaged row is left out of the order of its key");
                Ok(None)
            }
            row => row,
        }
    }
}

impl AlertRead for Snapshot<'_> {
    fn alerts(&mut self, query: &AlertQuery) -> StoreResult<Vec<AlertRow>> {
        Ok(alert::read(self.view()?.conn, query)?)
    }

    fn alert_marks(&mut self) -> StoreResult<Vec<(String, i64)>> {
        Ok(alert::marks(self.view()?.conn)?)
    }
}

impl Read for Snapshot<'_> {
    fn jobs(&mut self, ids: &[JobId]) -> StoreResult<Vec<Option<Listed>>> {
        let view = self.view()?;
        Ok(ids.iter().map(|id| view.listed(*id, Depth::Full)).collect::<Result<_, _>>()?)
    }

    fn list(&mut self, query: &ListQuery) -> StoreResult<Listing> {
        Ok(list::list(self.view()?, query)?)
    }

    fn attempts(&mut self, id: JobId, after_seq: u32, limit: usize) -> StoreResult<Vec<AttemptRow>> {
        Ok(attempt::read(self.view()?.conn, id, (after_seq, limit))?)
    }

    fn actions(&mut self, id: JobId) -> StoreResult<Vec<ActionRow>> {
        Ok(self.view()?.actions(id)?)
    }

    fn audit(&mut self, query: &AuditQuery) -> StoreResult<Vec<AuditRow>> {
        Ok(audit::read(self.view()?.conn, query)?)
    }

    fn tokens(&mut self) -> StoreResult<Vec<TokenRow>> {
        Ok(token::read_all(self.view()?.conn)?)
    }

    fn ledger(&mut self) -> StoreResult<Vec<(Lane, Tally)>> {
        let view = self.view()?;
        Ok(figures::ledger(view.conn, view.lanes)?)
    }

    fn counts(&mut self) -> StoreResult<Vec<(Lane, Status, i64)>> {
        let view = self.view()?;
        Ok(figures::counts(view.conn, view.lanes)?)
    }

    fn ready(&mut self, now: Timestamp) -> StoreResult<Vec<LaneReady>> {
        Ok(ready::ready(self.view()?, now)?)
    }

    fn ahead(&mut self, row: &JobRow, now: Timestamp, cap: usize) -> StoreResult<usize> {
        Ok(ready::ahead(self.view()?, row, (now, cap))?)
    }

    fn running(&mut self, after: JobId, limit: usize) -> StoreResult<Vec<JobRow>> {
        Ok(self.view()?.running(after, limit)?)
    }

    fn order(&mut self, key: &str) -> StoreResult<OrderRows> {
        Ok(turns::read(&mut self.view()?, key)?)
    }

    fn followers(&mut self, key: &str, behind: JobId, cap: usize) -> StoreResult<usize> {
        Ok(turns::followers(self.view()?.conn, key, (behind, cap))?)
    }

    fn places(&mut self, after: (&str, JobId), limit: usize) -> StoreResult<Vec<Place>> {
        Ok(turns::places(self.view()?.conn, after, limit)?)
    }

    fn key(&mut self, key: &str) -> StoreResult<Option<KeyRow>> {
        Ok(self.view()?.key(key)?)
    }

    fn types(&mut self) -> StoreResult<Vec<(String, TypeSettings)>> {
        Ok(settings::read_all(self.view()?.conn)?)
    }

    fn queue_rows(&mut self) -> StoreResult<Vec<QueueRow>> {
        Ok(queue::read_all(self.view()?.conn)?)
    }

    fn queues(&mut self) -> StoreResult<Vec<(String, Option<Timestamp>)>> {
        Ok(self.view()?.queues()?)
    }

    fn served_until(&mut self) -> StoreResult<Option<Timestamp>> {
        Ok(served_until(self.view()?.conn)?)
    }

    fn scan(&mut self, after: JobId, limit: usize) -> StoreResult<Vec<Listed>> {
        Ok(self.view()?.scan(after, limit)?)
    }

    fn integrity(&mut self) -> StoreResult<Vec<String>> {
        Ok(self.view()?.integrity()?)
    }

    fn loose_ends(&mut self) -> StoreResult<Vec<String>> {
        Ok(loose::ends(self.view()?.conn)?)
    }

    fn facts(&mut self) -> StoreResult<StoreFacts> {
        Ok(self.view()?.facts(self.readers)?)
    }
}
