//! The audit log.

use rusqlite::{Connection, params};
use tagwerk_core::Timestamp;
use tagwerk_engine::row::{AuditQuery, AuditRow};

use crate::cells::Cells;
use crate::error::Res;

const APPEND: &str = "INSERT INTO audit (at, who, action, target, note) VALUES (?1, ?2, ?3, ?4, ?5)";
/// A page. What is asked for by time is a stretch of numbers nearly always, but clocks can be set back.
pub(crate) const SELECT: &str = "SELECT n, at, who, action, target, note FROM audit \
     WHERE n > ?1 AND (?2 IS NULL OR at >= ?2) AND (?3 IS NULL OR at < ?3) ORDER BY n LIMIT ?4";

/// Adds entries.
pub(crate) fn append(conn: &Connection, entries: &[AuditRow]) -> Res<()> {
    let mut insert = conn.prepare_cached(APPEND)?;
    for AuditRow { at, who, action, target, note, .. } in entries {
        insert.execute(params![at.as_millis(), who, action, target, note])?;
    }
    Ok(())
}

/// A page.
pub(crate) fn read(conn: &Connection, query: &AuditQuery) -> Res<Vec<AuditRow>> {
    let mut select = conn.prepare_cached(SELECT)?;
    let ms = |at: Option<Timestamp>| at.map(Timestamp::as_millis);
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let mut rows = select.query(params![query.after, ms(query.since), ms(query.until), limit])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        let cells = Cells(row);
        entries.push(AuditRow {
            n: cells.int(0)?,
            at: cells.time(1)?,
            who: cells.string(2)?,
            action: cells.string(3)?,
            target: cells.string(4)?,
            note: cells.maybe_string(5)?,
        });
    }
    Ok(entries)
}
