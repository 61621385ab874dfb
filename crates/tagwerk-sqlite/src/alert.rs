//! Alerts. A row with a kind that this version does not know is passed over.

use rusqlite::{Connection, Row, params};
use tagwerk_core::alert::{Kind, Scope};
use tagwerk_core::{Timestamp, limits};
use tagwerk_engine::row::{Acknowledged, AlertQuery, AlertRow, Ways, Which};

use crate::cells::Cells;
use crate::error::{Fail, Res};

const COLUMNS: &str = "SELECT id, kind, scope, name, opened, seen, calm, closed, acked, acked_by, acked_note, owner, \
     detail, value, threshold, due_opened, due_closed FROM alert";
const INSERT: &str = "INSERT INTO alert (kind, scope, name, opened, seen, calm, closed, acked, acked_by, acked_note, \
     owner, detail, value, threshold, due_opened, due_closed) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
const UPDATE: &str = "UPDATE alert SET kind = ?1, scope = ?2, name = ?3, opened = ?4, seen = ?5, calm = ?6, closed = ?7, \
     acked = ?8, acked_by = ?9, acked_note = ?10, owner = ?11, detail = ?12, value = ?13, threshold = ?14, \
     due_opened = ?15, due_closed = ?16 WHERE id = ?17";
const PRUNE: &str = "DELETE FROM alert WHERE id <= (SELECT max(id) FROM alert) - ?1 AND closed IS NOT NULL \
     AND due_opened = 0 AND due_closed = 0";
const MARK: &str = "INSERT INTO alert_mark (type, reviews) VALUES (?1, ?2) \
     ON CONFLICT (type) DO UPDATE SET reviews = excluded.reviews";

/// Alerts that are open.
pub(crate) fn open(conn: &Connection) -> Res<Vec<AlertRow>> {
    let mut select = conn.prepare_cached(&format!("{COLUMNS} WHERE closed IS NULL ORDER BY id"))?;
    collect(select.query([])?)
}

/// One alert.
pub(crate) fn find(conn: &Connection, id: i64) -> Res<Option<AlertRow>> {
    let mut select = conn.prepare_cached(&format!("{COLUMNS} WHERE id = ?1"))?;
    Ok(collect(select.query([id])?)?.pop())
}

/// A page.
pub(crate) fn read(conn: &Connection, query: &AlertQuery) -> Res<Vec<AlertRow>> {
    let which = match query.which {
        Which::All => "",
        Which::Open => "AND closed IS NULL",
        Which::Closed => "AND closed IS NOT NULL",
        Which::Due => "AND (due_opened <> 0 OR due_closed <> 0)",
    };
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let mut select = conn.prepare_cached(&format!("{COLUMNS} WHERE id > ?1 {which} ORDER BY id LIMIT ?2"))?;
    collect(select.query([query.after, limit])?)
}

/// Writes alerts; new ones get their number.
pub(crate) fn put(conn: &Connection, rows: &mut [AlertRow]) -> Res<()> {
    for row in rows.iter_mut() {
        let is_new = row.id == 0;
        let mut statement = conn.prepare_cached(if is_new { INSERT } else { UPDATE })?;
        let ms = |at: Option<Timestamp>| at.map(Timestamp::as_millis);
        let acked = row.acknowledged.as_ref();
        let values = params![
            row.kind.name(),
            row.scope.word(),
            row.scope.name(),
            row.opened_at.as_millis(),
            row.seen_at.as_millis(),
            ms(row.calm_since),
            ms(row.closed_at),
            acked.map(|acked| acked.at.as_millis()),
            acked.map(|acked| &acked.by),
            acked.and_then(|acked| acked.note.as_ref()),
            row.owner,
            row.detail,
            row.value,
            row.threshold,
            row.due_opened.bits(),
            row.due_closed.bits(),
            row.id,
        ];
        if is_new {
            statement.execute(&values[..values.len() - 1])?;
            row.id = conn.last_insert_rowid();
        } else {
            statement.execute(values)?;
        }
    }
    let kept = i64::try_from(limits::ALERTS_KEPT_MAX).unwrap_or(i64::MAX);
    conn.prepare_cached(PRUNE)?.execute([kept])?;
    Ok(())
}

/// Up to which entry into review each type has been judged.
pub(crate) fn marks(conn: &Connection) -> Res<Vec<(String, i64)>> {
    let mut select = conn.prepare_cached("SELECT type, reviews FROM alert_mark ORDER BY type")?;
    let mut rows = select.query([])?;
    let mut marks = Vec::new();
    while let Some(row) = rows.next()? {
        marks.push((Cells(row).string(0)?, Cells(row).int(1)?));
    }
    Ok(marks)
}

/// Writes that.
pub(crate) fn put_marks(conn: &Connection, marks: &[(String, i64)]) -> Res<()> {
    let mut mark = conn.prepare_cached(MARK)?;
    for (kind, reviews) in marks {
        mark.execute(params![kind, reviews])?;
    }
    Ok(())
}

fn collect(mut rows: rusqlite::Rows<'_>) -> Res<Vec<AlertRow>> {
    let mut alerts = Vec::new();
    while let Some(row) = rows.next()? {
        match decode(row) {
            Ok(alert) => alerts.push(alert),
            Err(Fail::Row(why)) => tracing::debug!(why, "an alert that cannot be read is left out"),
            Err(fail) => return Err(fail),
        }
    }
    Ok(alerts)
}

fn decode(row: &Row<'_>) -> Res<AlertRow> {
    let cells = Cells(row);
    let (kind, scope) = (cells.text(1)?, cells.text(2)?);
    let unknown = |what: &str| Fail::Row(format!("alert {:?}: {what}", cells.int(0).ok()));
    let acknowledged = match (cells.maybe_time(8)?, cells.maybe_string(9)?) {
        (Some(at), Some(by)) => Some(Acknowledged { at, by, note: cells.maybe_string(10)? }),
        _ => None,
    };
    Ok(AlertRow {
        id: cells.int(0)?,
        kind: Kind::from_name(kind).ok_or_else(|| unknown(kind))?,
        scope: Scope::from_parts(scope, cells.text(3)?).ok_or_else(|| unknown(scope))?,
        opened_at: cells.time(4)?,
        seen_at: cells.time(5)?,
        calm_since: cells.maybe_time(6)?,
        closed_at: cells.maybe_time(7)?,
        acknowledged,
        owner: cells.maybe_string(11)?,
        detail: cells.string(12)?,
        value: cells.int(13)?,
        threshold: cells.int(14)?,
        due_opened: Ways::from_bits(cells.narrow(15)?),
        due_closed: Ways::from_bits(cells.narrow(16)?),
    })
}
