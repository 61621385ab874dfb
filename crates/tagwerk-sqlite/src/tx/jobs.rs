//! Inserting, loading and changing jobs.

use rusqlite::{Connection, OptionalExtension, Statement, params};
use tagwerk_core::{JobId, Status};
use tagwerk_engine::row::{Detail, JobRow};
use tagwerk_engine::store::{Change, Found, Insert, OldPayload, PayloadWrite, StoreError, Unreadable};

use crate::book::{Head, Level};
use crate::codec::job::{COLUMNS, Depth, bind, job_columns, lease_bits, state};
use crate::codec::{detail, effect, note};
use crate::error::{Fail, Res};
use crate::turns;
use crate::writer::Writer;

/// Adds a hot row.
pub(crate) const INSERT: &str = concat!(
    "INSERT INTO job (",
    job_columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, \
     ?24, ?25, ?26, ?27, ?28, ?29)"
);
/// Reads a hot row.
pub(crate) const LOAD: &str = concat!("SELECT ", job_columns!(), " FROM job WHERE id = ?1");
/// Changes a hot row, guarded.
pub(crate) const UPDATE: &str = "UPDATE job SET prio = ?3, state = ?4, due = ?5, expires = ?6, max_age_ms = ?7, version = ?8, \
     flags = ?9, attempt = ?10, leases = ?11, retry_count = ?12, max_retries = ?13, lease_losses = ?14, \
     max_lease_losses = ?15, release_count = ?16, failure = ?17, payload_bytes = ?18, created = ?19, updated = ?20, \
     finished = ?21, lease_until = ?22, lease_expires = ?23, time_limit = ?24, lease_ms = ?25, claimed = ?26, \
     lease_bits = ?27, worker = ?28, request_id = ?29 \
     WHERE id = ?1 AND version = ?30 AND state = ?31 AND lease_bits IS ?32";
const KEEP_PAYLOAD: &str = "INSERT INTO payload_old (job, n, at, payload) SELECT job, \
     (SELECT coalesce(max(n), 0) + 1 FROM payload_old WHERE job = ?1), ?2, payload FROM detail WHERE job = ?1";
const PUT_PAYLOAD: &str = "UPDATE detail SET payload = ?2 WHERE job = ?1";

/// Adds jobs.
pub(super) fn insert(writer: &mut Writer, jobs: &[Insert]) -> Res<()> {
    let Writer { conn, book, gates, bounds, lanes, .. } = writer;
    let (mut hot, mut cold) = (conn.prepare_cached(INSERT)?, conn.prepare_cached(detail::INSERT)?);
    for Insert { row, detail } in jobs {
        bind(&mut hot, row)?;
        hot.raw_execute()?;
        detail::bind(&mut cold, row.job.id, detail)?;
        cold.raw_execute()?;
        if note::is_needed(row) {
            note::write(conn, row)?;
        }
        if !row.job.effects.is_empty() {
            effect::write(conn, row.job.id, (&[], &row.job.effects))?;
        }
        turns::insert(conn, row)?;
        if is_offered(row) {
            book.offer(level(row), place(row));
        }
        if row.job.status == Status::Running {
            bounds.add(lanes, level(row), 1);
            gates.add(lanes, row.lane.id, 1);
        }
    }
    Ok(())
}

/// Whether claims may see it once it is due.
fn is_offered(row: &JobRow) -> bool {
    row.job.status == Status::Pending && !row.is_blocked()
}

/// The level of a row.
fn level(row: &JobRow) -> Level {
    Level { lane: row.lane.id, prio: row.priority.value().into() }
}

/// The place of a row in its level.
fn place(row: &JobRow) -> Head {
    Head { due: row.job.available_at.as_millis(), id: row.job.id.0 }
}

/// Reads jobs.
pub(super) fn load(writer: &mut Writer, ids: &[JobId]) -> Res<Vec<Found<JobRow>>> {
    let read = {
        let mut select = writer.conn.prepare_cached(LOAD)?;
        ids.iter().map(|id| row(writer, &mut select, *id)).collect::<Vec<_>>()
    };
    let read = ids.iter().zip(read);
    read.map(|(id, read)| found(read, |why| writer.note_damaged(id.0, why))).collect()
}

/// A row; [`Fail::Row`] if it cannot be decoded.
fn row(writer: &Writer, select: &mut Statement<'_>, id: JobId) -> Res<Option<JobRow>> {
    if let Some(row) = writer.recent.row(id.0) {
        return Ok(Some(row.clone()));
    }
    let mut rows = select.query([id.0])?;
    rows.next()?.map(|row| writer.decoder().decode(row)).transpose()
}

/// A row as the contract wants it: damage is an answer, not a failure. It is noted.
fn found<T>(read: Res<Option<T>>, note: impl FnOnce(&str)) -> Res<Found<T>> {
    match read {
        Ok(row) => Ok(row.map(Ok)),
        Err(Fail::Row(why)) => {
            note(&why);
            Ok(Some(Err(Unreadable(why))))
        }
        Err(fail) => Err(fail),
    }
}

/// Reads the cold parts of jobs. A job whose cold part is gone or cannot be read is of no more use than one whose row
/// cannot: it is remembered, so that the claims that come next pass it over.
pub(super) fn details(writer: &mut Writer, ids: &[JobId]) -> Res<Vec<Found<Detail>>> {
    let read = {
        let mut select = writer.conn.prepare_cached(detail::SELECT_FULL)?;
        ids.iter().map(|id| cold(writer, &mut select, *id)).collect::<Vec<_>>()
    };
    let mut all = Vec::with_capacity(ids.len());
    for (id, read) in ids.iter().zip(read) {
        if let Ok(Some(detail)) = &read {
            writer.recent.read_detail(id.0, detail);
        }
        all.push(found(read, |why| writer.note_damaged(id.0, why))?);
    }
    Ok(all)
}

/// A cold part; [`Fail::Row`] if the job has none, or one that cannot be decoded.
fn cold(writer: &Writer, select: &mut Statement<'_>, id: JobId) -> Res<Option<Detail>> {
    if let Some(detail) = writer.recent.detail(id.0) {
        return Ok(Some(detail.clone()));
    }
    match detail::query(select, id, Depth::Full)? {
        None if exists(&writer.conn, id)? => Err(Fail::Row(format!("job {id}: its detail is missing"))),
        read => Ok(read),
    }
}

/// Changes jobs, guarded.
pub(super) fn put(writer: &mut Writer, changes: &[Change]) -> Res<()> {
    let Writer { conn, book, given, recent, gates, bounds, lanes, .. } = writer;
    let mut update = conn.prepare_cached(UPDATE)?;
    for Change { before, after } in changes {
        bind(&mut update, after)?;
        update.raw_bind_parameter(COLUMNS + 1, before.job.version)?;
        update.raw_bind_parameter(COLUMNS + 2, state(before))?;
        update.raw_bind_parameter(COLUMNS + 3, lease_bits(before))?;
        if update.raw_execute()? != 1 {
            return Err(StoreError::Conflict.into());
        }
        if note::differs(before, after) {
            note::write(conn, after)?;
        }
        if before.job.effects != after.job.effects {
            effect::write(conn, after.job.id, (&before.job.effects, &after.job.effects))?;
        }
        turns::put(conn, before, after)?;
        let was_given = given.remove(&after.job.id.0).is_some();
        if after.lane.id.is_special() || !bounds.is_empty() {
            // A row that was given counts as running already.
            let counted = was_given || before.job.status == Status::Running;
            let n = i32::from(after.job.status == Status::Running) - i32::from(counted);
            if n != 0 {
                bounds.add(lanes, level(before), n);
            }
            let freed = if n == 0 { Vec::new() } else { gates.add(lanes, after.lane.id, n) };
            for limit in freed {
                book.special.open(limit);
            }
        }
        recent.wrote(after);
        if is_offered(before) && !was_given && book.special.takes_turns(&before.lane.queue) {
            book.leave(conn, level(before), place(before))?;
        }
        if is_offered(after) {
            book.offer(level(after), place(after));
        }
    }
    Ok(())
}

/// Writes payloads.
pub(super) fn put_payloads(writer: &mut Writer, payloads: &[PayloadWrite]) -> Res<()> {
    let Writer { conn, recent, .. } = writer;
    for write in payloads {
        recent.forget(write.job.0);
        if write.old == OldPayload::Keep {
            conn.prepare_cached(KEEP_PAYLOAD)?.execute(params![write.job.0, write.at.as_millis()])?;
        }
        if conn.prepare_cached(PUT_PAYLOAD)?.execute(params![write.job.0, write.payload])? != 1 {
            return Err(StoreError::Conflict.into());
        }
    }
    Ok(())
}

/// One row by a statement that returns [`job_columns`]; a damaged one is remembered and passed over.
pub(crate) fn readable(writer: &mut Writer, id: i64) -> Res<Option<JobRow>> {
    if writer.damaged.contains(&id) {
        return Ok(None);
    }
    let found = load(writer, &[JobId(id)])?.pop().flatten();
    Ok(found.and_then(Result::ok))
}

/// Whether there is such a job.
pub(super) fn exists(conn: &Connection, id: JobId) -> Res<bool> {
    let found =
        conn.prepare_cached("SELECT 1 FROM job WHERE id = ?1")?.query_row([id.0], |_| Ok(())).optional()?;
    Ok(found.is_some())
}
