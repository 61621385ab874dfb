//! Counters and counts, as the writer and snapshots read them.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension};
use tagwerk_core::Status;
use tagwerk_engine::row::{Counter, Lane, LaneId, Tally};

use crate::cells::Cells;
use crate::error::{Fail, Res};
use crate::lanes::Lanes;

const COUNTS: &str = "SELECT lane, state, count(*) FROM job GROUP BY lane, state ORDER BY lane, state";

/// Blocked rows.
const BLOCKED: &str = "SELECT j.lane, count(*) FROM job_order o CROSS JOIN job j ON j.id = o.job \
     WHERE o.open = 0 AND j.state = 2 GROUP BY j.lane";

/// Pending and running jobs of a lane.
const DEPTH: &str = "SELECT pending + running FROM ledger WHERE lane = ?1";

/// Pending and running jobs of a queue by the ledger, for each of its lanes.
pub(crate) fn depth(conn: &Connection, lanes: &Lanes, queue: &str) -> Res<Vec<(LaneId, i64)>> {
    let mut select = conn.prepare_cached(DEPTH)?;
    let depth = |lane: LaneId| {
        let n = select.query_row([lane.0], |row| row.get(0)).optional()?;
        Ok((lane, n.unwrap_or_default()))
    };
    lanes.of_queue(queue).map(depth).collect()
}

/// The ledger by lane.
pub(crate) fn ledger(conn: &Connection, lanes: &Lanes) -> Res<Vec<(Lane, Tally)>> {
    let names: Vec<&str> = Counter::ALL.iter().map(|counter| counter.name()).collect();
    let sql = format!("SELECT lane, {} FROM ledger ORDER BY lane", names.join(", "));
    let mut select = conn.prepare_cached(&sql)?;
    let mut rows = select.query([])?;
    let mut ledger = Vec::new();
    while let Some(row) = rows.next()? {
        let mut tally = Tally::default();
        for (at, counter) in (1..).zip(Counter::ALL) {
            tally.add(counter, Cells(row).int(at)?);
        }
        ledger.push((lane(lanes, row.get(0)?)?, tally));
    }
    Ok(ledger)
}

/// Rows by class and status, from the rows themselves. Those that cannot be counted under a status or a lane are left out;
/// `scan` shows them as damaged.
pub(crate) fn counts(conn: &Connection, lanes: &Lanes) -> Res<Vec<(Lane, Status, i64)>> {
    let mut select = conn.prepare_cached(COUNTS)?;
    let mut rows = select.query([])?;
    let mut counts: BTreeMap<(LaneId, Status), (Lane, i64)> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (Ok(lane), Ok(status)) = (lane(lanes, row.get(0)?), Cells(row).code::<Status>(1)) else {
            continue;
        };
        let class = if lane.id == lane.class { lane } else { self::lane(lanes, lane.class.0)? };
        let n: i64 = row.get(2)?;
        let sum = counts.entry((class.id, status)).or_insert((class, 0));
        sum.1 += n;
    }
    Ok(counts.into_iter().map(|((_, status), (lane, n))| (lane, status, n)).collect())
}

/// Blocked rows by class, as many as stand in any order. Those that cannot be counted under a lane are left out.
pub(crate) fn blocked(conn: &Connection, lanes: &Lanes) -> Res<Vec<(Lane, i64)>> {
    let mut select = conn.prepare_cached(BLOCKED)?;
    let mut rows = select.query([])?;
    let mut counts: BTreeMap<LaneId, (Lane, i64)> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let Ok(class) = lane(lanes, row.get(0)?).map(|lane| lane.class) else { continue };
        counts.entry(class).or_insert((lane(lanes, class.0)?, 0)).1 += row.get::<_, i64>(1)?;
    }
    Ok(counts.into_values().collect())
}

fn lane(lanes: &Lanes, id: i64) -> Res<Lane> {
    lanes.get(LaneId(id)).cloned().ok_or_else(|| Fail::Row(format!("there is no lane {id}")))
}
