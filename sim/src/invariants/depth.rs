//! Producers never push a queue beyond `max_depth`, nor into one that is drained, and nothing is half stored. Section 6.
//!
//! Jobs that come back from review may: they count as if they had come after all that was accepted with them.

use std::collections::{BTreeMap, BTreeSet};

use tagwerk_core::{JobId, Status};
use tagwerk_engine::command::{BulkMode, Enqueue, Enqueued};
use tagwerk_engine::row::{JobRow, QueueRow};

use super::{At, Broken, Event, Invariant};
use crate::call::{Answer, Call, Reply};
use crate::plan::Plan;
use crate::witness::Write;

/// See the module.
#[derive(Default)]
pub(super) struct Depth {
    queues: BTreeMap<String, QueueRow>,
    /// What this transaction stored.
    stored: Vec<JobRow>,
    /// Jobs that came back from review in it.
    returned: BTreeSet<JobId>,
    /// Completed jobs lead to others, which no bound keeps out: how deep a queue is then says nothing. The model still knows.
    is_led: bool,
}

impl Depth {
    pub(super) fn new(plan: &Plan) -> Self {
        let queues = plan.caps.iter().flat_map(|caps| &caps.queues);
        let row = |(name, settings): &(String, tagwerk_core::QueueSettings)| {
            (name.clone(), QueueRow { settings: *settings, ..QueueRow::plain(name) })
        };
        Self { queues: queues.map(row).collect(), is_led: plan.leads > 0, ..Self::default() }
    }

    fn judge(&self, rows: &BTreeMap<JobId, JobRow>) -> Result<(), Broken> {
        for stored in &self.stored {
            let Some(queue) = self.queues.get(&*stored.lane.queue) else { continue };
            let id = Some(stored.job.id);
            if queue.draining.is_some() {
                return Err((id, format!("it was accepted while queue {} is drained", queue.name)));
            }
            let Some(max) = queue.settings.max_depth else { continue };
            let counts = |row: &&JobRow| {
                *row.lane.queue == *queue.name
                    && matches!(row.job.status, Status::Pending | Status::Running)
                    && !self.returned.contains(&row.job.id)
            };
            let depth = rows.values().filter(counts).count() as u64;
            if depth > max {
                let what =
                    format!("it was accepted as one of {depth} in queue {}: max_depth is {max}", queue.name);
                return Err((id, what));
            }
        }
        Ok(())
    }
}

impl Invariant for Depth {
    fn name(&self) -> &'static str {
        "queues take no more than their depth, and all or nothing"
    }

    fn see(&mut self, _: At, event: &Event<'_>) -> Result<(), Broken> {
        match event {
            Event::Began => {
                self.stored.clear();
                self.returned.clear();
            }
            Event::Wrote(Write::Queue(row)) => {
                self.queues.insert(row.name.clone(), (**row).clone());
            }
            Event::Wrote(Write::Insert(insert)) => self.stored.push(insert.row.clone()),
            Event::Wrote(Write::Change(change)) => {
                let waits = change.after.job.status == Status::Pending;
                if waits && change.before.job.status == Status::Failed {
                    self.returned.insert(change.after.job.id);
                }
            }
            Event::Committed { rows } if !self.is_led => return self.judge(rows),
            Event::Answered { call: Call::Enqueue(request), reply, .. } => return whole(request, reply),
            _ => {}
        }
        Ok(())
    }
}

/// Of a request that is all or nothing, either all was taken or nothing stored.
fn whole(request: &Enqueue, reply: &Reply) -> Result<(), Broken> {
    let Ok(Answer::Enqueue(items)) = reply else { return Ok(()) };
    if request.mode != BulkMode::Atomic || items.iter().all(Result::is_ok) {
        return Ok(());
    }
    let stored = items.iter().find_map(|item| match item {
        Ok(Enqueued::Created(full)) => Some(full.row.job.id),
        _ => None,
    });
    stored.map_or(Ok(()), |id| {
        Err((Some(id), "a part of a request that is all or nothing was stored".to_owned()))
    })
}
