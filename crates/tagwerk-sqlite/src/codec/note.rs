//! What a worker has left behind. The hot row's flags say whether there is any, so that nobody looks in vain.

use rusqlite::{CachedStatement, Connection, OptionalExtension};
use tagwerk_core::JobId;
use tagwerk_engine::row::{JobRow, Note, Progress};

use crate::cells::Cells;
use crate::codec::job::Depth;
use crate::error::{Fail, Res};

const SELECT_LIST: &str = "SELECT error, has_progress, progress_done, progress_total, progress_message, superseded_by FROM note WHERE job = ?1";
const SELECT_FULL: &str = "SELECT error, has_progress, progress_done, progress_total, progress_message, superseded_by, result, \
     checkpoint FROM note WHERE job = ?1";
const UPSERT: &str = "INSERT INTO note (job, error, has_progress, progress_done, progress_total, progress_message, result, checkpoint, \
     superseded_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (job) DO UPDATE SET error = excluded.error, \
     has_progress = excluded.has_progress, progress_done = excluded.progress_done, \
     progress_total = excluded.progress_total, progress_message = excluded.progress_message, \
     result = excluded.result, checkpoint = excluded.checkpoint, superseded_by = excluded.superseded_by";
const DELETE: &str = "DELETE FROM note WHERE job = ?1";

/// Whether a job needs a row in `note`.
pub(crate) fn is_needed(row: &JobRow) -> bool {
    let Note { result, checkpoint, progress } = &row.note;
    row.job.error.is_some()
        || row.job.superseded_by.is_some()
        || result.is_some()
        || checkpoint.is_some()
        || progress.is_some()
}

/// Whether the row in `note` of one is not that of the other.
pub(crate) fn differs(one: &JobRow, other: &JobRow) -> bool {
    one.job.error != other.job.error
        || one.note != other.note
        || one.job.superseded_by != other.job.superseded_by
}

/// Error text, the job that superseded this one, and the note.
type Read = (Option<String>, Option<JobId>, Note);

/// What stands in `note` of a job whose flags say that it has a row there.
pub(crate) fn read(conn: &Connection, job: JobId, depth: Depth) -> Res<Read> {
    let sql = match depth {
        Depth::Full => SELECT_FULL,
        Depth::List => SELECT_LIST,
    };
    let decode = |row: &rusqlite::Row<'_>| Ok(decode(Cells(row), depth));
    let found = conn.prepare_cached(sql)?.query_row([job.0], decode).optional()?;
    found.unwrap_or_else(|| Err(Fail::Row("its note is missing".to_owned())))
}

fn decode(cells: Cells<'_>, depth: Depth) -> Res<Read> {
    let progress =
        Progress { done: cells.maybe_int(2)?, total: cells.maybe_int(3)?, message: cells.maybe_string(4)? };
    let (result, checkpoint) = match depth {
        Depth::Full => (cells.maybe_string(6)?, cells.maybe_string(7)?),
        Depth::List => (None, None),
    };
    let progress = cells.flag(1)?.then_some(progress);
    let superseded_by = cells.maybe_int(5)?.map(JobId);
    Ok((cells.maybe_string(0)?, superseded_by, Note { result, checkpoint, progress }))
}

/// Writes the note of a row, or removes it if nothing is left of it.
pub(crate) fn write(conn: &Connection, row: &JobRow) -> Res<()> {
    if is_needed(row) { upsert(&mut conn.prepare_cached(UPSERT)?, row) } else { delete(conn, row.job.id) }
}

fn upsert(statement: &mut CachedStatement<'_>, row: &JobRow) -> Res<()> {
    let Note { result, checkpoint, progress } = &row.note;
    let progress = progress.as_ref();
    statement.execute(rusqlite::params![
        row.job.id.0,
        row.job.error,
        progress.is_some(),
        progress.and_then(|progress| progress.done),
        progress.and_then(|progress| progress.total),
        progress.and_then(|progress| progress.message.as_deref()),
        result,
        checkpoint,
        row.job.superseded_by.map(|by| by.0),
    ])?;
    Ok(())
}

/// Removes the note of a job.
pub(crate) fn delete(conn: &Connection, job: JobId) -> Res<()> {
    conn.prepare_cached(DELETE)?.execute([job.0])?;
    Ok(())
}
