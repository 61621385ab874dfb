//! What is said about queues.

use rusqlite::{Connection, params};
use tagwerk_core::{Drain, Pause, Priority, QueueSettings, Reserve};
use tagwerk_engine::row::QueueRow;

use crate::cells::Cells;
use crate::error::{Fail, Res};

const SELECT: &str = "SELECT id, name, max_running, reserve_slots, reserve_from, max_depth, drain_at, drain_by, drain_reason \
     FROM queue ORDER BY name";
const SELECT_PAUSES: &str = "SELECT reason, by, at FROM queue_pause WHERE queue = ?1 ORDER BY n";
const UPSERT: &str = "INSERT INTO queue (name, max_running, reserve_slots, reserve_from, max_depth, drain_at, drain_by, drain_reason) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
     ON CONFLICT (name) DO UPDATE SET max_running = excluded.max_running, reserve_slots = excluded.reserve_slots, \
     reserve_from = excluded.reserve_from, max_depth = excluded.max_depth, drain_at = excluded.drain_at, \
     drain_by = excluded.drain_by, drain_reason = excluded.drain_reason";
const DELETE_PAUSES: &str = "DELETE FROM queue_pause WHERE queue = (SELECT id FROM queue WHERE name = ?1)";
const INSERT_PAUSE: &str =
    "INSERT INTO queue_pause (queue, n, reason, by, at) SELECT id, ?2, ?3, ?4, ?5 FROM queue WHERE name = ?1";

/// All queues about which something is said, by name.
pub(crate) fn read_all(conn: &Connection) -> Res<Vec<QueueRow>> {
    let mut select = conn.prepare_cached(SELECT)?;
    let mut rows = select.query([])?;
    let mut queues = Vec::new();
    while let Some(row) = rows.next()? {
        let queue = decode(conn, Cells(row))?;
        if !queue.is_plain() {
            queues.push(queue);
        }
    }
    Ok(queues)
}

fn decode(conn: &Connection, cells: Cells<'_>) -> Res<QueueRow> {
    let out_of_range = |column: &str| Fail::Row(format!("column `{column}` of a queue is out of range"));
    let reserve = match (cells.maybe_narrow(3)?, cells.maybe_narrow(4)?) {
        (Some(slots), Some(from)) => {
            let from_priority = Priority::from_value(from).ok_or_else(|| out_of_range("reserve_from"))?;
            Some(Reserve { slots, from_priority })
        }
        _ => None,
    };
    let max_depth =
        cells.maybe_int(5)?.map(|depth| u64::try_from(depth).map_err(|_| out_of_range("max_depth")));
    let draining = match cells.maybe_time(6)? {
        Some(at) => Some(Drain { at, by: cells.maybe_string(7)?, reason: cells.maybe_string(8)? }),
        None => None,
    };
    Ok(QueueRow {
        name: cells.string(1)?,
        settings: QueueSettings {
            max_running: cells.maybe_narrow(2)?,
            reserve,
            max_depth: max_depth.transpose()?,
        },
        paused: pauses(conn, cells.int(0)?)?,
        draining,
    })
}

fn pauses(conn: &Connection, queue: i64) -> Res<Vec<Pause>> {
    let mut select = conn.prepare_cached(SELECT_PAUSES)?;
    let mut rows = select.query([queue])?;
    let mut pauses = Vec::new();
    while let Some(row) = rows.next()? {
        let cells = Cells(row);
        pauses.push(Pause { reason: cells.string(0)?, by: cells.maybe_string(1)?, at: cells.time(2)? });
    }
    Ok(pauses)
}

/// Writes what is said about a queue, over what was said before.
pub(crate) fn write(conn: &Connection, row: &QueueRow) -> Res<()> {
    let QueueRow { name, settings, paused, draining } = row;
    conn.prepare_cached(UPSERT)?.execute(params![
        name,
        settings.max_running,
        settings.reserve.map(|reserve| reserve.slots),
        settings.reserve.map(|reserve| reserve.from_priority.value()),
        settings.max_depth.map(|depth| i64::try_from(depth).unwrap_or(i64::MAX)),
        draining.as_ref().map(|drain| drain.at.as_millis()),
        draining.as_ref().and_then(|drain| drain.by.as_ref()),
        draining.as_ref().and_then(|drain| drain.reason.as_ref()),
    ])?;
    conn.prepare_cached(DELETE_PAUSES)?.execute([name])?;
    let mut insert = conn.prepare_cached(INSERT_PAUSE)?;
    for (n, Pause { reason, by, at }) in (1_i64..).zip(paused) {
        insert.execute(params![name, n, reason, by, at.as_millis()])?;
    }
    Ok(())
}
