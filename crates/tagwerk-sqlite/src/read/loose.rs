//! Loose ends: rows about queues, lanes and limits that name something that is not there, or that cannot be meant. No
//! foreign key keeps them right while the server runs (they would cost every job), so `tagwerk check` looks.

use rusqlite::Connection;
use tagwerk_core::limits::{LIMIT_RUNNING, RATE_COUNT, RATE_PER_MS};
use tagwerk_core::rate::Window;
use tagwerk_engine::row::LimitRef;

use crate::error::Res;

/// Statements whose rows say what is loose, and what to do about it.
const LOOSE: &[(&str, &str)] = &[
    (
        "SELECT format('a reason to pause (%Q) belongs to queue number %d, which is not there', p.reason, p.queue) \
         FROM queue_pause p WHERE p.queue NOT IN (SELECT id FROM queue) ORDER BY p.queue, p.n",
        "it stops nothing: pause the queue that was meant, and delete the row from table queue_pause",
    ),
    (
        "SELECT format('lane %d names a queue or a type that is not there', l.id) FROM lane l \
         WHERE l.queue NOT IN (SELECT id FROM queue) OR l.type NOT IN (SELECT id FROM type) ORDER BY l.id",
        "its jobs cannot be read: put the row back into table queue or type under its number, or delete the jobs",
    ),
    (
        "SELECT format('lane %d belongs to lane %d, which is not there', s.id, s.class) FROM special_lane s \
         WHERE s.class NOT IN (SELECT id FROM lane) ORDER BY s.id DESC",
        "its jobs cannot be read: put the row back into table lane under its number, or delete the jobs",
    ),
    (
        "SELECT format('lane %d names limit number %d, which is not there', s.id, s.n) FROM \
         (SELECT id, first AS n FROM special_lane UNION ALL SELECT id, second FROM special_lane) s \
         WHERE s.n <> 0 AND s.n NOT IN (SELECT id FROM lim) ORDER BY s.id DESC, s.n",
        "its jobs cannot be read: put the row back into table lim under its number, or delete the jobs",
    ),
    (
        "SELECT format('limit %Q has half a rate', name) FROM limit_def \
         WHERE (rate_count IS NULL) <> (rate_per_ms IS NULL) ORDER BY name",
        "it counts as none: set the limit anew",
    ),
    (
        "SELECT format('queue %Q has half a reserve', name) FROM queue \
         WHERE (reserve_slots IS NULL) <> (reserve_from IS NULL) ORDER BY name",
        "it counts as none: set the queue's bounds anew",
    ),
];
const TOO_MUCH: &str = "SELECT format('limit %Q is set to more than there can be', name) FROM limit_def \
     WHERE max_running > ?1 OR rate_count > ?2 OR rate_per_ms > ?3 ORDER BY name";
const STARTS: &str = "SELECT name, partition, starts FROM lim WHERE starts IS NOT NULL ORDER BY id";

/// All of them.
pub(super) fn ends(conn: &Connection) -> Res<Vec<String>> {
    let mut found = Vec::new();
    for (sql, advice) in LOOSE {
        let mut select = conn.prepare(sql)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            found.push(format!("{}; {advice}", row.get::<_, String>(0)?));
        }
    }
    let mut select = conn.prepare(TOO_MUCH)?;
    let most = (LIMIT_RUNNING.max, RATE_COUNT.max, RATE_PER_MS.max);
    let mut rows = select.query(most)?;
    while let Some(row) = rows.next()? {
        found.push(format!("{}; set the limit anew", row.get::<_, String>(0)?));
    }
    let mut select = conn.prepare(STARTS)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let limit = LimitRef { name: row.get(0)?, partition: row.get(1)? };
        if Window::from_bytes(&row.get::<_, Vec<u8>>(2)?).is_none() {
            found.push(format!(
                "the starts of limit {limit} cannot be read; the server forgets them when it is started, so that its rate may be \
                 exceeded once, and writes new ones"
            ));
        }
    }
    Ok(found)
}
