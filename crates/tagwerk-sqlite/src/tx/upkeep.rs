//! Histories, the ledger, retention.

use std::sync::LazyLock;

use rusqlite::{Connection, params};
use tagwerk_core::{Attempt, Call, JobId, Status, Timestamp, limits};
use tagwerk_engine::row::{ActionRow, Counter, LaneId, Tally};
use tagwerk_engine::store::{Prunable, PruneQuery};

use crate::code::Code;
use crate::codec::{attempt, detail};
use crate::error::Res;
use crate::turns;
use crate::tx::jobs::{exists, readable};
use crate::writer::Writer;

/// Forgets what stands between the first and the last attempts that are kept.
const TRIM_ATTEMPTS: &str = "DELETE FROM attempt WHERE job = ?1 \
     AND seq > (SELECT seq FROM attempt WHERE job = ?1 ORDER BY seq LIMIT 1 OFFSET ?2 - 1) \
     AND seq < (SELECT seq FROM attempt WHERE job = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?3 - 1)";
/// Counts a refused call.
pub(crate) const NOTE_REFUSED: &str = "UPDATE attempt SET refused = refused + 1, refused_call = ?3, refused_at = ?4 WHERE job = ?1 AND seq = ?2";
const APPEND_ACTION: &str = "INSERT INTO action (job, n, at, call, version, text) \
     SELECT ?1, coalesce(max(n), 0) + 1, ?2, ?3, ?4, ?5 FROM action WHERE job = ?1";
/// A stretch of rows for retention.
pub(crate) const SCAN: &str =
    "SELECT id, state, finished, created FROM job WHERE id > ?1 ORDER BY id LIMIT ?2";
/// Everything that belongs to a job except its key and its part of the ledger.
const ERASE: [&str; 9] = [
    "DELETE FROM key_past WHERE job = ?1 AND key = (SELECT key FROM detail WHERE job = ?1)",
    "DELETE FROM job WHERE id = ?1",
    "DELETE FROM detail WHERE job = ?1",
    "DELETE FROM note WHERE job = ?1",
    "DELETE FROM effect WHERE job = ?1",
    "DELETE FROM attempt WHERE job = ?1",
    "DELETE FROM action WHERE job = ?1",
    "DELETE FROM payload_old WHERE job = ?1",
    "DELETE FROM object_open WHERE job = ?1",
];

/// Adds to a row of the ledger, one column per counter.
pub(crate) static ADD_LEDGER: LazyLock<String> = LazyLock::new(|| {
    let names: Vec<&str> = Counter::ALL.iter().map(|counter| counter.name()).collect();
    let marks: Vec<String> = (2..names.len() + 2).map(|n| format!("?{n}")).collect();
    let sums: Vec<String> = names.iter().map(|name| format!("{name} = {name} + excluded.{name}")).collect();
    format!(
        "INSERT INTO ledger (lane, {}) VALUES (?1, {}) ON CONFLICT (lane) DO UPDATE SET {}",
        names.join(", "),
        marks.join(", "),
        sums.join(", ")
    )
});

/// The kept histories of jobs.
pub(super) fn attempts(conn: &Connection, ids: &[JobId]) -> Res<Vec<Vec<Attempt>>> {
    let read = |id: &JobId| {
        let rows = attempt::read(conn, *id, (0, usize::MAX))?;
        Ok(rows.into_iter().map(|row| row.attempt).collect())
    };
    ids.iter().map(read).collect()
}

/// Adds or overwrites attempts.
pub(super) fn put_attempts(conn: &Connection, attempts: &[(JobId, Attempt)]) -> Res<()> {
    let mut upsert = conn.prepare_cached(attempt::UPSERT)?;
    for (job, attempt) in attempts {
        attempt::write(&mut upsert, *job, attempt)?;
        if attempt.seq > limits::ATTEMPTS_FIRST + limits::ATTEMPTS_LAST {
            conn.prepare_cached(TRIM_ATTEMPTS)?.execute(params![
                job.0,
                limits::ATTEMPTS_FIRST,
                limits::ATTEMPTS_LAST
            ])?;
        }
    }
    Ok(())
}

/// Counts calls that were refused as stale.
pub(super) fn note_refused(conn: &Connection, refused: &[(JobId, u32, Call, Timestamp)]) -> Res<()> {
    let mut update = conn.prepare_cached(NOTE_REFUSED)?;
    for (job, seq, call, at) in refused {
        update.execute(params![job.0, seq, call.code(), at.as_millis()])?;
    }
    Ok(())
}

/// Adds actions to the histories of jobs that are there.
pub(super) fn append_actions(conn: &Connection, actions: &[ActionRow]) -> Res<()> {
    let mut insert = conn.prepare_cached(APPEND_ACTION)?;
    for action in actions {
        if exists(conn, action.job)? {
            let ActionRow { job, at, call, version, text } = action;
            insert.execute(params![job.0, at.as_millis(), call.code(), version, text])?;
        }
    }
    Ok(())
}

/// Adds to the ledger.
pub(super) fn add_ledger(conn: &Connection, deltas: &[(LaneId, Tally)]) -> Res<()> {
    let mut upsert = conn.prepare_cached(&ADD_LEDGER)?;
    for (lane, tally) in deltas {
        upsert.raw_bind_parameter(1, lane.0)?;
        for (at, counter) in (2..).zip(Counter::ALL) {
            upsert.raw_bind_parameter(at, tally.get(counter))?;
        }
        upsert.raw_execute()?;
    }
    Ok(())
}

/// Looks at a stretch of rows for some that retention may delete.
pub(super) fn prunable(writer: &mut Writer, query: &PruneQuery) -> Res<Prunable> {
    let (ids, next) = prunable_ids(&writer.conn, query)?;
    let mut rows = Vec::with_capacity(ids.len());
    for id in ids {
        if let Some(row) = readable(writer, id)? {
            let key = detail::read_key(&writer.conn, row.job.id)?;
            rows.push((row, key));
        }
    }
    Ok(Prunable { rows, next })
}

fn prunable_ids(conn: &Connection, query: &PruneQuery) -> Res<(Vec<i64>, Option<JobId>)> {
    let mut select = conn.prepare_cached(SCAN)?;
    // One row more than is looked at tells whether there is anything behind.
    let scan = i64::try_from(query.scan).unwrap_or(i64::MAX - 1);
    let mut rows = select.query([query.after.0, scan.saturating_add(1)])?;
    let (mut ids, mut last, mut seen) = (Vec::new(), query.after, 0);
    while let Some(row) = rows.next()? {
        if seen == scan || ids.len() >= query.wanted {
            return Ok((ids, Some(last)));
        }
        let created: i64 = row.get(3)?;
        if query.created_until.is_some_and(|until| created > until.as_millis()) {
            return Ok((ids, None));
        }
        seen += 1;
        last = JobId(row.get(0)?);
        let finished: Option<i64> = row.get(2)?;
        let until = match Status::from_code(row.get(1)?) {
            Some(Status::Completed) => query.completed_until,
            Some(Status::Cancelled) => query.cancelled_until,
            _ => None,
        };
        if until.zip(finished).is_some_and(|(until, finished)| finished <= until.as_millis()) {
            ids.push(last.0);
        }
    }
    Ok((ids, None))
}

/// Erases jobs.
pub(super) fn erase(writer: &mut Writer, ids: &[JobId]) -> Res<()> {
    turns::erase(&writer.conn, ids, |id| writer.damaged.contains(&id.0))?;
    for sql in ERASE {
        let mut delete = writer.conn.prepare_cached(sql)?;
        for id in ids {
            delete.execute([id.0])?;
        }
    }
    if ids.iter().any(|id| writer.damaged.contains(&id.0)) {
        // It may have been one that ran.
        let Writer { conn, lanes, gates, bounds, .. } = &mut *writer;
        gates.recount(conn, lanes)?;
        bounds.count(conn, lanes)?;
    }
    for id in ids {
        writer.forget_damaged(id.0);
        writer.recent.forget(id.0);
    }
    Ok(())
}
