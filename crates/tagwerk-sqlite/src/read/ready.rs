//! What is ready, and what comes before a job. Loose scans of the ready index: one seek per lane and priority in use.

use std::collections::BTreeMap;

use rusqlite::params;
use tagwerk_core::Timestamp;
use tagwerk_engine::row::{JobRow, LaneId};
use tagwerk_engine::store::LaneReady;

use crate::book::{scan, scan_lane};
use crate::error::Res;
use crate::read::snapshot::View;

/// Due rows of a level, counted up to a cap.
pub(crate) const COUNT_LEVEL: &str = "SELECT count(*) FROM (SELECT 1 FROM job INDEXED BY job_ready \
     WHERE lane = ?1 AND prio = ?2 AND state = 0 AND due <= ?3 LIMIT ?4)";
/// Due rows of a level before a place, counted up to a cap.
pub(crate) const COUNT_BEFORE: &str = "SELECT count(*) FROM (SELECT 1 FROM job INDEXED BY job_ready \
     WHERE lane = ?1 AND prio = ?2 AND state = 0 AND due <= ?3 AND (due, id) < (?5, ?6) LIMIT ?4)";

/// Per lane with ready jobs: the oldest.
pub(super) fn ready(view: View<'_>, now: Timestamp) -> Res<Vec<LaneReady>> {
    let mut oldest: BTreeMap<LaneId, i64> = BTreeMap::new();
    for (level, head) in scan(view.conn)? {
        if head.due <= now.as_millis() {
            let due = oldest.entry(level.lane).or_insert(head.due);
            *due = head.due.min(*due);
        }
    }
    let ready = oldest.into_iter().filter_map(|(lane, due)| {
        let lane = view.lanes.get(lane)?.clone();
        Some(LaneReady { lane, oldest_due: Timestamp::from_millis(due) })
    });
    Ok(ready.collect())
}

/// How many ready jobs of its queue come before a job.
pub(super) fn ahead(view: View<'_>, row: &JobRow, (now, cap): (Timestamp, usize)) -> Res<usize> {
    let (now, prio) = (now.as_millis(), row.priority.value());
    let mut left = i64::try_from(cap).unwrap_or(i64::MAX);
    let mut above = view.conn.prepare_cached(COUNT_LEVEL)?;
    let mut beside = view.conn.prepare_cached(COUNT_BEFORE)?;
    for lane in view.lanes.of_queue(&row.lane.queue) {
        for (level, head) in scan_lane(view.conn, lane)? {
            if left == 0 || level.prio < prio {
                break;
            }
            if head.due > now {
                continue;
            }
            let counted: i64 = if level.prio > prio {
                above.query_row([lane.0, level.prio.into(), now, left], |row| row.get(0))?
            } else {
                let place = (row.job.available_at.as_millis(), row.job.id.0);
                beside.query_row(params![lane.0, prio, now, left, place.0, place.1], |row| row.get(0))?
            };
            left -= counted;
        }
    }
    Ok(cap - usize::try_from(left).unwrap_or_default().min(cap))
}
