//! Attempts that have ended.

use rusqlite::{Connection, Statement, params};
use tagwerk_core::{Attempt, Before, JobId, LeaseBits, ReportHash};
use tagwerk_engine::row::AttemptRow;

use crate::cells::Cells;
use crate::code::Code;
use crate::error::Res;

/// The columns in the order in which [`decode`] reads them.
macro_rules! attempt_columns {
    () => {
        "seq, number, lease_bits, worker, claimed, lease_expires, ended, outcome, late, report, before_retry_count, \
         before_lease_losses, before_verify, before_error, error"
    };
}

/// Reads attempts.
pub(crate) const SELECT: &str = concat!(
    "SELECT ",
    attempt_columns!(),
    ", refused, refused_call, refused_at FROM attempt WHERE job = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"
);
/// Adds an attempt, or overwrites the one with its `seq` but for the calls refused to it.
pub(crate) const UPSERT: &str = concat!(
    "INSERT INTO attempt (job, ",
    attempt_columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16) \
     ON CONFLICT (job, seq) DO UPDATE SET number = excluded.number, lease_bits = excluded.lease_bits, \
     worker = excluded.worker, claimed = excluded.claimed, lease_expires = excluded.lease_expires, \
     ended = excluded.ended, outcome = excluded.outcome, late = excluded.late, report = excluded.report, \
     before_retry_count = excluded.before_retry_count, before_lease_losses = excluded.before_lease_losses, \
     before_verify = excluded.before_verify, before_error = excluded.before_error, error = excluded.error"
);

/// The kept attempts of a job behind `after_seq`, oldest first.
pub(crate) fn read(conn: &Connection, job: JobId, (after_seq, limit): (u32, usize)) -> Res<Vec<AttemptRow>> {
    let mut select = conn.prepare_cached(SELECT)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = select.query(params![job.0, after_seq, limit])?;
    let mut attempts = Vec::new();
    while let Some(row) = rows.next()? {
        attempts.push(decode(Cells(row))?);
    }
    Ok(attempts)
}

fn decode(cells: Cells<'_>) -> Res<AttemptRow> {
    let before = match cells.maybe_narrow(10)? {
        Some(retry_count) => Some(Before {
            retry_count,
            lease_losses: cells.narrow(11)?,
            verify: cells.flag(12)?,
            error: cells.maybe_string(13)?,
        }),
        None => None,
    };
    let attempt = Attempt {
        seq: cells.narrow(0)?,
        number: cells.narrow(1)?,
        bits: LeaseBits(cells.int(2)?.cast_unsigned()),
        worker: cells.string(3)?,
        claimed_at: cells.time(4)?,
        lease_expires_at: cells.time(5)?,
        ended_at: cells.time(6)?,
        end: cells.code(7)?,
        late: cells.flag(8)?,
        report: cells.maybe_hash(9)?.map(ReportHash),
        before,
        error: cells.maybe_string(14)?,
    };
    let last_refused = cells.maybe_code(16)?.zip(cells.maybe_time(17)?);
    Ok(AttemptRow { attempt, refused_calls: cells.narrow(15)?, last_refused })
}

/// Writes an attempt.
pub(crate) fn write(upsert: &mut Statement<'_>, job: JobId, attempt: &Attempt) -> Res<()> {
    let before = attempt.before.as_ref();
    upsert.execute(params![
        job.0,
        attempt.seq,
        attempt.number,
        attempt.bits.0.cast_signed(),
        attempt.worker,
        attempt.claimed_at.as_millis(),
        attempt.lease_expires_at.as_millis(),
        attempt.ended_at.as_millis(),
        attempt.end.code(),
        attempt.late,
        attempt.report.map(|report| report.0),
        before.map(|before| before.retry_count),
        before.map(|before| before.lease_losses),
        before.map(|before| before.verify),
        before.and_then(|before| before.error.as_deref()),
        attempt.error,
    ])?;
    Ok(())
}
