//! The orders of ordering keys: who stands in them. Only jobs with such a key have rows here.

use rusqlite::{Connection, OptionalExtension, params};
use tagwerk_core::{JobId, Status};
use tagwerk_engine::row::{JobRow, OrderRows, Place};

use crate::error::Res;
use crate::tx::jobs::readable;
use crate::writer::Writer;

const INSERT: &str = "INSERT INTO job_order (okey, job, open) VALUES (?1, ?2, ?3)";
/// Opens and closes a place.
pub(crate) const UPDATE: &str = "UPDATE job_order SET open = ?3 WHERE okey = ?1 AND job = ?2";
/// Frees a place.
pub(crate) const DELETE: &str = "DELETE FROM job_order WHERE okey = ?1 AND job = ?2";
/// The next that stands in an order.
pub(crate) const NEXT: &str = "SELECT job FROM job_order WHERE okey = ?1 AND job > ?2 ORDER BY job LIMIT 1";
/// The next that runs or may be handed out.
pub(crate) const NEXT_OPEN: &str = "SELECT job FROM job_order INDEXED BY job_order_open \
     WHERE okey = ?1 AND job > ?2 AND open = 1 ORDER BY job LIMIT 1";
/// How many wait behind a job, with or without the turn, up to a cap. Who is in review itself or runs is passed over.
pub(crate) const COUNT: &str = "SELECT count(*) FROM (SELECT 1 FROM job_order WHERE okey = ?1 AND job > ?2 \
     AND (SELECT state FROM job WHERE id = job_order.job) IN (0, 2) LIMIT ?3)";
/// Places behind this one.
pub(crate) const PLACES: &str =
    "SELECT okey, job, open FROM job_order WHERE (okey, job) > (?1, ?2) ORDER BY okey, job LIMIT ?3";
/// By the job alone. Reads all places.
const OF_JOB: &str = "SELECT okey FROM job_order WHERE job = ?1";
const ERASE_DAMAGED: &str = "DELETE FROM job_order WHERE job = ?1";
const ERASE: &str =
    "DELETE FROM job_order WHERE job = ?1 AND okey = (SELECT substr(ordering, 2) FROM detail WHERE job = ?1)";

/// The place of a new row.
pub(crate) fn insert(conn: &Connection, row: &JobRow) -> Res<()> {
    if let Some(order) = &row.order {
        conn.prepare_cached(INSERT)?.execute(params![&*order.key, row.job.id.0, is_open(row)])?;
    }
    Ok(())
}

/// The place of a row that was changed.
pub(crate) fn put(conn: &Connection, before: &JobRow, after: &JobRow) -> Res<()> {
    match (&before.order, &after.order) {
        (None, None) => Ok(()),
        (None, Some(_)) => insert(conn, after),
        (Some(order), None) => {
            conn.prepare_cached(DELETE)?.execute(params![&*order.key, before.job.id.0])?;
            Ok(())
        }
        (Some(_), Some(order)) => {
            if is_open(before) != is_open(after) {
                let place = params![&*order.key, after.job.id.0, is_open(after)];
                conn.prepare_cached(UPDATE)?.execute(place)?;
            }
            Ok(())
        }
    }
}

fn is_open(row: &JobRow) -> bool {
    match row.job.status {
        Status::Pending => !row.is_blocked(),
        Status::Running => true,
        Status::Failed | Status::Completed | Status::Cancelled => false,
    }
}

/// Jobs are erased; of those that are damaged nobody can say in which order they stand. Before their cold rows go.
pub(crate) fn erase(conn: &Connection, ids: &[JobId], is_damaged: impl Fn(JobId) -> bool) -> Res<()> {
    for id in ids {
        let sql = if is_damaged(*id) { ERASE_DAMAGED } else { ERASE };
        conn.prepare_cached(sql)?.execute([id.0])?;
    }
    Ok(())
}

/// Where rows are read from: the writer or a snapshot.
pub(crate) trait Source {
    /// The connection.
    fn conn(&self) -> &Connection;
    /// A row; `None` if there is none that can be read.
    fn readable(&mut self, id: JobId) -> Res<Option<JobRow>>;
}

impl Source for Writer {
    fn conn(&self) -> &Connection {
        &self.conn
    }

    fn readable(&mut self, id: JobId) -> Res<Option<JobRow>> {
        readable(self, id.0)
    }
}

/// Those that decide whose turn it is.
pub(crate) fn read(source: &mut impl Source, key: &str) -> Res<OrderRows> {
    let mut rows = OrderRows::default();
    let mut last = JobId(i64::MIN);
    while let Some(id) = next(source.conn(), NEXT, (key, last))? {
        rows.lowest = source.readable(id)?;
        if rows.lowest.is_some() {
            break;
        }
        last = id;
    }
    last = JobId(i64::MIN);
    while let Some(id) = next(source.conn(), NEXT_OPEN, (key, last))? {
        rows.open.extend(source.readable(id)?);
        last = id;
    }
    Ok(rows)
}

fn next(conn: &Connection, sql: &str, (key, behind): (&str, JobId)) -> Res<Option<JobId>> {
    let mut select = conn.prepare_cached(sql)?;
    Ok(select.query_row(params![key, behind.0], |row| row.get(0).map(JobId)).optional()?)
}

/// Places behind this one, by key and job.
pub(crate) fn places(conn: &Connection, (key, job): (&str, JobId), limit: usize) -> Res<Vec<Place>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut select = conn.prepare_cached(PLACES)?;
    let decode = |row: &rusqlite::Row<'_>| {
        let key: String = row.get(0)?;
        Ok(Place { key: key.into(), job: row.get(1).map(JobId)?, open: row.get(2)? })
    };
    Ok(select.query_map(params![key, job.0, limit], decode)?.collect::<Result<_, _>>()?)
}

/// The key in whose order a job stands.
pub(crate) fn of_job(conn: &Connection, id: JobId) -> Res<Option<String>> {
    Ok(conn.prepare_cached(OF_JOB)?.query_row([id.0], |row| row.get(0)).optional()?)
}

/// How many wait behind a job.
pub(crate) fn followers(conn: &Connection, key: &str, (behind, cap): (JobId, usize)) -> Res<usize> {
    let cap = i64::try_from(cap).unwrap_or(i64::MAX);
    let counted: i64 =
        conn.prepare_cached(COUNT)?.query_row(params![key, behind.0, cap], |row| row.get(0))?;
    Ok(usize::try_from(counted).unwrap_or_default())
}
