//! Counters and counts, as the writer and snapshots read them.

use rusqlite::Connection;
use tagwerk_core::Status;
use tagwerk_engine::row::{Counter, Lane, LaneId, Tally};

use crate::cells::Cells;
use crate::error::{Fail, Res};
use crate::lanes::Lanes;

const COUNTS: &str = "SELECT lane, state, count(*) FROM job GROUP BY lane, state ORDER BY lane, state";

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

/// Rows by lane and status, from the rows themselves. Those that cannot be counted under a status or a lane are left out;
/// `scan` shows them as damaged.
pub(crate) fn counts(conn: &Connection, lanes: &Lanes) -> Res<Vec<(Lane, Status, i64)>> {
    let mut select = conn.prepare_cached(COUNTS)?;
    let mut rows = select.query([])?;
    let mut counts: Vec<(Lane, Status, i64)> = Vec::new();
    while let Some(row) = rows.next()? {
        let (Ok(lane), Ok(status)) = (lane(lanes, row.get(0)?), Cells(row).code::<Status>(1)) else {
            continue;
        };
        let n: i64 = row.get(2)?;
        match counts.last_mut().filter(|(other, same, _)| other.id == lane.id && *same == status) {
            Some((_, _, sum)) => *sum += n,
            None => counts.push((lane, status, n)),
        }
    }
    Ok(counts)
}

fn lane(lanes: &Lanes, id: i64) -> Res<Lane> {
    lanes.get(LaneId(id)).cloned().ok_or_else(|| Fail::Row(format!("there is no lane {id}")))
}
