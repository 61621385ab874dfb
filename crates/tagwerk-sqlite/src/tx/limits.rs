//! How many jobs name a limit.

use rusqlite::Connection;
use tagwerk_engine::row::LaneId;

use crate::error::Res;
use crate::gates::RUNNING;
use crate::writer::Writer;

const READY: &str = "SELECT count(*) FROM job INDEXED BY job_ready WHERE lane = ?1 AND state = 0";
/// Those that wait for their turn in the order of a key; as many as stand in any order.
const BLOCKED: &str =
    "SELECT j.lane FROM job_order o CROSS JOIN job j ON j.id = o.job WHERE o.open = 0 AND j.state = 2";
/// Pending again if they are retried.
const FAILED: &str = "SELECT lane FROM job INDEXED BY job_review WHERE state = 3";

/// Jobs that wait, or may come back from review to wait, and jobs that run.
pub(super) fn jobs(writer: &Writer, name: &str) -> Res<(u64, u64)> {
    let Writer { conn, lanes, .. } = writer;
    let names = |lane: LaneId| {
        lanes.get(lane).is_some_and(|lane| lane.limits().iter().any(|limit| limit.name == name))
    };
    let mut waiting = 0;
    let mut ready = conn.prepare_cached(READY)?;
    for (lane, _) in lanes.all_special().filter(|(lane, _)| names(lane.id)) {
        waiting += u64::from(ready.query_row([lane.id.0], |row| row.get::<_, u32>(0))?);
    }
    waiting += count(conn, BLOCKED, names)?;
    Ok((waiting + count(conn, FAILED, names)?, count(conn, RUNNING, names)?))
}

fn count(conn: &Connection, sql: &str, names: impl Fn(LaneId) -> bool) -> Res<u64> {
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query([])?;
    let mut n = 0;
    while let Some(row) = rows.next()? {
        n += u64::from(names(LaneId(row.get(0)?)));
    }
    Ok(n)
}
