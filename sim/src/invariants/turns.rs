//! Nobody starves beside a fair key: within a queue and level no key is served again and again while another one waits.
//! Section 6, "fair keys take turns by claims".
//!
//! Judged among jobs of one queue, type and priority that name no limit, so that filters and limits explain nothing. Turns
//! are forgotten at a restart.

use std::collections::BTreeMap;

use tagwerk_core::{JobId, Status};
use tagwerk_engine::row::JobRow;

use super::{At, Broken, Event, Invariant, started};
use crate::witness::Write;

/// See the module.
#[derive(Default)]
pub(super) struct Turns {
    given: Vec<JobRow>,
    /// How often a job that waits was passed over for a job of that key.
    passed: BTreeMap<(JobId, Option<String>), u32>,
}

/// A key that was served before the other one has its turn; then it is the other one's.
const MOST: u32 = 1;

impl Turns {
    fn judge(&mut self, at: At, rows: &BTreeMap<JobId, JobRow>) -> Result<(), Broken> {
        self.passed.retain(|(id, _), _| rows.get(id).is_some_and(|row| row.job.status == Status::Pending));
        for given in std::mem::take(&mut self.given) {
            let had_turn = |row: &JobRow| {
                row.lane.queue == given.lane.queue && row.lane.fair_key() == given.lane.fair_key()
            };
            self.passed.retain(|(id, _), _| rows.get(id).is_some_and(|row| !had_turn(row)));
            let waits = |row: &&JobRow| {
                let job = &row.job;
                row.lane.class == given.lane.class
                    && row.priority == given.priority
                    && row.lane.limits().is_empty()
                    && row.lane.fair_key().is_some()
                    && row.lane.fair_key() != given.lane.fair_key()
                    && job.status == Status::Pending
                    && !row.is_blocked()
                    && job.available_at.as_millis() <= at.now
                    && job.updated_at.as_millis() < at.now
                    && job.release_count == 0
                    && job.expires_at.is_none_or(|expires| expires.as_millis() > at.now)
            };
            for row in rows.values().filter(waits) {
                let key = (row.job.id, given.lane.fair_key().map(str::to_owned));
                let passed = self.passed.entry(key).or_default();
                *passed += 1;
                if *passed > MOST {
                    let what = format!(
                        "it waits, and key {:?} was served {passed} times before it, last job {}",
                        given.lane.fair_key(),
                        given.job.id
                    );
                    return Err((Some(row.job.id), what));
                }
            }
        }
        Ok(())
    }
}

impl Invariant for Turns {
    fn name(&self) -> &'static str {
        "keys take turns"
    }

    fn see(&mut self, at: At, event: &Event<'_>) -> Result<(), Broken> {
        match event {
            Event::Started => self.passed.clear(),
            Event::Began => self.given.clear(),
            Event::Wrote(write @ Write::Change(_)) => self.given.extend(started(write).cloned()),
            Event::Committed { rows } if !self.given.is_empty() => return self.judge(at, rows),
            _ => {}
        }
        Ok(())
    }
}
