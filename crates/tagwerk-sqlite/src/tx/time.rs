//! What time does: ends of attempts, maximum ages, time in which nobody served.

use rusqlite::{Connection, params};
use tagwerk_core::Timestamp;
use tagwerk_engine::row::JobRow;

use crate::error::Res;
use crate::tx::jobs::readable;
use crate::writer::Writer;

/// Attempts that are over. The limit is on rows that can be read, so it is not in the statement.
pub(crate) const OVERDUE: &str =
    "SELECT id FROM job INDEXED BY job_lease WHERE state = 1 AND lease_until <= ?1 ORDER BY lease_until, id";
/// Jobs that are too old.
pub(crate) const EXPIRED: &str = "SELECT id FROM job INDEXED BY job_expires \
     WHERE expires IS NOT NULL AND state IN (0, 2) AND expires <= ?1 ORDER BY expires, id";
/// Leases of a claim.
pub(crate) const BY_REQUEST: &str = "SELECT id FROM job INDEXED BY job_request \
     WHERE request_id = ?1 AND request_id IS NOT NULL AND state = 1 ORDER BY id";
/// Moves the ends of all running attempts.
pub(crate) const SHIFT: &str = "UPDATE job INDEXED BY job_lease SET lease_until = lease_until + ?1, \
     lease_expires = lease_expires + ?1, time_limit = time_limit + ?1 WHERE state = 1";
const SELECT_SERVED: &str = "SELECT until FROM served WHERE id = 1";
const UPDATE_SERVED: &str = "UPDATE served SET until = ?1 WHERE id = 1";
const UPSERT_CLAIM: &str = "INSERT INTO queue (name, last_claim) VALUES (?1, ?2) \
     ON CONFLICT (name) DO UPDATE SET last_claim = excluded.last_claim";

/// Running rows whose attempt is over, oldest end first.
pub(super) fn overdue(writer: &mut Writer, now: Timestamp, limit: usize) -> Res<Vec<JobRow>> {
    due(writer, OVERDUE, (now, limit))
}

/// Pending rows that are too old, oldest first.
pub(super) fn expired(writer: &mut Writer, now: Timestamp, limit: usize) -> Res<Vec<JobRow>> {
    due(writer, EXPIRED, (now, limit))
}

/// Ids first, rows behind: the index alone says which. Damaged rows are passed over; when one is met for the first time,
/// it has taken another row's place, so the look is repeated with room for it.
fn due(writer: &mut Writer, sql: &str, (now, limit): (Timestamp, usize)) -> Res<Vec<JobRow>> {
    loop {
        let known_damaged = writer.damaged.len();
        let ids = first_ids(&writer.conn, sql, (now, limit.saturating_add(known_damaged)))?;
        let rows = read_all(writer, ids, limit)?;
        if rows.len() == limit || writer.damaged.len() == known_damaged {
            return Ok(rows);
        }
    }
}

fn first_ids(conn: &Connection, sql: &str, (now, wanted): (Timestamp, usize)) -> Res<Vec<i64>> {
    let mut select = conn.prepare_cached(sql)?;
    let ids = select.query_map([now.as_millis()], |row| row.get(0))?.take(wanted);
    Ok(ids.collect::<Result<_, _>>()?)
}

fn read_all(writer: &mut Writer, ids: Vec<i64>, limit: usize) -> Res<Vec<JobRow>> {
    let mut rows = Vec::with_capacity(ids.len());
    for id in ids {
        if rows.len() == limit {
            break;
        }
        rows.extend(readable(writer, id)?);
    }
    Ok(rows)
}

/// Running rows of a worker that a claim with this `request_id` was given.
pub(super) fn claimed_by_request(writer: &mut Writer, worker: &str, request_id: &str) -> Res<Vec<JobRow>> {
    let ids = {
        let mut select = writer.conn.prepare_cached(BY_REQUEST)?;
        select.query_map([request_id], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?
    };
    let mut rows = read_all(writer, ids, usize::MAX)?;
    rows.retain(|row| row.job.lease.as_ref().is_some_and(|lease| lease.worker == worker));
    Ok(rows)
}

/// Until when somebody has served.
pub(crate) fn served_until(conn: &Connection) -> Res<Option<Timestamp>> {
    let until: Option<i64> = conn.prepare_cached(SELECT_SERVED)?.query_row([], |row| row.get(0))?;
    Ok(until.map(Timestamp::from_millis))
}

/// Writes until when somebody has served, and when queues were claimed from.
pub(super) fn set_served(conn: &Connection, until: Timestamp, claims: &[(String, Timestamp)]) -> Res<()> {
    conn.prepare_cached(UPDATE_SERVED)?.execute([until.as_millis()])?;
    let mut upsert = conn.prepare_cached(UPSERT_CLAIM)?;
    for (queue, at) in claims {
        upsert.execute(params![queue, at.as_millis()])?;
    }
    Ok(())
}

/// Moves the ends of all running attempts.
pub(super) fn shift_leases(conn: &Connection, ms: i64) -> Res<u64> {
    let shifted = conn.prepare_cached(SHIFT)?.execute([ms])?;
    Ok(u64::try_from(shifted).unwrap_or(u64::MAX))
}
