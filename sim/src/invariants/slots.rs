//! Limits and bounds of queues are kept: when something is handed out, never more live leases than may be. Section 6.
//!
//! Judged by the rows when a transaction is over, against the settings that hold by then: those come first in a
//! transaction, hand-outs last. What ran when a bound was lowered goes on; nothing more may start.

use std::collections::{BTreeMap, BTreeSet};

use tagwerk_core::gate::LimitSettings;
use tagwerk_core::{JobId, Priority, QueueSettings};
use tagwerk_engine::row::{JobRow, LimitRef};

use super::{At, Broken, Event, Invariant, started};
use crate::plan::Caps;
use crate::witness::Write;

/// See the module.
#[derive(Default)]
pub(super) struct Slots {
    limits: BTreeMap<String, LimitSettings>,
    queues: BTreeMap<String, QueueSettings>,
    /// What this transaction handed out.
    given: Vec<JobRow>,
}

impl Slots {
    pub(super) fn new(caps: Option<&Caps>) -> Self {
        let Some(caps) = caps else { return Self::default() };
        Self {
            limits: caps.limits.iter().cloned().collect(),
            queues: caps.queues.iter().cloned().collect(),
            given: Vec::new(),
        }
    }

    fn judge(&self, at: At, rows: &BTreeMap<JobId, JobRow>) -> Result<(), Broken> {
        let live =
            |row: &&JobRow| row.job.lease.as_ref().is_some_and(|lease| lease.ends_at().as_millis() > at.now);
        let live: Vec<&JobRow> = rows.values().filter(live).collect();
        let limits: BTreeSet<&LimitRef> = self.given.iter().flat_map(|row| row.lane.limits()).collect();
        for limit in limits {
            let max = self.limits.get(&limit.name).and_then(|settings| settings.max_running);
            let run = live.iter().filter(|row| row.lane.limits().contains(limit)).count();
            if max.is_some_and(|max| run > max as usize) {
                let last = self.given.iter().rev().find(|row| row.lane.limits().contains(limit));
                let what =
                    format!("it was handed out, and {run} jobs run under {limit}, which allows {max:?}");
                return Err((last.map(|row| row.job.id), what));
            }
        }
        for row in &self.given {
            self.judge_queue(row, &live)?;
        }
        Ok(())
    }

    fn judge_queue(&self, row: &JobRow, live: &[&JobRow]) -> Result<(), Broken> {
        let Some(settings) = self.queues.get(&*row.lane.queue) else { return Ok(()) };
        let Some(max) = settings.max_running else { return Ok(()) };
        let run = |below: Priority| {
            let of_queue = live.iter().filter(|other| other.lane.queue == row.lane.queue);
            of_queue.filter(|other| other.priority < below).count()
        };
        let all = live.iter().filter(|other| other.lane.queue == row.lane.queue).count();
        if all > max as usize {
            let what = format!("it was handed out, and {all} jobs run in its queue, which allows {max}");
            return Err((Some(row.job.id), what));
        }
        let Some(reserve) = settings.reserve.filter(|reserve| row.priority < reserve.from_priority) else {
            return Ok(());
        };
        let (below, most) = (run(reserve.from_priority), max.saturating_sub(reserve.slots));
        if below > most as usize {
            let what = format!(
                "it was handed out, and {below} jobs run outside of the reserve, which leaves {most}"
            );
            return Err((Some(row.job.id), what));
        }
        Ok(())
    }
}

impl Invariant for Slots {
    fn name(&self) -> &'static str {
        "never more run than limits and queues allow"
    }

    fn see(&mut self, at: At, event: &Event<'_>) -> Result<(), Broken> {
        match event {
            Event::Began => self.given.clear(),
            Event::Wrote(Write::Limit(name, Some(settings))) => {
                self.limits.insert(name.clone(), settings.clone());
            }
            Event::Wrote(Write::Limit(name, None)) => drop(self.limits.remove(name)),
            Event::Wrote(Write::Queue(row)) => {
                self.queues.insert(row.name.clone(), row.settings);
            }
            Event::Wrote(write) => self.given.extend(started(write).cloned()),
            Event::Committed { rows } if !self.given.is_empty() => return self.judge(at, rows),
            _ => {}
        }
        Ok(())
    }
}
