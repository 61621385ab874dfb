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
/// Rows of a level that are due at a moment and stand before an id, counted up to a cap.
pub(crate) const COUNT_SAME: &str = "SELECT count(*) FROM (SELECT 1 FROM job INDEXED BY job_ready \
     WHERE lane = ?1 AND prio = ?2 AND state = 0 AND due = ?3 AND id < ?5 LIMIT ?4)";

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
    let (now, prio) = (now.as_millis(), i64::from(row.priority.value()));
    let mut left = i64::try_from(cap).unwrap_or(i64::MAX);
    let (due, id) = (row.job.available_at.as_millis(), row.job.id.0);
    let mut until = view.conn.prepare_cached(COUNT_LEVEL)?;
    let mut same = view.conn.prepare_cached(COUNT_SAME)?;
    let plain = view.lanes.of_queue(&row.lane.queue);
    for lane in plain.flat_map(|class| std::iter::once(class).chain(view.lanes.special_of(class))) {
        for (level, head) in scan_lane(view.conn, lane)? {
            if left == 0 || level.prio < prio {
                break;
            }
            if head.due > now {
                continue;
            }
            let is_own = level.prio == prio;
            let last = if is_own { now.min(due.saturating_sub(1)) } else { now };
            let counted: i64 = until.query_row(params![lane.0, level.prio, last, left], |row| row.get(0))?;
            left -= counted;
            if is_own && due <= now && left > 0 {
                let counted: i64 = same.query_row([lane.0, prio, due, left, id], |row| row.get(0))?;
                left -= counted;
            }
        }
    }
    Ok(cap - usize::try_from(left).unwrap_or_default().min(cap))
}
