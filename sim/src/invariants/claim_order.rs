//! Claims are served in order: the highest priority, then due time, then id. Section 6.
//!
//! Judged where filters cannot matter: within one claim's answer, and among the jobs of one queue and type that one
//! transaction hands out or leaves; not across jobs of a queue in which keys take turns.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tagwerk_core::{JobId, Status};
use tagwerk_engine::row::{JobRow, LaneId};

use super::{At, Broken, Event, Invariant};
use crate::call::Answer;
use crate::witness::Write;

/// See the module.
#[derive(Default)]
pub(super) struct ClaimOrder {
    /// What this transaction handed out.
    given: Vec<(LaneId, Place, String)>,
    /// Who gave a job back, and when: it is passed over for a while.
    released: BTreeMap<JobId, i64>,
    /// Jobs of ordering keys whose turn may have come after others were handed out in this step.
    turned: BTreeSet<JobId>,
    /// Queues in which keys take turns: there the place does not decide.
    fair: BTreeSet<Arc<str>>,
}

type Place = (Reverse<u8>, i64, JobId);

/// How long a job that was given back may be passed over.
const PASSED_OVER_MS: i64 = 30_000;

impl Invariant for ClaimOrder {
    fn name(&self) -> &'static str {
        "priority, then due time, then id"
    }

    fn see(&mut self, at: At, event: &Event<'_>) -> Result<(), Broken> {
        match event {
            Event::Granted { .. } => self.turned.clear(),
            Event::Began => self.given.clear(),
            Event::Wrote(Write::Insert(insert)) if insert.row.lane.fair_key().is_some() => {
                self.fair.insert(Arc::clone(&insert.row.lane.queue));
            }
            Event::Wrote(Write::Change(change)) => {
                let (before, after) = (&change.before, &change.after);
                if after.job.status == Status::Running && after.job.leases > before.job.leases {
                    let worker =
                        after.job.lease.as_ref().map(|lease| lease.worker.clone()).unwrap_or_default();
                    self.given.push((after.lane.id, place(after), worker));
                }
                if before.is_blocked() != after.is_blocked() {
                    self.turned.insert(after.job.id);
                }
                if after.job.release_count > before.job.release_count {
                    self.released.insert(after.job.id, at.mono);
                }
            }
            Event::Committed { rows } => return self.left_behind(at, rows),
            Event::Answered { reply: Ok(Answer::Claim(answer)), .. } if !answer.replayed => {
                let places: Vec<Place> = answer
                    .jobs
                    .iter()
                    .filter(|claimed| !self.released.contains_key(&claimed.job.row.job.id))
                    .filter(|claimed| !self.turned.contains(&claimed.job.row.job.id))
                    .map(|claimed| &claimed.job.row)
                    .filter(|row| !self.fair.contains(&row.lane.queue))
                    .map(place)
                    .collect();
                if let Some(pair) = places.windows(2).find(|pair| pair[0] > pair[1]) {
                    return Err((Some(pair[1].2), format!("it was given behind job {}", pair[0].2)));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl ClaimOrder {
    fn left_behind(&self, at: At, rows: &BTreeMap<JobId, JobRow>) -> Result<(), Broken> {
        if self.given.is_empty() {
            return Ok(());
        }
        let waits = |row: &&JobRow| {
            let job = &row.job;
            job.status == Status::Pending
                && !row.is_blocked()
                && !self.turned.contains(&job.id)
                && job.available_at.as_millis() <= at.now
                && job.updated_at.as_millis() < at.now
                && job.expires_at.is_none_or(|expires| expires.as_millis() > at.now)
                && self.released.get(&job.id).is_none_or(|when| at.mono - when > PASSED_OVER_MS)
        };
        for row in rows.values().filter(waits) {
            let passed =
                self.given.iter().find(|(lane, given, _)| *lane == row.lane.id && *given > place(row));
            if let Some((_, given, worker)) = passed {
                let what =
                    format!("job {} of the same queue and type was handed to {worker} before it", given.2);
                return Err((Some(row.job.id), what));
            }
        }
        Ok(())
    }
}

fn place(row: &JobRow) -> Place {
    (Reverse(row.priority.value()), row.job.available_at.as_millis(), row.job.id)
}
